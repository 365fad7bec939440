package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"holdfast/shared/payment"
	"holdfast/shared/payment/paymenttest"
)

const (
	// noticeDelayMin and noticeDelayMax are how long a notice is on its way at the least.
	// The shortest one is there before the answer to the call that it tells of.
	noticeDelayMin, noticeDelayMax = time.Millisecond, 400 * time.Millisecond
	// noticeAgainMin and noticeAgainMax are when the provider sends a notice again that was
	// not taken in. A real one is more patient; a history is shorter.
	noticeAgainMin, noticeAgainMax = 2 * time.Second, 30 * time.Second
	// noticeTriesMax bounds how often it sends one.
	noticeTriesMax  = 20
	signatureHeader = "stripe-signature"
	signature       = "signed"
)

// notify sends an event of the bank to the webhook: late, twice, in any order, or never.
// News of a refund that has failed is never lost for good: without it nobody could know.
func (w *world) notify(e paymenttest.Event) {
	name := "notice " + string(e.ID)
	d, f := w.dice(name), w.faults
	lost := d.chance(f.NoticeLost) && e.Type != paymenttest.EventRefundFailed
	times := 1
	if d.chance(f.NoticeDoubled) {
		times = 2
	}
	w.trace.add("%s: %s of %s, which is %s; lost: %t", name, e.Type, e.Payment.ID, e.Payment.Status, lost)
	if lost {
		return
	}
	for n := range times {
		delay := d.between(noticeDelayMin, noticeDelayMax) + d.between(0, f.NoticeLateMax)
		w.kernel.after(delay, func() { w.deliverNotice(fmt.Sprintf("%s delivery %d", name, n+1), e.Notice(), noticeTriesMax) })
	}
}

// deliverNotice hands a notice to the webhook function, and again if it is not taken in.
func (w *world) deliverNotice(name string, notice payment.Notice, tries int) {
	to := w.webhook
	status := http.StatusServiceUnavailable
	to.invoke(name, func() {
		answer, err := to.inbox.Handle(to.deadline(), webhookEvent(notice))
		if err != nil {
			w.violated("answers", "%s ended in %v instead of an answer", name, err)
		}
		status = answer.StatusCode
	}, func(bool) {
		w.trace.add("%s was answered %d", name, status)
		if status < http.StatusBadRequest {
			return
		}
		if tries == 1 || status < http.StatusInternalServerError {
			w.violated("liveness", "%s was refused with %d", name, status)
			return
		}
		w.kernel.after(w.dice(name+" again").between(noticeAgainMin, noticeAgainMax), func() {
			w.deliverNotice(fmt.Sprintf("%s, %d left", name, tries-1), notice, tries-1)
		})
	})
}

// webhookEvent is the notice as the gateway hands it to the function. Its body is not the
// provider's: what is kept of that, and who has signed it, is tested where it is read.
func webhookEvent(n payment.Notice) json.RawMessage {
	e := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: "POST /v1/webhooks/stripe", RawPath: "/v1/webhooks/stripe", Body: mustJSON(n),
		Headers: map[string]string{"content-type": "application/json", signatureHeader: signature},
	}
	e.RequestContext.HTTP.Method = http.MethodPost
	return json.RawMessage(mustJSON(e))
}

// readNotice stands in the place of the signature's check.
func readNotice(_ context.Context, body []byte, signed string, _ time.Time) (payment.Notice, error) {
	var n payment.Notice
	if signed != signature {
		return n, payment.ErrSignature
	}
	if err := json.Unmarshal(body, &n); err != nil {
		return n, payment.ErrMalformed
	}
	return n, nil
}
