package ledger

import "time"

// OnDecline says what a declined payment does to the hold.
type OnDecline string

// The ways.
const (
	// OnDeclineRelease voids the attempt and cancels the hold.
	OnDeclineRelease OnDecline = "release"
	// OnDeclineKeep keeps the hold for its time, so that the buyer can try again.
	OnDeclineKeep OnDecline = "keep"
)

// LatePayment says what happens to money that arrives after the hold was over.
type LatePayment string

// The ways.
const (
	// LatePaymentReacquire sells the units after all if they are still there.
	LatePaymentReacquire LatePayment = "reacquire"
	// LatePaymentReview leaves it to a person.
	LatePaymentReview LatePayment = "review"
	// LatePaymentRefund gives the money back.
	LatePaymentRefund LatePayment = "refund"
)

// DeliveryKind says how a paid reservation comes to its end.
type DeliveryKind string

// The kinds. What a slot grants to another slot comes on top of either.
const (
	// DeliveryNone: paid is delivered.
	DeliveryNone DeliveryKind = "none"
	// DeliveryEvent: an external system delivers and calls back.
	DeliveryEvent DeliveryKind = "event"
)

const (
	// UnknownForDefault is how long a hold that is over waits for a provider that does not
	// answer, when its slot does not say.
	UnknownForDefault = 15 * time.Minute
)

// PaymentTerms are the part of a policy that is about payment.
type PaymentTerms struct {
	OnDecline   OnDecline
	LatePayment LatePayment
	// LateByProvider lets the provider's time turn LatePaymentRefund into
	// LatePaymentReacquire: the money was there in time, and only the news was late.
	LateByProvider bool
	// UnknownFor is how long after its release time a hold is kept for a payment of which
	// nobody knows how it stands. Then it is released, with the compensation owed.
	UnknownFor time.Duration
	Delivery   DeliveryKind
}

// DefaultPaymentTerms are the terms of a slot that names none.
func DefaultPaymentTerms() PaymentTerms {
	return PaymentTerms{
		OnDecline: OnDeclineRelease, LatePayment: LatePaymentReacquire,
		UnknownFor: UnknownForDefault, Delivery: DeliveryNone,
	}
}

func (t PaymentTerms) validate() error {
	switch {
	case t.OnDecline != OnDeclineRelease && t.OnDecline != OnDeclineKeep:
		return errorf(CodeInvalid, "on_decline must be release or keep")
	case t.LatePayment != LatePaymentReacquire && t.LatePayment != LatePaymentReview && t.LatePayment != LatePaymentRefund:
		return errorf(CodeInvalid, "late_payment must be reacquire, review or refund")
	case t.UnknownFor < 0 || t.UnknownFor > HoldForLimit:
		return errorf(CodeInvalid, "unknown_max_seconds must be 0 to %d", int(HoldForLimit.Seconds()))
	case t.Delivery != DeliveryNone && t.Delivery != DeliveryEvent:
		return errorf(CodeInvalid, "delivery must be none or event")
	}
	return nil
}

// strictest gives the grace and the terms of a hold of slots with these policies: of each
// part the one that promises least, so that no slot is kept longer, or sold later, than
// its own policy allows.
func strictest(policies []Policy) (time.Duration, PaymentTerms) {
	grace, terms := policies[0].GraceFor, policies[0].Payment
	for _, p := range policies[1:] {
		grace = min(grace, p.GraceFor)
		terms.UnknownFor = min(terms.UnknownFor, p.Payment.UnknownFor)
		terms.LateByProvider = terms.LateByProvider && p.Payment.LateByProvider
		if p.Payment.OnDecline == OnDeclineRelease {
			terms.OnDecline = OnDeclineRelease
		}
		if strictness(p.Payment.LatePayment) > strictness(terms.LatePayment) {
			terms.LatePayment = p.Payment.LatePayment
		}
		if p.Payment.Delivery == DeliveryEvent {
			terms.Delivery = DeliveryEvent
		}
	}
	return grace, terms
}

// strictness orders the ways to meet late money from the kindest to the strictest.
func strictness(l LatePayment) int {
	switch l {
	case LatePaymentRefund:
		return 2
	case LatePaymentReview:
		return 1
	default:
		return 0
	}
}
