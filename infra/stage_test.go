package main

import (
	"strings"
	"testing"
)

const testAccount = "123456789012"

func TestReadSettings(t *testing.T) {
	issuer, audience, email := "https://login.example.com", "shop", "ops@example.com"
	full := map[string]any{contextStage: "prod", contextJWTIssuer: issuer, contextJWTAudience: audience, contextAlarmEmail: email}
	without := func(key string) map[string]any {
		less := map[string]any{}
		for k, v := range full {
			if k != key {
				less[k] = v
			}
		}
		return less
	}
	with := func(key string, value any) map[string]any {
		other := without(key)
		other[key] = value
		return other
	}
	cases := []struct {
		name    string
		context map[string]any
		account string
		// wantError holds what the message must name; empty means no error.
		wantError   []string
		wantExample bool
	}{
		{"no stage", map[string]any{}, "", []string{`"stage"`, "dev, staging, prod"}, false},
		{"unknown stage", map[string]any{contextStage: "production"}, "", []string{`"production"`, "dev, staging, prod"}, false},
		{"stage in capitals", map[string]any{contextStage: "Prod"}, "", []string{`"Prod"`, "dev, staging, prod"}, false},
		{"stage of an odd type", map[string]any{contextStage: 1}, "", []string{"dev, staging, prod"}, false},
		{"synth without an account", map[string]any{contextStage: "prod"}, "", nil, true},
		{"deploy without issuer and audience", map[string]any{contextStage: "dev"}, testAccount, []string{"jwtIssuer", "jwtAudience"}, false},
		{"issuer without audience", without(contextJWTAudience), "", []string{"jwtAudience"}, false},
		{"audience without issuer", without(contextJWTIssuer), "", []string{"jwtIssuer"}, false},
		{"issuer over http", with(contextJWTIssuer, "http://login.example.com"), "", []string{"https"}, false},
		{"issuer that is no URL", with(contextJWTIssuer, "login"), "", []string{"https"}, false},
		{"deploy with the example issuer", with(contextJWTIssuer, exampleIssuer), testAccount, []string{"example"}, false},
		{"deploy of prod that nobody listens to", without(contextAlarmEmail), testAccount, []string{"alarmEmail"}, false},
		{"deploy of prod", full, testAccount, nil, false},
		{"deploy of dev that nobody listens to", with(contextStage, "dev"), testAccount, nil, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := readSettings(newTestApp(t.TempDir(), c.context).Node(), c.account)
			for _, part := range c.wantError {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("error %v does not name %s", err, part)
				}
			}
			if len(c.wantError) > 0 {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.Example != c.wantExample {
				t.Errorf("example settings: %t, want %t", got.Example, c.wantExample)
			}
			if !c.wantExample && (got.JWTIssuer != issuer || got.JWTAudience != audience) {
				t.Errorf("got issuer %q and audience %q", got.JWTIssuer, got.JWTAudience)
			}
		})
	}
}

func TestStagesAreComplete(t *testing.T) {
	for _, s := range stages() {
		if s.RemovalPolicy == "" || s.LogRetention == "" || s.OperatorGroup == "" ||
			s.ExampleIssuer == "" || s.ExampleAudience == "" {
			t.Errorf("stage %s is not complete: %+v", s.Name, s)
		}
		if s.ThrottleFactor <= 0 || s.ThrottleFactor > 1 {
			t.Errorf("stage %s: throttle factor %g", s.Name, s.ThrottleFactor)
		}
		// A record is at hand for a month at least, and financial ones for more than a year.
		if s.ArchiveHoldsAfterDays < 30 || s.ArchiveHoldsAfterDays > 90 || s.ArchiveReservationsAfterDays < 400 {
			t.Errorf("stage %s: holds leave the table after %d days, reservations after %d", s.Name, s.ArchiveHoldsAfterDays, s.ArchiveReservationsAfterDays)
		}
		// The sweep reads 100 to 500 items a page.
		if s.SweepPageItems < 100 || s.SweepPageItems > 500 {
			t.Errorf("stage %s: %d items a page", s.Name, s.SweepPageItems)
		}
	}
}

// The gateway must not let a deployment believe in an issuer that was only meant to
// make a template.
func TestExampleSettingsAreWarnedAbout(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		if !hasAnnotation(s, "warning", "example") {
			t.Error("no warning that the issuer is an example")
		}
	})
}
