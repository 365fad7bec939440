package gateway_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"

	"holdfast/scripts/internal/gateway"
	"holdfast/shared/topology"
)

// forge signs claims by any algorithm and key, under the issuer's key id.
func forge(t *testing.T, issuer *gateway.Issuer, algorithm jwa.SignatureAlgorithm, key any, claims map[string]any) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	public, _ := issuer.PublicKeys().Key(0)
	id, _ := public.KeyID()
	headers := jws.NewHeaders()
	if err := headers.Set(jws.KeyIDKey, id); err != nil {
		t.Fatal(err)
	}
	signed, err := jws.Sign(payload, jws.WithKey(algorithm, key, jws.WithProtectedHeaders(headers)))
	if err != nil {
		t.Fatal(err)
	}
	return string(signed)
}

// mustKey reads the issuer's private key from its folder.
func mustKey(t *testing.T, folder string) *rsa.PrivateKey {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.pem"))
	if err != nil || len(files) != 1 {
		t.Fatalf("key files = %v, %v; want one", files, err)
	}
	encoded, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := jwk.ParseKey(encoded, jwk.WithPEM(true))
	if err != nil {
		t.Fatal(err)
	}
	var key rsa.PrivateKey
	if err := jwk.Export(parsed, &key); err != nil {
		t.Fatal(err)
	}
	return &key
}

func claimsWith(change map[string]any) map[string]any {
	claims := map[string]any{
		"iss": gateway.LocalIssuer, "aud": gateway.LocalAudience, "sub": "U-17", "scope": "profile holds",
		"iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
	}
	for name, value := range change {
		if claims[name] = value; value == nil {
			delete(claims, name)
		}
	}
	return claims
}

func TestTokensAreChecked(t *testing.T) {
	folder := t.TempDir()
	issuer, err := gateway.LoadIssuer(folder)
	if err != nil {
		t.Fatal(err)
	}
	key := mustKey(t, folder)
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	publicBytes, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	signed := func(change map[string]any) string {
		return forge(t, issuer, jwa.RS256(), key, claimsWith(change))
	}
	unsigned := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + strings.Split(signed(nil), ".")[1] + "."
	parts := strings.Split(signed(nil), ".")
	tampered := parts[0] + "." + strings.Split(signed(map[string]any{"sub": "U-18"}), ".")[1] + "." + parts[2]
	second := func(offset time.Duration) int64 { return now.Add(offset).Unix() }
	tests := []struct {
		name   string
		header []string
		want   error
	}{
		{"valid", []string{"Bearer " + signed(nil)}, nil},
		{"valid, without a scheme", []string{signed(nil)}, nil},
		{"scp as a list", []string{signed(map[string]any{"scope": nil, "scp": []string{"confirm", "holds"}})}, nil},
		{"one of two audiences", []string{signed(map[string]any{"aud": []string{"other", gateway.LocalAudience}})}, nil},
		{"client_id in place of aud", []string{signed(map[string]any{"aud": nil, "client_id": gateway.LocalAudience})}, nil},

		{"no header", nil, gateway.ErrUnauthorized},
		{"two headers", []string{signed(nil), signed(nil)}, gateway.ErrUnauthorized},
		{"not a token", []string{"Bearer x"}, gateway.ErrUnauthorized},
		{"unsigned", []string{unsigned}, gateway.ErrUnauthorized},
		{"tampered", []string{tampered}, gateway.ErrUnauthorized},
		{"another key", []string{forge(t, issuer, jwa.RS256(), stranger, claimsWith(nil))}, gateway.ErrUnauthorized},
		{"another RSA algorithm", []string{forge(t, issuer, jwa.RS512(), key, claimsWith(nil))}, gateway.ErrUnauthorized},
		{"HMAC by the public key", []string{forge(t, issuer, jwa.HS256(), publicBytes, claimsWith(nil))}, gateway.ErrUnauthorized},
		{"another issuer", []string{signed(map[string]any{"iss": "https://other.example.com"})}, gateway.ErrUnauthorized},
		{"no issuer", []string{signed(map[string]any{"iss": nil})}, gateway.ErrUnauthorized},
		{"another audience", []string{signed(map[string]any{"aud": "other"})}, gateway.ErrUnauthorized},
		{"another audience, our client_id", []string{signed(map[string]any{"aud": "other", "client_id": gateway.LocalAudience})}, gateway.ErrUnauthorized},
		{"no audience", []string{signed(map[string]any{"aud": nil})}, gateway.ErrUnauthorized},
		{"expired", []string{signed(map[string]any{"exp": second(-time.Second)})}, gateway.ErrUnauthorized},
		{"no expiry", []string{signed(map[string]any{"exp": nil})}, gateway.ErrUnauthorized},
		{"not valid yet", []string{signed(map[string]any{"nbf": second(time.Minute)})}, gateway.ErrUnauthorized},
		{"issued in the future", []string{signed(map[string]any{"iat": second(time.Minute)})}, gateway.ErrUnauthorized},

		{"no scope", []string{signed(map[string]any{"scope": nil})}, gateway.ErrForbidden},
		{"scope that only begins alike", []string{signed(map[string]any{"scope": "holds2 hold"})}, gateway.ErrForbidden},
		{"scope of an odd type", []string{signed(map[string]any{"scope": 7})}, gateway.ErrForbidden},
	}
	authorizer := &gateway.Authorizer{
		Keys: issuer.PublicKeys(), Issuer: gateway.LocalIssuer, Audience: gateway.LocalAudience,
		Now: func() time.Time { return now },
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			claims, err := authorizer.Authorize(test.header, []topology.Scope{topology.ScopeHolds, topology.ScopeOperate})
			if !errors.Is(err, test.want) {
				t.Errorf("error = %v, want %v", err, test.want)
			}
			if (test.want == nil) != (claims["sub"] == "U-17") {
				t.Errorf("claims = %v", claims)
			}
		})
	}
}

