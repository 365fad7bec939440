package gateway

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jwt"

	"holdfast/shared/topology"
)

// What the local issuer writes into a token, and a local gateway expects of it.
const (
	LocalIssuer   = "https://issuer.holdfast.localhost"
	LocalAudience = "holdfast-local"
)

const (
	keyFileName = "token-signing-key.pem"
	keyBits     = 2048
	pemType     = "PRIVATE KEY"
)

// Issuer makes tokens for a local run. Who can read its folder can be anyone.
type Issuer struct {
	private jwk.Key
	public  jwk.Set
}

// TokenRequest says what a token carries.
type TokenRequest struct {
	Subject string
	Scopes  []topology.Scope
	Groups  []string // left out of the token if empty
	Life    time.Duration
}

// LoadIssuer reads the signing key from the folder, or makes one if there is none.
// Several processes may do this at once and get the same key.
func LoadIssuer(folder string) (*Issuer, error) {
	path := filepath.Join(folder, keyFileName)
	encoded, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeKey(folder, path); err != nil {
			return nil, fmt.Errorf("make the token signing key: %w", err)
		}
		encoded, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("read the token signing key: %w", err)
	}
	issuer, err := parseIssuer(encoded)
	if err != nil {
		return nil, fmt.Errorf("token signing key %s: %w", path, err)
	}
	return issuer, nil
}

// makeKey writes a new key under a name of its own and links it to its path, which
// fails if another process was faster: then that one's key counts.
func makeKey(folder, path string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	key, err := rsa.GenerateKey(rand.Reader, keyBits)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	// os.CreateTemp makes files that only their owner can read.
	file, err := os.CreateTemp(folder, keyFileName)
	if err != nil {
		return err
	}
	err = errors.Join(pem.Encode(file, &pem.Block{Type: pemType, Bytes: der}), file.Close())
	if err == nil {
		if err = os.Link(file.Name(), path); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	return errors.Join(err, os.Remove(file.Name()))
}

func parseIssuer(encoded []byte) (*Issuer, error) {
	private, err := jwk.ParseKey(encoded, jwk.WithPEM(true))
	if err != nil {
		return nil, err
	}
	thumbprint, err := private.Thumbprint(crypto.SHA256)
	if err != nil {
		return nil, err
	}
	err = errors.Join(
		private.Set(jwk.KeyIDKey, base64.RawURLEncoding.EncodeToString(thumbprint)),
		private.Set(jwk.AlgorithmKey, jwa.RS256()),
	)
	if err != nil {
		return nil, err
	}
	public, err := private.PublicKey()
	if err != nil {
		return nil, err
	}
	set := jwk.NewSet()
	if err := set.AddKey(public); err != nil {
		return nil, err
	}
	return &Issuer{private: private, public: set}, nil
}

// PublicKeys returns the key set (JWKS) that checks this issuer's tokens.
func (i *Issuer) PublicKeys() jwk.Set { return i.public }

// Token returns a signed token that is valid from now on.
func (i *Issuer) Token(request TokenRequest, now time.Time) (string, error) {
	scopes := make([]string, len(request.Scopes))
	for n, scope := range request.Scopes {
		scopes[n] = string(scope)
	}
	builder := jwt.NewBuilder().
		Issuer(LocalIssuer).Audience([]string{LocalAudience}).Subject(request.Subject).
		IssuedAt(now).Expiration(now.Add(request.Life)).
		Claim("scope", strings.Join(scopes, " "))
	if len(request.Groups) > 0 {
		builder = builder.Claim("groups", request.Groups)
	}
	token, err := builder.Build()
	if err != nil {
		return "", fmt.Errorf("token of %q: %w", request.Subject, err)
	}
	signed, err := jwt.Sign(token, jwt.WithKey(jwa.RS256(), i.private))
	if err != nil {
		return "", fmt.Errorf("sign token of %q: %w", request.Subject, err)
	}
	return string(signed), nil
}
