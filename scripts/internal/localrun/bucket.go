package localrun

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// createBucket makes the archive's bucket. It is empty at each start, as the emulator keeps
// it in memory.
func (s *System) createBucket(ctx context.Context) error {
	return s.cloud.CreateBucket(ctx, archiveBucketName)
}

// Archive returns a client of the archive's bucket, and its name, for looking into it from
// outside.
func (s *System) Archive() (client *s3.Client, bucket string) {
	return s.cloud.Objects(), archiveBucketName
}
