package paymenttest

import (
	"context"
	"slices"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
)

// ListedMax is how many payments a page has.
const ListedMax = 100

var _ payment.Lister = (*Provider)(nil)

// MethodList is the call of Payments.
const MethodList Method = "list"

// Payments lists the payments that were begun at since or later, the oldest first. The cursor is
// the id of the last payment of a page.
func (p *Provider) Payments(ctx context.Context, since time.Time, after ledger.Cursor) ([]payment.Listed, ledger.Cursor, error) {
	var listed []payment.Listed
	var next ledger.Cursor
	_, err := p.call(ctx, Call{Method: MethodList}, func() (payment.Payment, error) {
		all := p.Bank.Payments()
		if after != "" {
			i := slices.IndexFunc(all, func(p Payment) bool { return p.ID == ledger.PaymentID(after) })
			all = all[i+1:]
		}
		for _, found := range all {
			if found.CreatedAt.Before(since.Truncate(time.Second)) {
				continue
			}
			if len(listed) == ListedMax {
				next = ledger.Cursor(listed[len(listed)-1].ID)
				break
			}
			found.Secret = payment.Secret{}
			listed = append(listed, payment.Listed{Payment: found.Payment, CreatedAt: found.CreatedAt})
		}
		return payment.Payment{}, nil
	})
	return listed, next, err
}
