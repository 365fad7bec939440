package dynamo

import (
	"time"

	"holdfast/shared/ledger"
)

// paymentTermsFields are payment terms: of a slot's policy, and fixed on each hold.
type paymentTermsFields struct {
	OnDecline      ledger.OnDecline    `dynamodbav:"on_decline"`
	LatePayment    ledger.LatePayment  `dynamodbav:"late_payment"`
	LateByProvider bool                `dynamodbav:"late_by_provider,omitempty"`
	UnknownMs      int64               `dynamodbav:"unknown_ms"`
	Delivery       ledger.DeliveryKind `dynamodbav:"delivery"`
}

func newPaymentTermsFields(t ledger.PaymentTerms) paymentTermsFields {
	return paymentTermsFields{t.OnDecline, t.LatePayment, t.LateByProvider, t.UnknownFor.Milliseconds(), t.Delivery}
}

func (f paymentTermsFields) paymentTerms() ledger.PaymentTerms {
	return ledger.PaymentTerms{
		OnDecline: f.OnDecline, LatePayment: f.LatePayment, LateByProvider: f.LateByProvider,
		UnknownFor: time.Duration(f.UnknownMs) * time.Millisecond, Delivery: f.Delivery,
	}
}
