// Package archivetest is an S3 bucket in memory for tests, which can be told to fail.
//
// The problem it solves: the interesting part of an archive is what happens when a write
// succeeds and its answer is lost, when two writers meet, or when an object is not what was
// written. A real bucket does that when nobody looks. The Bucket here does it on order, and
// checks what it is given by its own arithmetic.
package archivetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

// ErrDown is the error of a bucket that can't be reached.
var ErrDown = errors.New("archivetest: connection refused")

// ErrAnswerLost is the error of a call that was carried out all the same.
var ErrAnswerLost = errors.New("archivetest: connection reset while reading the answer")

// keysMax is the most names that S3 gives in a page, see
// https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html.
const keysMax = 1000

// Operation names a call of the bucket.
type Operation string

// The operations.
const (
	Put  Operation = "PutObject"
	Get  Operation = "GetObject"
	List Operation = "ListObjectsV2"
)

// Fault is what goes wrong with one call.
type Fault int

// The faults.
const (
	None       Fault = iota
	Down             // nothing is done
	LoseAnswer       // the call is carried out, and its answer lost
	Conflict         // 409: another conditional write of the same name is running
)

// Bucket is a bucket of one name. Use NewBucket; it is safe for concurrent use.
type Bucket struct {
	mutex      sync.Mutex
	name       string
	objects    map[string][]byte
	violations []string
	fault      func(operation Operation, key string) Fault
	pageKeys   int
	writes     int
}

// NewBucket returns an empty bucket.
func NewBucket(name string) *Bucket {
	return &Bucket{name: name, objects: make(map[string][]byte), pageKeys: keysMax}
}

// Order makes every call ask what goes wrong with it; nil for nothing.
func (b *Bucket) Order(fault func(operation Operation, key string) Fault) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.fault = fault
}

// Page makes a list give at most so many names at once.
func (b *Bucket) Page(keys int) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.pageKeys = keys
}

// Tamper replaces the bytes of an object, as no client of the archive may. Nil removes it.
func (b *Bucket) Tamper(key string, change func([]byte) []byte) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if changed := change(bytes.Clone(b.objects[key])); changed != nil {
		b.objects[key] = changed
	} else {
		delete(b.objects, key)
	}
}

// Object returns the bytes of an object, and whether it is there.
func (b *Bucket) Object(key string) ([]byte, bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	body, there := b.objects[key]
	return bytes.Clone(body), there
}

// Keys returns the names of all objects, in their order.
func (b *Bucket) Keys() []string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.keys()
}

func (b *Bucket) keys() []string {
	keys := make([]string, 0, len(b.objects))
	for key := range b.objects {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// Writes counts the objects that were written.
func (b *Bucket) Writes() int {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.writes
}

// Violations says which calls S3 would have refused, or would have carried out to the
// archive's harm.
func (b *Bucket) Violations() []string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return slices.Clone(b.violations)
}

func (b *Bucket) begin(operation Operation, bucket *string, key string) (Fault, error) {
	if aws.ToString(bucket) != b.name {
		return None, &types.NoSuchBucket{}
	}
	fault := None
	if b.fault != nil {
		fault = b.fault(operation, key)
	}
	switch fault {
	case Down:
		return fault, ErrDown
	case Conflict:
		return fault, &smithy.GenericAPIError{Code: "ConditionalRequestConflict", Message: "409"}
	default:
		return fault, nil
	}
}

// PutObject writes an object. One that is there already is refused, if the call says so.
func (b *Bucket) PutObject(ctx context.Context, in *s3.PutObjectInput, _ ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(in.Body)
	if err != nil {
		return nil, err
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	key := aws.ToString(in.Key)
	fault, err := b.begin(Put, in.Bucket, key)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(body)
	switch {
	case aws.ToString(in.IfNoneMatch) != "*":
		b.violations = append(b.violations, fmt.Sprintf("%s was written without a condition", key))
	case aws.ToString(in.ChecksumSHA256) != base64.StdEncoding.EncodeToString(sum[:]):
		b.violations = append(b.violations, fmt.Sprintf("%s was written with a wrong checksum", key))
		return nil, &smithy.GenericAPIError{Code: "BadDigest", Message: "400"}
	case aws.ToInt64(in.ContentLength) != int64(len(body)):
		b.violations = append(b.violations, fmt.Sprintf("%s was written with a wrong length", key))
	}
	if _, there := b.objects[key]; there {
		return nil, &smithy.GenericAPIError{Code: "PreconditionFailed", Message: "412"}
	}
	b.objects[key] = body
	b.writes++
	if fault == LoseAnswer {
		return nil, ErrAnswerLost
	}
	return &s3.PutObjectOutput{}, nil
}

// GetObject reads an object.
func (b *Bucket) GetObject(ctx context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	key := aws.ToString(in.Key)
	fault, err := b.begin(Get, in.Bucket, key)
	if err != nil {
		return nil, err
	}
	body, there := b.objects[key]
	if !there {
		return nil, &types.NoSuchKey{}
	}
	if fault == LoseAnswer {
		return &s3.GetObjectOutput{Body: io.NopCloser(io.MultiReader(bytes.NewReader(body[:len(body)/2]), broken{}))}, nil
	}
	return &s3.GetObjectOutput{Body: io.NopCloser(bytes.NewReader(bytes.Clone(body)))}, nil
}

// broken is a connection that ends in the middle.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, ErrAnswerLost }

// ListObjectsV2 lists names in their order.
func (b *Bucket) ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input, _ ...func(*s3.Options)) (*s3.ListObjectsV2Output, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	prefix := aws.ToString(in.Prefix)
	fault, err := b.begin(List, in.Bucket, prefix)
	if err != nil {
		return nil, err
	}
	if fault == LoseAnswer {
		return nil, ErrAnswerLost
	}
	limit := min(b.pageKeys, int(aws.ToInt32(in.MaxKeys)), keysMax)
	out := &s3.ListObjectsV2Output{}
	for _, key := range b.keys() {
		if !strings.HasPrefix(key, prefix) || key <= aws.ToString(in.StartAfter) {
			continue
		}
		if len(out.Contents) == limit {
			out.IsTruncated = aws.Bool(true)
			break
		}
		out.Contents = append(out.Contents, types.Object{Key: aws.String(key), Size: aws.Int64(int64(len(b.objects[key])))})
	}
	return out, nil
}
