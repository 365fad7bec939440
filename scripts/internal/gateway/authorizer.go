package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
	"github.com/lestrrat-go/jwx/v3/jwt"

	"holdfast/shared/topology"
)

// ErrUnauthorized says that there is no valid token. The client gets 401.
var ErrUnauthorized = errors.New("gateway: unauthorized")

// ErrForbidden says that the token is valid but carries none of the route's scopes.
// The client gets 403.
var ErrForbidden = errors.New("gateway: forbidden")

// Authorizer checks tokens as the JWT authorizer of an HTTP API does:
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-jwt-authorizer.html
type Authorizer struct {
	// Keys are the issuer's public keys. Each needs a key id and the algorithm RS256.
	Keys             jwk.Set
	Issuer, Audience string
	Now              func() time.Time
}

// Authorize checks the values of a request's Authorization header and returns the
// claims, numbers as json.Number. Errors are ErrUnauthorized and ErrForbidden; the
// first wraps what is wrong, which must not be told to the client.
func (a *Authorizer) Authorize(headers []string, scopes []topology.Scope) (map[string]any, error) {
	if len(headers) != 1 {
		return nil, fmt.Errorf("%w: %d Authorization headers", ErrUnauthorized, len(headers))
	}
	token := []byte(withoutScheme(headers[0]))
	claims, err := a.verify(token)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnauthorized, err)
	}
	carried := scopesOf(claims)
	if !slices.ContainsFunc(scopes, func(s topology.Scope) bool { return slices.Contains(carried, string(s)) }) {
		return nil, ErrForbidden
	}
	return claims, nil
}

// withoutScheme removes "Bearer", which the gateway does not insist on.
func withoutScheme(header string) string {
	scheme, token, found := strings.Cut(header, " ")
	if found && strings.EqualFold(scheme, "Bearer") {
		return token
	}
	return header
}

func (a *Authorizer) verify(token []byte) (map[string]any, error) {
	message, err := jws.Parse(token, jws.WithCompact())
	if err != nil {
		return nil, err
	}
	algorithm, _ := message.Signatures()[0].ProtectedHeaders().Algorithm()
	if algorithm != jwa.RS256() {
		return nil, fmt.Errorf("algorithm %s", algorithm)
	}
	_, err = jwt.Parse(token,
		jwt.WithKeySet(a.Keys),
		jwt.WithIssuer(a.Issuer),
		jwt.WithRequiredClaim(jwt.ExpirationKey),
		jwt.WithClock(jwt.ClockFunc(a.Now)),
		jwt.WithValidator(jwt.ValidatorFunc(a.checkAudience)),
	)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(message.Payload()))
	decoder.UseNumber()
	var claims map[string]any
	if err := decoder.Decode(&claims); err != nil {
		return nil, err
	}
	return claims, nil
}

// checkAudience accepts client_id in place of aud, but only if there is no aud.
func (a *Authorizer) checkAudience(_ context.Context, token jwt.Token) error {
	audience, found := token.Audience()
	if !found {
		var client string
		if err := token.Get("client_id", &client); err != nil {
			return errors.New("neither aud nor client_id")
		}
		audience = []string{client}
	}
	if !slices.Contains(audience, a.Audience) {
		return fmt.Errorf("audience %q", audience)
	}
	return nil
}

// scopesOf reads scope, one text with spaces, or else scp, which may be a list.
func scopesOf(claims map[string]any) []string {
	for _, name := range []string{"scope", "scp"} {
		switch value := claims[name].(type) {
		case string:
			return strings.Fields(value)
		case []any:
			var scopes []string
			for _, element := range value {
				if scope, isText := element.(string); isText {
					scopes = append(scopes, scope)
				}
			}
			return scopes
		}
	}
	return nil
}

// RenderClaims turns the claims of a token into what a function finds in
// requestContext.authorizer.jwt.claims: every value is a string, and a list is its
// elements in brackets with spaces between them, so that a group with a space in its
// name cannot be told from two groups (case H6).
func RenderClaims(claims map[string]any) map[string]any {
	rendered := make(map[string]any, len(claims))
	for name, value := range claims {
		rendered[name] = fmt.Sprint(value)
	}
	return rendered
}

func refuseToken(w http.ResponseWriter, err error, scopes []topology.Scope) {
	if errors.Is(err, ErrForbidden) {
		names := make([]string, len(scopes))
		for i, scope := range scopes {
			names[i] = string(scope)
		}
		w.Header().Set("Www-Authenticate",
			fmt.Sprintf("Bearer scope=%q error=\"insufficient_scope\"", strings.Join(names, " ")))
		refuse(w, http.StatusForbidden, "Forbidden")
		return
	}
	w.Header().Set("Www-Authenticate", "Bearer")
	refuse(w, http.StatusUnauthorized, "Unauthorized")
}
