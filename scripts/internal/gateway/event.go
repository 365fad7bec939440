package gateway

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

const (
	payloadVersion = "2.0"
	stage          = "$default"
	accountID      = "000000000000"
	apiID          = "local"
	// timeLayout is the common log format.
	timeLayout = "02/Jan/2006:15:04:05 -0700"
)

// incoming is one request that has passed the gateway's own checks.
type incoming struct {
	http       *http.Request
	id         string
	at         time.Time
	route      route
	parameters map[string]string
	claims     map[string]any // nil on a public route
	body       []byte
}

// httpEvent is the event as AWS writes it. The embedded type has strings for claims
// and an empty client certificate; the outer fields replace those two, because claims
// of an odd type must be sendable and a certificate is absent.
type httpEvent struct {
	events.APIGatewayV2HTTPRequest
	RequestContext requestContext `json:"requestContext"`
}

type requestContext struct {
	events.APIGatewayV2HTTPRequestContext
	Authorizer     *authorizerContext `json:"authorizer,omitempty"`
	Authentication *struct{}          `json:"authentication,omitempty"`
}

type authorizerContext struct {
	JWT jwtContext `json:"jwt"`
}

type jwtContext struct {
	Claims map[string]any `json:"claims"`
	Scopes []string       `json:"scopes"`
}

// event returns the Lambda event of the request, in payload format 2.0. An error
// says that the query cannot be decoded.
func (in incoming) event() ([]byte, error) {
	query, err := url.ParseQuery(in.http.URL.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	var event httpEvent
	event.Version = payloadVersion
	event.RouteKey = in.route.key
	event.RawPath = in.http.URL.Path
	event.RawQueryString = in.http.URL.RawQuery
	event.Headers = in.headers()
	event.Cookies = in.cookies()
	event.QueryStringParameters = joined(query)
	event.PathParameters = in.parameters
	event.RequestContext.APIGatewayV2HTTPRequestContext = in.context()
	if in.claims != nil {
		scopes := make([]string, len(in.route.Scopes))
		for i, scope := range in.route.Scopes {
			scopes[i] = string(scope)
		}
		event.RequestContext.Authorizer = &authorizerContext{JWT: jwtContext{Claims: in.claims, Scopes: scopes}}
	}
	event.Body = string(in.body)
	if len(in.body) > 0 && !isText(in.http.Header.Get("Content-Type")) {
		event.Body, event.IsBase64Encoded = base64.StdEncoding.EncodeToString(in.body), true
	}
	return json.Marshal(event)
}

func (in incoming) context() events.APIGatewayV2HTTPRequestContext {
	domain, _, err := net.SplitHostPort(in.http.Host)
	if err != nil {
		domain = in.http.Host // there is no port in it
	}
	prefix, _, _ := strings.Cut(domain, ".")
	return events.APIGatewayV2HTTPRequestContext{
		RouteKey: in.route.key, AccountID: accountID, Stage: stage, RequestID: in.id, APIID: apiID,
		DomainName: domain, DomainPrefix: prefix,
		Time: in.at.UTC().Format(timeLayout), TimeEpoch: in.at.UnixMilli(),
		HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{
			Method: in.http.Method, Path: in.http.URL.Path, Protocol: in.http.Proto,
			SourceIP: in.sourceIP(), UserAgent: in.http.UserAgent(),
		},
	}
}

func (in incoming) sourceIP() string {
	ip, _, err := net.SplitHostPort(in.http.RemoteAddr)
	if err != nil {
		return in.http.RemoteAddr
	}
	return ip
}

// headers are named in lower case; values of a repeated header are joined by commas.
// Cookies have a field of their own, and what the gateway knows of the connection is
// added.
func (in incoming) headers() map[string]string {
	header := in.http.Header.Clone()
	header.Del("Cookie")
	header.Add("X-Forwarded-For", in.sourceIP())
	header.Set("X-Forwarded-Proto", "http")
	header.Set("Host", in.http.Host)
	lower := make(map[string]string, len(header))
	for name, value := range joined(header) {
		lower[strings.ToLower(name)] = value
	}
	return lower
}

func (in incoming) cookies() []string {
	var cookies []string
	for _, line := range in.http.Header.Values("Cookie") {
		for cookie := range strings.SplitSeq(line, ";") {
			cookies = append(cookies, strings.TrimSpace(cookie))
		}
	}
	return cookies
}

func joined(values map[string][]string) map[string]string {
	result := make(map[string]string, len(values))
	for name, all := range values {
		result[name] = strings.Join(all, ",")
	}
	return result
}

// isText says whether a body of this content type is passed on as text. AWS does not
// document the rule; it was measured: https://github.com/ministackorg/ministack/pull/766
func isText(contentType string) bool {
	mediaType, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	switch mediaType {
	case "application/json", "application/xml", "application/javascript":
		return true
	}
	return strings.HasPrefix(mediaType, "text/")
}
