package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
)

const bucketName = "sim-archive"

// objects is the archive's bucket as one function instance meets it.
type objects struct {
	world    *world
	instance *instance
}

// PutObject writes an object, unless another write of it is said to be running.
func (o *objects) PutObject(ctx context.Context, in *s3.PutObjectInput, options ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	return object(o, "PutObject", func(d *dice) (*s3.PutObjectOutput, error) {
		if d.chance(o.world.faults.ObjectConflict) {
			return nil, &smithy.GenericAPIError{Code: "ConditionalRequestConflict", Message: "simulated"}
		}
		return o.world.bucket.PutObject(ctx, in, options...)
	})
}

// GetObject reads an object.
func (o *objects) GetObject(ctx context.Context, in *s3.GetObjectInput, options ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	return object(o, "GetObject", func(*dice) (*s3.GetObjectOutput, error) { return o.world.bucket.GetObject(ctx, in, options...) })
}

// ListObjectsV2 lists names.
func (o *objects) ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input, options ...func(*s3.Options)) (*s3.ListObjectsV2Output, error) {
	return object(o, "ListObjectsV2", func(*dice) (*s3.ListObjectsV2Output, error) {
		return o.world.bucket.ListObjectsV2(ctx, in, options...)
	})
}

func object[T any](o *objects, operation string, carryOut func(d *dice) (*T, error)) (*T, error) {
	var out *T
	var refused error
	f := o.world.faults
	err := o.instance.call(f.ObjectLostRequest, f.ObjectAnswerLost, func(d *dice) { out, refused = carryOut(d) })
	if err = errors.Join(err, refused); err != nil {
		return nil, fmt.Errorf("%s: %w", operation, err)
	}
	return out, nil
}
