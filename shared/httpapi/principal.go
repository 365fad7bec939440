package httpapi

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"holdfast/shared/ledger"
	"holdfast/shared/topology"
)

// subjectCharactersMax bounds a token's subject. Source:
// https://openid.net/specs/openid-connect-core-1_0.html#IDToken
const subjectCharactersMax = 255

// Caller is who sends a request, as the gateway says.
type Caller struct {
	Principal Principal
	// RequestID is the gateway's name of the request. Empty, a new one is drawn.
	RequestID ledger.RequestID
}

// Principal is what a checked token says of its bearer. The zero value is nobody.
type Principal struct {
	Subject ledger.OwnerID
	Scopes  []topology.Scope
	Groups  []string
}

// callerKey is the context key of a Caller.
type callerKey struct{}

// WithCaller returns a context that tells a request's caller to [API.ServeHTTP].
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

func callerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// Claims are the claims of a token as API Gateway passes them on. Each value may be a
// text, a number, a boolean or a list, whatever the token's issuer chose (case H6).
type Claims map[string]json.RawMessage

// PrincipalFromClaims reads the claims sub, scope or scp, and groups or cognito:groups.
// A claim of a form that it cannot read counts as absent, so an odd claim never gives a
// right. A subject that is not a text of 1 to 255 characters is nobody.
func PrincipalFromClaims(claims Claims) Principal {
	var p Principal
	var subject string
	if json.Unmarshal(claims["sub"], &subject) == nil && len(subject) <= subjectCharactersMax {
		p.Subject = ledger.OwnerID(subject)
	}
	for _, name := range []string{"scope", "scp"} {
		for _, value := range namesOf(claims[name]) {
			// A scope has no space, so one text of scopes is a list (RFC 6749, 3.3).
			for scope := range strings.FieldsSeq(value) {
				p.Scopes = append(p.Scopes, topology.Scope(scope))
			}
		}
	}
	p.Groups = append(namesOf(claims["groups"]), namesOf(claims["cognito:groups"])...)
	return p
}

// namesOf reads a claim that is a list of names: as a JSON list; as one text; as a text
// that holds a JSON list; or as API Gateway renders a list, "[ops support]". A name in a
// real list is taken as it is. In the rendered form a name with a bracket would be
// ambiguous, so a text with further brackets names nobody.
func namesOf(claim json.RawMessage) []string {
	var list []any
	if json.Unmarshal(claim, &list) == nil {
		return textsOf(list)
	}
	var text string
	if json.Unmarshal(claim, &text) != nil || text == "" {
		return nil
	}
	inner, isList := strings.CutPrefix(text, "[")
	if !isList {
		return []string{text}
	}
	if json.Unmarshal([]byte(text), &list) == nil {
		return textsOf(list)
	}
	inner, closed := strings.CutSuffix(inner, "]")
	if !closed || strings.ContainsAny(inner, "[]") {
		return nil
	}
	return strings.Fields(inner)
}

func textsOf(list []any) []string {
	var out []string
	for _, item := range list {
		if text, isText := item.(string); isText {
			out = append(out, text)
		}
	}
	return out
}

func (p Principal) has(s topology.Scope) bool { return slices.Contains(p.Scopes, s) }

// mayUse returns nil if p's token opens a route of these scopes. The gateway has checked
// that already; a route that was deployed without its authorizer stays closed all the
// same. The scope operate opens nothing without the operator group.
func (p Principal) mayUse(scopes []topology.Scope, operatorGroup string) error {
	if len(scopes) == 0 {
		return nil
	}
	if p.Subject == "" {
		return &refusal{code: codeUnauthenticated, detail: "send a bearer token that names its subject"}
	}
	for _, s := range scopes {
		if p.has(s) && (s != topology.ScopeOperate || p.isOperator(operatorGroup)) {
			return nil
		}
	}
	names := make([]string, len(scopes))
	for i, s := range scopes {
		names[i] = string(s)
	}
	detail := "this needs a token with one of these scopes: " + strings.Join(names, ", ")
	if slices.Contains(scopes, topology.ScopeOperate) {
		detail += "; operate needs the operator group as well"
	}
	return &refusal{code: codeForbidden, detail: detail}
}

func (p Principal) isOperator(group string) bool {
	return p.has(topology.ScopeOperate) && slices.Contains(p.Groups, group)
}