// Case L1: whom another issuer vouches for is nobody here, whichever route is called and
// whatever the token says, and the function is not even started. The other issuer signs
// with a key of its own, also when the token claims to be from ours.
func TestCaseL1_ATokenOfAnotherIssuerReachesNothing(t *testing.T) {
	s := mustServe(t, nil)
	folder := t.TempDir()
	other, err := gateway.LoadIssuer(folder)
	if err != nil {
		t.Fatal(err)
	}
	key := mustKey(t, folder)
	scopes := "holds confirm catalog operate"
	foreign := claimsWith(map[string]any{"iss": "https://other.example.com", "scope": scopes, "groups": []string{"ops"}})
	pretending := claimsWith(map[string]any{"scope": scopes, "groups": []string{"ops"}})
	path := strings.NewReplacer("{hold_id}", "hold_1", "{slot_id}", "seat")
	protected := 0
	for _, route := range topology.Routes() {
		if len(route.Scopes) == 0 {
			continue
		}
		protected++
		for _, token := range []string{
			forge(t, other, jwa.RS256(), key, foreign), forge(t, other, jwa.RS256(), key, pretending),
			forge(t, s.issuer, jwa.RS256(), key, pretending), // under the id of our key
		} {
			response, body := s.send(t, []string{route.Method + " " + path.Replace(route.Path) + " HTTP/1.1", "Authorization: Bearer " + token}, "")
			wantAnswer(t, response, body, http.StatusUnauthorized, `{"message":"Unauthorized"}`)
		}
	}
	if protected == 0 || s.function.payload != nil {
		t.Errorf("%d protected routes; the function got %s", protected, s.function.payload)
	}
}

func TestRefusedTokensAnswerAsOnAWS(t *testing.T) {
	s := mustServe(t, nil)
	response, body := s.send(t, []string{"GET /v1/holds HTTP/1.1"}, "")
	wantAnswer(t, response, body, http.StatusUnauthorized, `{"message":"Unauthorized"}`)
	if got := response.Header.Get("Www-Authenticate"); got != "Bearer" {
		t.Errorf("challenge = %q", got)
	}
	response, body = s.send(t, []string{"GET /v1/holds HTTP/1.1", "Authorization: " + s.token(t, topology.ScopeCatalog)}, "")
	wantAnswer(t, response, body, http.StatusForbidden, `{"message":"Forbidden"}`)
	if s.function.payload != nil {
		t.Error("a refused request reached the function")
	}
}

func TestRenderClaims(t *testing.T) {
	got := gateway.RenderClaims(map[string]any{
		"text": "ops", "list": []any{"ops", "support"}, "one": []any{"ops support]"}, "none": []any{},
		"flag": true, "number": json.Number("1570726625494837000"), "mixed": []any{"a", json.Number("1"), false},
	})
	want := map[string]any{
		"text": "ops", "list": "[ops support]", "one": "[ops support]]", "none": "[]",
		"flag": "true", "number": "1570726625494837000", "mixed": "[a 1 false]",
	}
	if mustJSON(t, got) != mustJSON(t, want) {
		t.Errorf("rendered = %v, want %v", got, want)
	}
}

// The token sub-command and the running gateway meet only in the key's file, and may
// both be the first to want it.
func TestIssuersOfOneFolderShareAKeyThatOnlyTheOwnerCanRead(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "made")
	const together = 4
	issuers := make([]*gateway.Issuer, together)
	var loading sync.WaitGroup
	for i := range together {
		loading.Go(func() {
			var err error
			if issuers[i], err = gateway.LoadIssuer(folder); err != nil {
				t.Error(err)
			}
		})
	}
	loading.Wait()
	if t.Failed() {
		return
	}
	for _, issuer := range issuers {
		token, err := issuer.Token(gateway.TokenRequest{Subject: "U-17", Scopes: []topology.Scope{topology.ScopeHolds}, Life: time.Minute}, now)
		if err != nil {
			t.Fatal(err)
		}
		authorizer := &gateway.Authorizer{
			Keys: issuers[0].PublicKeys(), Issuer: gateway.LocalIssuer, Audience: gateway.LocalAudience,
			Now: func() time.Time { return now },
		}
		if _, err := authorizer.Authorize([]string{token}, []topology.Scope{topology.ScopeHolds}); err != nil {
			t.Error(err)
		}
	}
	files, err := os.ReadDir(folder)
	if err != nil || len(files) != 1 {
		t.Fatalf("files = %v, %v; want the key alone", files, err)
	}
	info, err := files[0].Info()
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode = %v, %v; want 0600", info.Mode(), err)
	}
	var public rsa.PublicKey
	first, _ := issuers[0].PublicKeys().Key(0)
	if err := jwk.Export(first, &public); err != nil {
		t.Errorf("the published key is not a public RSA key: %v", err)
	}
}

func TestBrokenKeyFileIsAnError(t *testing.T) {
	folder := t.TempDir()
	if _, err := gateway.LoadIssuer(folder); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], []byte("not a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := gateway.LoadIssuer(folder); err == nil {
		t.Error("no error")
	}
}
