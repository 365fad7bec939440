package main

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"holdfast/shared/archive"
	"holdfast/shared/config"
	"holdfast/shared/dynamo"
	"holdfast/shared/ledger"
)

const (
	// forgetKeyName is the file of the local run's key, in localFolderName.
	forgetKeyName = "forget.key"
	// forgetPassesMax bounds how often the table is read whole: the last time nothing of the
	// owner is found.
	forgetPassesMax = 3
	// keepersMax bounds how many of those that keep an owner from being forgotten are named.
	keepersMax = 20
)

// forgetChoice is what the operator says of a forgetting.
type forgetChoice struct{ keyFile string }

func forgetFlags(flags *flag.FlagSet, o *operator) {
	flags.StringVar(&o.forgetting.keyFile, "key", "", fmt.Sprintf("file with the secret key, of at least %d bytes, always the same one (default for the local run: %s/%s, made when there is none)", ledger.ForgetKeyBytesMin, localFolderName, forgetKeyName))
	o.yesFlag(flags)
}

// forgotten is what a forgetting has done, or would do.
type forgotten struct {
	// Name stands for the owner from now on; "" where nothing was done.
	Name         ledger.OwnerID `json:"name,omitempty"`
	Holds        int            `json:"holds"`
	Reservations int            `json:"reservations"`
	Events       int            `json:"events"`
	Counts       int            `json:"counts"`
	Others       int            `json:"others"`
	// Batches of the archive were rewritten, and Versions of their objects deleted.
	Batches  int `json:"archive_batches"`
	Versions int `json:"archive_versions_deleted"`
	// Left still name the owner, and can't be changed: slots that are called after the owner.
	Left []string `json:"left,omitempty"`
	// Would is what -yes does, where it was not given.
	Would string `json:"would,omitempty"`
}

// wouldForget is what a forgetting does, beside the numbers.
const wouldForget = `With -yes the owner's name is written over in these holds and reservations, in their events, in what is counted of the owner,
and in cases that name the owner. Then the whole table is read to find the rest, and every object of the archive with each old
version of it: those that have the name are rewritten, verified, and deleted for ever. It can't be undone.
`

// forgetOwner erases what identifies a person: everywhere the owner's name is written over by
// another, which follows from it and a key, so that all sums stay. It may be repeated, and
// killed at any moment and run again.
func forgetOwner(ctx context.Context, o *operator, arguments []string) error {
	if len(arguments) != 1 || arguments[0] == "" {
		return errors.New("forget: say the one OWNER")
	}
	owner := ledger.OwnerID(arguments[0])
	f := &forgetting{operator: o, forgetter: dynamo.NewForgetter(o.client, o.store, owner, "")}
	if err := f.mayBeForgotten(ctx); err != nil {
		return fmt.Errorf("forget: %w", err)
	}
	if !o.yes {
		f.done.Would = wouldForget
		return errors.Join(o.printForgotten(f.done), fmt.Errorf("forget: %w", errNotSaidYes))
	}
	key, err := o.forgetKey()
	if err != nil {
		return fmt.Errorf("forget: %w", err)
	}
	if f.done.Name, err = ledger.ForgottenOwner(key, owner); err != nil {
		return fmt.Errorf("forget: %w", err)
	}
	f.done = forgotten{Name: f.done.Name}
	f.forgetter = dynamo.NewForgetter(o.client, o.store, owner, f.done.Name)
	failure := f.run(ctx)
	if failure != nil {
		failure = fmt.Errorf("forget: %w; run it again, it goes on where it stopped", failure)
	}
	return errors.Join(failure, o.printForgotten(f.done), f.left())
}

// forgetting is one run.
type forgetting struct {
	*operator
	forgetter *dynamo.Forgetter
	done      forgotten
}

