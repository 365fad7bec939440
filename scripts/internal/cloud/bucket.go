package cloud

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// CreateBucket makes a bucket. One of that name that is there already is an error.
func (c *Cloud) CreateBucket(ctx context.Context, name string) error {
	if _, err := c.Objects().CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(name)}); err != nil {
		return fmt.Errorf("create bucket %s: %w", name, err)
	}
	return nil
}

// Objects returns a client of the buckets. It names the bucket in the path, as the emulator
// is one host and not one for each bucket.
func (c *Cloud) Objects() *s3.Client {
	return s3.NewFromConfig(c.AWSConfig(), func(o *s3.Options) { o.UsePathStyle = true })
}
