package objects

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"holdfast/shared/system"
)

const (
	// CallFor bounds one call of S3.
	CallFor = 10 * time.Second
	// conflictTriesMax is how often an object is written that meets another writer of it.
	// The other's call ends within seconds.
	conflictTriesMax = 4
	// conflictPause is the pause before another try, times a number from 1 to 2.
	conflictPause = 200 * time.Millisecond
	// ListObjectsMax is how many names a page of a list has. It is S3's own limit:
	// https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
	ListObjectsMax = 1000
)

// The error codes of a conditional write. Source:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
const (
	codeExists   = "PreconditionFailed"         // 412: there is an object of that name
	codeConflict = "ConditionalRequestConflict" // 409: another write of it is running
)

// ErrNotThere is the error of an object that does not exist.
var ErrNotThere = errors.New("the object is not there")

// ErrTooLarge is the error of an object that is larger than its reader takes.
var ErrTooLarge = errors.New("the object is larger than any that is written there")

// Client is the part of the S3 client that a Bucket needs. It has no way to delete.
type Client interface {
	PutObject(ctx context.Context, in *s3.PutObjectInput, options ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	GetObject(ctx context.Context, in *s3.GetObjectInput, options ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input, options ...func(*s3.Options)) (*s3.ListObjectsV2Output, error)
}

var _ Client = (*s3.Client)(nil)

// Bucket is where objects are. An object is written once and never changed.
type Bucket struct {
	client Client
	name   string
	clock  system.Clock
	random system.Random
}

// NewBucket returns the bucket of that name.
func NewBucket(client Client, name string, clock system.Clock, random system.Random) *Bucket {
	return &Bucket{client: client, name: name, clock: clock, random: random}
}

// Create writes an object if there is none of its name. It reports false if there is one,
// which may be this very one: the answer of the first try can be lost. So the caller reads
// what is there. S3 compares the SHA-256 with what has arrived.
func (b *Bucket) Create(ctx context.Context, key, contentType string, body []byte) (bool, error) {
	sum := sha256.Sum256(body)
	for try := 1; ; try++ {
		err := b.put(ctx, &s3.PutObjectInput{
			Bucket: aws.String(b.name), Key: aws.String(key), Body: bytes.NewReader(body),
			ContentType: aws.String(contentType), ContentLength: aws.Int64(int64(len(body))),
			ChecksumSHA256: aws.String(base64.StdEncoding.EncodeToString(sum[:])),
			IfNoneMatch:    aws.String("*"),
		})
		switch code := CodeOf(err); {
		case err == nil:
			return true, nil
		case code == codeExists:
			return false, nil
		case code != codeConflict || try == conflictTriesMax:
			return false, fmt.Errorf("write the object %s: %w", key, err)
		}
		pause := conflictPause + time.Duration(b.random.Below(int64(conflictPause)))
		if err := b.clock.Sleep(ctx, pause); err != nil {
			return false, fmt.Errorf("write the object %s: %w", key, err)
		}
	}
}

func (b *Bucket) put(ctx context.Context, in *s3.PutObjectInput) error {
	ctx, cancel := context.WithTimeout(ctx, CallFor)
	defer cancel()
	_, err := b.client.PutObject(ctx, in)
	return err
}

// Read returns the whole object. It returns ErrNotThere as it is named, and ErrTooLarge for
// an object of more than bytesMax bytes.
func (b *Bucket) Read(ctx context.Context, key string, bytesMax int) (body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, CallFor)
	defer cancel()
	out, err := b.client.GetObject(ctx, &s3.GetObjectInput{
		Bucket: aws.String(b.name), Key: aws.String(key), ChecksumMode: types.ChecksumModeEnabled,
	})
	if absent := (*types.NoSuchKey)(nil); errors.As(err, &absent) {
		return nil, fmt.Errorf("read the object %s: %w", key, ErrNotThere)
	}
	if err != nil {
		return nil, fmt.Errorf("read the object %s: %w", key, err)
	}
	defer func() {
		if closing := out.Body.Close(); closing != nil && err == nil {
			err = fmt.Errorf("read the object %s: %w", key, closing)
		}
	}()
	body, err = io.ReadAll(io.LimitReader(out.Body, int64(bytesMax)+1))
	if err != nil {
		return nil, fmt.Errorf("read the object %s: %w", key, err)
	}
	if len(body) > bytesMax {
		return nil, fmt.Errorf("read the object %s: %w", key, ErrTooLarge)
	}
	return body, nil
}

// List returns one page of the names that begin with prefix and come after after, in their
// order, and where the next page begins: "" after the last one.
func (b *Bucket) List(ctx context.Context, prefix, after string) (keys []string, next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, CallFor)
	defer cancel()
	in := &s3.ListObjectsV2Input{Bucket: aws.String(b.name), Prefix: aws.String(prefix), MaxKeys: aws.Int32(ListObjectsMax)}
	if after != "" {
		in.StartAfter = aws.String(after)
	}
	out, err := b.client.ListObjectsV2(ctx, in)
	if err != nil {
		return nil, "", fmt.Errorf("list the objects under %s: %w", prefix, err)
	}
	for _, one := range out.Contents {
		keys = append(keys, aws.ToString(one.Key))
	}
	if aws.ToBool(out.IsTruncated) {
		if len(keys) == 0 || keys[len(keys)-1] <= after {
			return nil, "", fmt.Errorf("list the objects under %s: the list does not move on", prefix)
		}
		next = keys[len(keys)-1]
	}
	return keys, next, nil
}

// CodeOf is the code of an error that an AWS service has answered with, and "" for any other.
func CodeOf(err error) string {
	if failure := smithy.APIError(nil); errors.As(err, &failure) {
		return failure.ErrorCode()
	}
	return ""
}
