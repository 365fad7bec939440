package archive

import (
	"context"

	"holdfast/shared/objects"
	"holdfast/shared/system"
)

// ObjectBytesMax bounds an object that is read: a batch of batchBytesMax that gzip makes no
// smaller still fits in.
const ObjectBytesMax = batchBytesMax + 1<<20

// Bucket is where the archive's objects are. An object is written once and never changed, but
// for the manifest of a batch that an [Eraser] has taken a name out of.
type Bucket struct{ objects *objects.Bucket }

// NewBucket returns the bucket of that name.
func NewBucket(client objects.Client, name string, clock system.Clock, random system.Random) *Bucket {
	return &Bucket{objects.NewBucket(client, name, clock, random)}
}

func (b *Bucket) create(ctx context.Context, key, contentType string, body []byte) (bool, error) {
	return b.objects.Create(ctx, key, contentType, body)
}

// read returns objects.ErrTooLarge for an object that is larger than the archive writes any.
func (b *Bucket) read(ctx context.Context, key string) ([]byte, error) {
	return b.objects.Read(ctx, key, ObjectBytesMax)
}

func (b *Bucket) list(ctx context.Context, prefix, after string) (keys []string, next string, err error) {
	return b.objects.List(ctx, prefix, after)
}
