package main

import (
	"slices"
	"strings"
	"testing"

	"holdfast/shared/topology"
)

// P12: no template has a value for the secret, and none makes one up: what an operator has
// put in would be lost at a later deployment.
func TestP12_TheTemplateHasNoPaymentKeys(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		if made := s.mustResources(t, "AWS::SecretsManager::Secret"); len(made) != 1 {
			t.Errorf("%d secrets, want one", len(made))
		}
		secret := s.mustResource(t, "AWS::SecretsManager::Secret", "PaymentSecret")
		for _, value := range []string{"SecretString", "GenerateSecretString", "Name"} {
			mustBe(t, value, secret.at(value), nil)
		}
		description, _ := secret.at("Description").(string)
		if !strings.Contains(description, `"api_key"`) || !strings.Contains(description, `"webhook_secrets"`) || !strings.Contains(description, "by hand") {
			t.Errorf("an operator is not told how to fill the secret: %q", description)
		}
	})
}

// Who is told where the secret is may read it, and nobody else may.
func TestTheSecretIsReadByWhoNeedsIt(t *testing.T) {
	eachStage(t, func(t *testing.T, s synthesis) {
		var readers []string
		for _, role := range s.mustResources(t, "AWS::IAM::Role") {
			for _, permission := range s.permissions(t, nameOf(role.ID)) {
				if strings.HasPrefix(permission, "secretsmanager:") {
					mustBe(t, nameOf(role.ID), permission, "secretsmanager:GetSecretValue on PaymentSecret")
					readers = append(readers, nameOf(role.ID))
				}
			}
		}
		if want := []string{"ApiFunctionRole", "AuditFunctionRole", "SagaFunctionRole", "WebhookFunctionRole"}; !slices.Equal(readers, want) {
			t.Errorf("the secret is read by %v, want %v", readers, want)
		}
		for _, f := range s.mustResources(t, "AWS::Lambda::Function") {
			told := f.at("Environment", "Variables", string(topology.VariablePaymentSecretID)) != nil
			if reads := slices.Contains(readers, nameOf(f.ID)+"Role"); told != reads {
				t.Errorf("%s is told where the secret is: %t, and may read it: %t", f.ID, told, reads)
			}
		}
	})
}