// mayBeForgotten counts what the owner has, and returns an error that names what keeps the
// owner from being forgotten.
func (f *forgetting) mayBeForgotten(ctx context.Context) error {
	var keepers []string
	kept := 0
	err := f.each(ctx, func(one dynamo.Owned) error {
		reason := ""
		if one.Hold != nil {
			f.done.Holds++
			reason = one.Hold.KeepsFromForgetting()
		} else {
			f.done.Reservations++
			reason = one.Reservation.KeepsFromForgetting()
		}
		if reason != "" {
			kept++
			if len(keepers) < keepersMax {
				keepers = append(keepers, reason)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if kept > 0 {
		return fmt.Errorf("nothing was changed: the owner has %d holds or reservations under way. End them first: %s", kept, strings.Join(keepers, "; "))
	}
	return nil
}

// each hands on all that the owner index lists.
func (f *forgetting) each(ctx context.Context, take func(dynamo.Owned) error) error {
	for _, list := range []func(context.Context, ledger.Page) ([]dynamo.Owned, ledger.Cursor, error){f.forgetter.OwnedHolds, f.forgetter.OwnedReservations} {
		err := eachPage(func(after ledger.Cursor) (ledger.Cursor, error) {
			page, next, err := list(ctx, ledger.Page{Limit: ledger.PageItemsMax, After: after})
			for _, one := range page {
				if err == nil {
					err = take(one)
				}
			}
			return next, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// run forgets what the owner index lists; what is still counted; what a read of the whole table
// finds, where the index was late or has nothing; and at last what lies in the archive.
func (f *forgetting) run(ctx context.Context) error {
	err := f.each(ctx, func(one dynamo.Owned) error {
		events, err := f.forgetter.Events(ctx, one.Item)
		if err != nil {
			return err
		}
		// The events first: as long as the thing itself names the owner, the index lists it.
		for _, at := range append(events, one.Item) {
			if _, err := f.forget(ctx, at); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := f.sweep(ctx); err != nil {
		return err
	}
	return f.erase(ctx)
}

// forget forgets the owner in one item, counts it, and reports whether that changed the item.
func (f *forgetting) forget(ctx context.Context, at ledger.EventItem) (bool, error) {
	changed, err := f.forgetter.Forget(ctx, at)
	if err != nil || !changed {
		return false, err
	}
	switch {
	case at.SortKey == "HOLD":
		f.done.Holds++
	case at.SortKey == "RES":
		f.done.Reservations++
	case at.SortKey == "QUOTA":
		f.done.Counts++
	case strings.HasPrefix(at.SortKey, "EVENT#"):
		f.done.Events++
	default:
		f.done.Others++
	}
	return true, nil
}

// sweep reads the whole table until it finds the owner nowhere that can be changed.
func (f *forgetting) sweep(ctx context.Context) error {
	for range forgetPassesMax {
		named, err := f.named(ctx)
		if err != nil {
			return err
		}
		var left []string
		for _, at := range named {
			changed, err := f.forget(ctx, at)
			if err != nil {
				return err
			}
			if !changed {
				left = append(left, at.String())
			}
		}
		if len(left) == len(named) {
			f.done.Left = left
			return nil
		}
	}
	return fmt.Errorf("the table still got items with the name after %d passes: the owner still does something", forgetPassesMax)
}

// named are all items of the table that name the owner.
func (f *forgetting) named(ctx context.Context) ([]ledger.EventItem, error) {
	var mutex sync.Mutex
	var all []ledger.EventItem
	failures := make([]error, storySegments)
	var group sync.WaitGroup
	for segment := range storySegments {
		group.Go(func() {
			failures[segment] = eachPage(func(after ledger.Cursor) (ledger.Cursor, error) {
				page, next, err := f.forgetter.ScanNamed(ctx, segment, storySegments, after)
				mutex.Lock()
				defer mutex.Unlock()
				all = append(all, page...)
				return next, err
			})
		})
	}
	group.Wait()
	slices.SortFunc(all, func(a, b ledger.EventItem) int { return strings.Compare(a.String(), b.String()) })
	return all, errors.Join(failures...)
}

// erase takes the owner out of the archive.
func (f *forgetting) erase(ctx context.Context) error {
	eraser := archive.NewEraser(f.archive(), f.objects(), f.config.ArchiveBucketName, f.store, f.forgetter.ForgetText)
	erased, err := eraser.Run(ctx)
	f.done.Batches, f.done.Versions = erased.Rewritten, erased.Deleted
	if err == nil && len(erased.Running) > 0 {
		err = fmt.Errorf("%d batches are being archived now, the first is %s", len(erased.Running), erased.Running[0])
	}
	return err
}

// objects is the client of the archive's bucket.
func (o *operator) objects() *s3.Client {
	return s3.NewFromConfig(o.aws, func(options *s3.Options) {
		if o.config.Local() {
			options.BaseEndpoint = config.Endpoint(o.config.LocalS3Endpoint)
			options.UsePathStyle = true
		}
	})
}

// left is an error while something still names the owner: nobody may believe that all is gone.
func (f *forgetting) left() error {
	if len(f.done.Left) == 0 {
		return nil
	}
	return fmt.Errorf("forget: %d items still name the owner in what can't be changed, such as the id of a slot; they are listed as left", len(f.done.Left))
}

func (o *operator) printForgotten(done forgotten) error {
	err := o.table(done, "NAME\tHOLDS\tRESERVATIONS\tEVENTS\tCOUNTS\tOTHERS\tARCHIVE BATCHES\tVERSIONS DELETED\tLEFT", func(print func(...any)) {
		name := done.Name
		if name == "" {
			name = "-"
		}
		print(name, done.Holds, done.Reservations, done.Events, done.Counts, done.Others, done.Batches, done.Versions, len(done.Left))
	})
	if err != nil || o.json {
		return err
	}
	text := done.Would
	if len(done.Left) > 0 {
		text = "left:\n  " + strings.Join(done.Left, "\n  ") + "\n"
	}
	if text != "" {
		_, err = fmt.Fprint(o.out, "\n"+text)
	}
	return err
}

// forgetKey reads the key, or that of the local run, which it makes.
func (o *operator) forgetKey() ([]byte, error) {
	file := o.forgetting.keyFile
	if file == "" {
		if o.folder == "" {
			return nil, errors.New("say -key FILE: a stage has a key of its own, which must be kept and always be the same")
		}
		file = filepath.Join(o.folder, forgetKeyName)
		if err := makeKey(file); err != nil {
			return nil, err
		}
	}
	key, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	return key, nil
}

// makeKey writes a new key if there is no file of that name. It is written whole or not at
// all: two keys for one run would be two names for one owner.
func makeKey(file string) error {
	_, err := os.Stat(file)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	key := make([]byte, ledger.ForgetKeyBytesMin)
	_, _ = rand.Read(key) // it never fails: see the package
	next := file + ".new"
	if err := os.WriteFile(next, key, 0o600); err != nil {
		return fmt.Errorf("make the key: %w", err)
	}
	if err := os.Rename(next, file); err != nil {
		return fmt.Errorf("make the key: %w", err)
	}
	return nil
}
