package stripe

import (
	"context"
	"time"

	"github.com/stripe/stripe-go/v85"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
)

// listedMax is how many payments are asked for at once. With its charge a payment has 10 KB, and
// Stripe lists at most 100: these stay far below answerBytesMax.
const listedMax = 50

var _ payment.Lister = (*Provider)(nil)

// Payments lists the payments that were begun at since or later, the newest first. The cursor
// is the id of the last payment of a page. The secrets of the payments are left out: who
// compares books has no use for them.
func (p *Provider) Payments(ctx context.Context, since time.Time, after ledger.Cursor) ([]payment.Listed, ledger.Cursor, error) {
	ctx, cancel := context.WithTimeout(ctx, CallFor)
	defer cancel()
	params := &stripe.PaymentIntentListParams{
		CreatedRange: &stripe.RangeQueryParams{GreaterThanOrEqual: since.Unix()},
		Expand:       []*string{stripe.String("data.latest_charge")},
	}
	params.Limit = stripe.Int64(listedMax)
	params.Single = true // one page: the caller asks for the next one
	if after != "" {
		params.StartingAfter = stripe.String(string(after))
	}
	var listed []payment.Listed
	var last ledger.Cursor
	for intent, err := range p.client.V1PaymentIntents.List(ctx, params).All(ctx) {
		if err != nil {
			return nil, "", meaning(err)
		}
		found, err := understood(intent, nil)
		if err != nil {
			return nil, "", err
		}
		found.Secret = payment.Secret{}
		listed = append(listed, payment.Listed{Payment: found, CreatedAt: time.Unix(intent.Created, 0).UTC()})
		last = ledger.Cursor(intent.ID)
	}
	if len(listed) < listedMax {
		last = ""
	}
	return listed, last, nil
}
