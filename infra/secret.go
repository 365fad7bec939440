package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/jsii-runtime-go"
)

// paymentSecretDescription is what the operator who must fill the secret reads in the
// console. Package config reads the value.
const paymentSecretDescription = "Keys of the payment provider for Holdfast. " +
	`Fill it by hand with {"api_key":"...","webhook_secrets":["..."]}; ` +
	"put a new webhook secret beside the old one, and take the old one out a day later"

// newPaymentSecret makes the secret without a value, which no template and no deployment
// ever has. It is written at the level of CloudFormation, because the construct for it
// generates a random value: that would look filled, and a later change of how it is
// generated would replace what the operator has put in.
//
// It is encrypted with the key that AWS manages for Secrets Manager in this account, so
// that no role needs a permission on the key.
func newPaymentSecret(stack awscdk.Stack, chosen stage) awssecretsmanager.CfnSecret {
	secret := awssecretsmanager.NewCfnSecret(stack, jsii.String("PaymentSecret"), &awssecretsmanager.CfnSecretProps{
		Description: jsii.String(paymentSecretDescription),
	})
	secret.ApplyRemovalPolicy(chosen.RemovalPolicy, nil)
	return secret
}
