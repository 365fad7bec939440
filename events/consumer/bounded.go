package consumer

import (
	"container/list"
	"context"
	"slices"
	"sync"
)

const (
	// SubjectsMaxDefault is enough for the subjects of a busy hour, in some tens of MB.
	SubjectsMaxDefault = 50_000
	// EventsPerSubjectMax is how many events of one subject are remembered, the latest. It
	// is more than a hold or a reservation has in its life; a slot that is changed all the
	// time has its highest version besides.
	EventsPerSubjectMax = 64
)

// Bounded is a Memory in the process. It forgets the subjects that were not heard of for
// longest, so it is no protection against an event that comes again after many others, or
// after a restart. Use NewBounded; it is safe for concurrent use.
type Bounded struct {
	subjectsMax int

	mutex    sync.Mutex
	subjects map[Subject]*list.Element // each Value is a *remembered
	order    *list.List                // the latest first
}

// remembered is one subject. Its seen and version are used by who has its turn only; waiting
// belongs to the Bounded's mutex.
type remembered struct {
	subject Subject
	// turn has room for the one who may read and remember.
	turn    chan struct{}
	waiting int // calls that have or want the turn; while there is one, it is not forgotten
	version Version
	events  []EventID // the latest last
}

var _ Memory = (*Bounded)(nil)

// NewBounded returns a Memory of at most subjectsMax subjects, beside those that are being
// handled. A number below 1 counts as SubjectsMaxDefault.
func NewBounded(subjectsMax int) *Bounded {
	if subjectsMax < 1 {
		subjectsMax = SubjectsMaxDefault
	}
	return &Bounded{subjectsMax: subjectsMax, subjects: make(map[Subject]*list.Element), order: list.New()}
}

// Once waits until no other event of the subject is being handled, or until ctx ends, whose
// error it then returns.
func (b *Bounded) Once(ctx context.Context, e Event, decide Decide) error {
	r := b.enter(e.Subject)
	defer b.leave(r)
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	handled, err := decide(ctx, Seen{Event: slices.Contains(r.events, e.ID), Version: r.version})
	if err != nil || !handled {
		return err
	}
	r.version = max(r.version, e.Version)
	if len(r.events) == EventsPerSubjectMax {
		r.events = append(r.events[:0], r.events[1:]...)
	}
	r.events = append(r.events, e.ID)
	return nil
}

// enter finds the subject, or begins to remember it.
func (b *Bounded) enter(s Subject) *remembered {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	element, known := b.subjects[s]
	if !known {
		element = b.order.PushFront(&remembered{subject: s, turn: make(chan struct{}, 1)})
		b.subjects[s] = element
	}
	b.order.MoveToFront(element)
	r := element.Value.(*remembered) //nolint:forcetypeassert // nothing else is put in
	r.waiting++
	return r
}

// leave ends a call, and forgets what is too much: the oldest first, none that somebody
// waits for, and at once a subject of which nothing was handled.
func (b *Bounded) leave(r *remembered) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	r.waiting--
	if r.waiting == 0 && r.version == 0 {
		b.forget(b.subjects[r.subject])
	}
	for element := b.order.Back(); element != nil && b.order.Len() > b.subjectsMax; {
		before := element.Prev()
		if element.Value.(*remembered).waiting == 0 { //nolint:forcetypeassert // nothing else is put in
			b.forget(element)
		}
		element = before
	}
}

func (b *Bounded) forget(element *list.Element) {
	delete(b.subjects, element.Value.(*remembered).subject) //nolint:forcetypeassert // nothing else is put in
	b.order.Remove(element)
}
