package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"holdfast/shared/topology"
)

func TestRoutesHaveTheirAuthorizerAndScopes(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		made := map[string]resource{}
		for _, r := range s.mustResources(t, "AWS::ApiGatewayV2::Route") {
			made[readable(r.at("RouteKey"))] = r
		}
		if len(made) != len(topology.Routes()) {
			t.Errorf("%d routes, want %d", len(made), len(topology.Routes()))
		}
		for _, want := range topology.Routes() {
			key := want.Method + " " + want.Path
			r, ok := made[key]
			if !ok {
				t.Errorf("route %s is missing", key)
				continue
			}
			if len(want.Scopes) == 0 {
				mustBe(t, key+" authorization", r.at("AuthorizationType"), "NONE")
				mustBe(t, key+" authorizer", r.at("AuthorizerId"), nil)
			} else {
				mustBe(t, key+" authorization", r.at("AuthorizationType"), "JWT")
				mustBeRef(t, key+" authorizer", r.at("AuthorizerId"), "GatewayTokens")
				mustBe(t, key+" scopes", r.at("AuthorizationScopes"), want.Scopes)
			}
			target := strings.TrimPrefix(readable(r.at("Target")), "integrations/")
			integration := s.mustResource(t, "AWS::ApiGatewayV2::Integration", target)
			mustBeRef(t, key+" function", integration.at("IntegrationUri"), constructID(string(want.Function))+"Function.Arn")
		}
	})
}

func TestTheAuthorizerChecksIssuerAndAudience(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		authorizer := s.mustResource(t, "AWS::ApiGatewayV2::Authorizer", "GatewayTokens")
		mustBe(t, "type", authorizer.at("AuthorizerType"), "JWT")
		mustBe(t, "issuer", authorizer.at("JwtConfiguration", "Issuer"), s.stage.ExampleIssuer)
		mustBe(t, "audience", authorizer.at("JwtConfiguration", "Audience"), []string{s.stage.ExampleAudience})
		mustBe(t, "source", authorizer.at("IdentitySource"), []string{"$request.header.Authorization"})
	})
}

// Case H8: what the gateway waits for must end before the gateway gives up.
func TestCaseH8_IntegrationsEndBeforeTheGateway(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		for _, integration := range s.mustResources(t, "AWS::ApiGatewayV2::Integration") {
			mustBe(t, "payload", integration.at("PayloadFormatVersion"), "2.0")
			ms, _ := integration.at("TimeoutInMillis").(float64)
			wait := time.Duration(ms) * time.Millisecond
			if wait <= 0 || wait >= topology.IntegrationTimeoutLimit {
				t.Errorf("%s waits %s", integration.ID, wait)
			}
			target, _, _ := strings.Cut(readable(integration.at("IntegrationUri")), ".")
			runs, _ := s.mustResource(t, "AWS::Lambda::Function", target).at("Timeout").(float64)
			if time.Duration(runs)*time.Second >= wait {
				t.Errorf("%s runs %g s, as long as the gateway waits (%s)", target, runs, wait)
			}
		}
	})
}

func TestRoutesAreThrottledByStage(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		gateway := s.mustResource(t, "AWS::ApiGatewayV2::Stage", "GatewayStage")
		mustBe(t, "stage name", gateway.at("StageName"), "$default")
		settings, _ := gateway.at("RouteSettings").(map[string]any)
		if len(settings) != len(topology.Routes()) {
			t.Errorf("%d throttles for %d routes", len(settings), len(topology.Routes()))
		}
		for _, r := range topology.Routes() {
			key := r.Method + " " + r.Path
			mustBe(t, key+" throttle", settings[key], map[string]any{
				"ThrottlingRateLimit":  math.Max(1, float64(r.RequestsPerSecond)*s.stage.ThrottleFactor),
				"ThrottlingBurstLimit": math.Max(1, float64(r.Burst)*s.stage.ThrottleFactor),
			})
		}
		// Without this the first deployment fails: a throttle needs its route.
		depends := strings.Join(gateway.DependsOn, " ")
		for _, r := range s.mustResources(t, "AWS::ApiGatewayV2::Route") {
			if !strings.Contains(depends, r.ID) {
				t.Errorf("the gateway's stage may be made before the route %s", r.ID)
			}
		}
	})
}

func TestScaledIsNeverZero(t *testing.T) {
	for _, c := range []struct {
		limit  int
		factor float64
		want   int
	}{{1000, 1, 1000}, {1000, 0.1, 100}, {25, 0.1, 3}, {1, 0.1, 1}} {
		if got := scaled(c.limit, c.factor); got != c.want {
			t.Errorf("scaled(%d, %g) = %d, want %d", c.limit, c.factor, got, c.want)
		}
	}
}

func TestRequestsAreLoggedWithoutSecrets(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		gateway := s.mustResource(t, "AWS::ApiGatewayV2::Stage", "GatewayStage")
		mustBeRef(t, "access log", gateway.at("AccessLogSettings", "DestinationArn"), "GatewayAccessLogs.Arn")
		format := readable(gateway.at("AccessLogSettings", "Format"))
		for _, field := range []string{"$context.requestId", "$context.routeKey", "$context.status"} {
			if !strings.Contains(format, field) {
				t.Errorf("the access log lacks %s: %s", field, format)
			}
		}
		// P12: no token and no claim in a log.
		for _, field := range []string{"claims", "sourceIp", "Authorization", "principal"} {
			if strings.Contains(format, field) {
				t.Errorf("the access log has %s: %s", field, format)
			}
		}
	})
}

func TestOnlyThisGatewayMayCallTheFunctionsOfRoutes(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		for _, permission := range s.mustResources(t, "AWS::Lambda::Permission") {
			mustBe(t, permission.ID+" principal", permission.at("Principal"), "apigateway.amazonaws.com")
			if source := readable(permission.at("SourceArn")); !strings.HasSuffix(source, ":Gateway/*/*/*") &&
				!strings.HasSuffix(source, ":Gateway/*/*") {
				t.Errorf("%s lets in %s", permission.ID, source)
			}
		}
	})
}
