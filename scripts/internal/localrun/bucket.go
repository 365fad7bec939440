package localrun

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"holdfast/shared/objects"
	"holdfast/shared/reconcile"
	"holdfast/shared/system"
)

// createBuckets makes the buckets of the archive and of the audit. They are empty at each
// start, as the emulator keeps them in memory.
func (s *System) createBuckets(ctx context.Context) error {
	return errors.Join(s.cloud.CreateBucket(ctx, archiveBucketName), s.cloud.CreateBucket(ctx, auditBucketName))
}

// Archive returns a client of the archive's bucket, and its name, for looking into it from
// outside.
func (s *System) Archive() (client *s3.Client, bucket string) {
	return s.cloud.Objects(), archiveBucketName
}

// AuditShelf has what the audits of this run saw, and their reports.
func (s *System) AuditShelf() *reconcile.Shelf {
	return reconcile.NewShelf(objects.NewBucket(s.cloud.Objects(), auditBucketName, system.RealClock{}, system.RealRandom{}))
}
