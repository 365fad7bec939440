package main

import (
	"context"
	"sync"
	"time"

	"holdfast/shared/system"
)

// pace lets through so many rows a second, and saves nothing up: after a pause no more go
// through at once than one batch.
type pace struct {
	clock         system.Clock
	rowsPerSecond float64 // 0 lets everything through
	mutex         sync.Mutex
	next          time.Time // when the next row may go
}

// wait waits until rows may go, in the order of the calls.
func (p *pace) wait(ctx context.Context, rows int) error {
	if p.rowsPerSecond == 0 {
		return ctx.Err()
	}
	p.mutex.Lock()
	now := p.clock.Now()
	if p.next.Before(now) {
		p.next = now
	}
	until := p.next.Sub(now)
	p.next = p.next.Add(time.Duration(float64(rows) / p.rowsPerSecond * float64(time.Second)))
	p.mutex.Unlock()
	return p.clock.Sleep(ctx, until)
}
