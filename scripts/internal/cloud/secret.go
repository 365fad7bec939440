package cloud

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
)

// PutSecret gives the secret of that name a value, and makes the secret if there is none.
// Whoever reads it from then on gets this value.
func (c *Cloud) PutSecret(ctx context.Context, name, value string) error {
	_, err := c.secrets.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{
		SecretId: aws.String(name), SecretString: aws.String(value),
	})
	if missing := (*types.ResourceNotFoundException)(nil); errors.As(err, &missing) {
		_, err = c.secrets.CreateSecret(ctx, &secretsmanager.CreateSecretInput{
			Name: aws.String(name), SecretString: aws.String(value),
		})
	}
	if err != nil {
		return fmt.Errorf("put secret %s: %w", name, err)
	}
	return nil
}
