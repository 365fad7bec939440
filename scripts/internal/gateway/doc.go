// Package gateway is a local Amazon API Gateway HTTP API: it turns a request into a
// Lambda event of payload format 2.0, and the function's answer into a response.
//
// The problem it solves: much of what a function must cope with is made by the
// gateway, not by the client. Repeated headers and query values arrive joined by
// commas, the path arrives decoded, a body arrives as text or base64 by a rule of
// content types, claims arrive as strings whatever they were in the token, and a
// client may get 503 for a request whose function then commits. A function that was
// only tried behind Go's own HTTP server has met none of this.
//
// Routes and their scopes come from the topology, as in the deployed stack. A token
// is checked as a JWT authorizer does it: RS256 signature by a published key, iss,
// aud, exp, nbf, iat, and at least one of the route's scopes. An Issuer makes the
// tokens; it shares its key with the gateway by a file, so a token made by another
// process is accepted by a running gateway.
//
// Sources: https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html,
// .../http-api-jwt-authorizer.html and .../http-api-quotas.html. Where these are
// silent, the constant or function says where its behaviour was seen.
//
// Not imitated: throttles, CORS, custom domains, named stages, access logs. The
// caller must listen on a loopback address: this is plain HTTP.
package gateway
