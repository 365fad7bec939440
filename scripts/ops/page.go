package main

import (
	"context"
	"fmt"

	"holdfast/shared/due"
	"holdfast/shared/ledger"
)

// pagesMax bounds the pages that are read of one list, of ledger.PageItemsMax entries or
// objects.ListObjectsMax names: more than that no operator works on at once.
const pagesMax = 10_000

// eachPage reads page after page, from the first on, until there is no next one.
func eachPage[C ~string](read func(after C) (next C, err error)) error {
	var after C
	for range pagesMax {
		next, err := read(after)
		if err != nil || next == "" {
			return err
		}
		after = next
	}
	return fmt.Errorf("the list has more than %d pages; run the command again", pagesMax)
}

// eachEntry hands every entry of these shards to take, and ends with its first error.
func eachEntry[T any](ctx context.Context, shards []int, list due.List[T], take func(T) error) error {
	for _, shard := range shards {
		err := eachPage(func(after ledger.Cursor) (ledger.Cursor, error) {
			entries, next, err := list(ctx, shard, ledger.Page{Limit: ledger.PageItemsMax, After: after})
			if err != nil {
				return "", err
			}
			for _, entry := range entries {
				if err := take(entry); err != nil {
					return "", err
				}
			}
			return next, nil
		})
		if err != nil {
			return fmt.Errorf("shard %d: %w", shard, err)
		}
	}
	return nil
}
