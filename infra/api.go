package main

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2authorizers"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigatewayv2integrations"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/jsii-runtime-go"

	"holdfast/shared/topology"
)

// httpAPI is the gateway and its routes.
type httpAPI struct {
	gateway awsapigatewayv2.HttpApi
	// public holds the routes without an authorizer.
	public []awsapigatewayv2.HttpRoute
}

// newAPI makes the HTTP API with the routes of the topology. A route with scopes
// has the JWT authorizer, and asks for the scopes so that an ID token, which has
// none, does not pass.
func newAPI(stack awscdk.Stack, chosen settings, functions []deployedFunction) (httpAPI, error) {
	api := httpAPI{gateway: awsapigatewayv2.NewHttpApi(stack, jsii.String("Gateway"), &awsapigatewayv2.HttpApiProps{
		ApiName:            jsii.String("holdfast"),
		Description:        jsii.String("Reservations: slots, availability, holds"),
		CreateDefaultStage: jsii.Bool(false),
	})}
	authorizer := awsapigatewayv2authorizers.NewHttpJwtAuthorizer(jsii.String("Tokens"), jsii.String(chosen.JWTIssuer),
		&awsapigatewayv2authorizers.HttpJwtAuthorizerProps{
			AuthorizerName: jsii.String("Tokens"),
			JwtAudience:    jsii.Strings(chosen.JWTAudience),
		})
	integrations := newIntegrations(functions)
	gatewayStage, err := newGatewayStage(stack, chosen.stage, api.gateway)
	if err != nil {
		return httpAPI{}, err
	}
	for _, r := range topology.Routes() {
		integration, ok := integrations[r.Function]
		if !ok {
			return httpAPI{}, fmt.Errorf("route %s %s: no function %q with an HTTP trigger", r.Method, r.Path, r.Function)
		}
		props := &awsapigatewayv2.HttpRouteProps{
			HttpApi:     api.gateway,
			RouteKey:    awsapigatewayv2.HttpRouteKey_With(jsii.String(r.Path), awsapigatewayv2.HttpMethod(r.Method)),
			Integration: integration,
		}
		if len(r.Scopes) > 0 {
			var scopes []*string
			for _, scope := range r.Scopes {
				scopes = append(scopes, jsii.String(string(scope)))
			}
			props.Authorizer, props.AuthorizationScopes = authorizer, &scopes
		}
		route := awsapigatewayv2.NewHttpRoute(stack, jsii.String("Route "+r.Method+" "+r.Path), props)
		if len(r.Scopes) == 0 {
			api.public = append(api.public, route)
		}
		// The gateway refuses a throttle for a route that does not exist yet.
		gatewayStage.Node().AddDependency(route)
	}
	return api, nil
}

// newIntegrations makes one integration for each function with an HTTP trigger.
func newIntegrations(functions []deployedFunction) map[topology.FunctionName]awsapigatewayv2integrations.HttpLambdaIntegration {
	integrations := map[topology.FunctionName]awsapigatewayv2integrations.HttpLambdaIntegration{}
	for _, f := range functions {
		if f.HTTP == nil {
			continue
		}
		integrations[f.Name] = awsapigatewayv2integrations.NewHttpLambdaIntegration(
			jsii.String(constructID(string(f.Name))+"Integration"), f.lambda,
			&awsapigatewayv2integrations.HttpLambdaIntegrationProps{
				PayloadFormatVersion: awsapigatewayv2.PayloadFormatVersion_VERSION_2_0(),
				Timeout:              seconds(topology.IntegrationTimeout),
				// One permission for this API, not one a route: a function's policy is
				// limited to 20 KB, which some tens of routes would fill.
				ScopePermissionToRoute: jsii.Bool(false),
			})
	}
	return integrations
}

// newGatewayStage makes the stage "$default": a stage with a name would put that
// name before the path that the function sees.
func newGatewayStage(stack awscdk.Stack, chosen stage, gateway awsapigatewayv2.HttpApi) (awsapigatewayv2.CfnStage, error) {
	logs := awslogs.NewLogGroup(stack, jsii.String("GatewayAccessLogs"), &awslogs.LogGroupProps{
		Retention:     chosen.LogRetention,
		RemovalPolicy: chosen.RemovalPolicy,
	})
	format, err := accessLogFormat()
	if err != nil {
		return nil, err
	}
	throttles := map[string]any{}
	for _, r := range topology.Routes() {
		// The names are CloudFormation's, because this property is passed on as it is.
		throttles[r.Method+" "+r.Path] = map[string]any{
			"ThrottlingRateLimit":  scaled(r.RequestsPerSecond, chosen.ThrottleFactor),
			"ThrottlingBurstLimit": scaled(r.Burst, chosen.ThrottleFactor),
		}
	}
	return awsapigatewayv2.NewCfnStage(stack, jsii.String("GatewayStage"), &awsapigatewayv2.CfnStageProps{
		ApiId:      gateway.ApiId(),
		StageName:  jsii.String("$default"),
		AutoDeploy: jsii.Bool(true),
		AccessLogSettings: &awsapigatewayv2.CfnStage_AccessLogSettingsProperty{
			DestinationArn: logs.LogGroupArn(),
			Format:         jsii.String(format),
		},
		RouteSettings: throttles,
	}), nil
}

// scaled returns a throttle for a stage, which is never less than one.
func scaled(limit int, factor float64) int {
	return max(1, int(math.Round(float64(limit)*factor)))
}

// accessLogFormat is one JSON object a request. It has what is needed to find the
// request and to see where its time went; no token, no claim and no address, because
// the log is read by more people than may know who reserved what.
func accessLogFormat() (string, error) {
	format, err := json.Marshal(map[string]string{
		"request_id":             "$context.requestId",
		"requested_at":           "$context.requestTime",
		"route":                  "$context.routeKey",
		"status":                 "$context.status",
		"response_bytes":         "$context.responseLength",
		"response_latency_ms":    "$context.responseLatency",
		"integration_latency_ms": "$context.integrationLatency",
		"integration_status":     "$context.integrationStatus",
		"integration_error":      "$context.integrationErrorMessage",
		"authorizer_error":       "$context.authorizer.error",
		"gateway_error":          "$context.error.message",
	})
	if err != nil {
		return "", fmt.Errorf("access log format: %w", err)
	}
	return string(format), nil
}
