package consumer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"holdfast/events/consumer"
)

// soldHold is what this consumer wants to know of a hold. Leave out what you don't need.
type soldHold struct {
	Hold struct {
		Owner string `json:"owner"`
		Total struct {
			Amount   int64  `json:"amount"` // in the minor unit
			Currency string `json:"currency"`
		} `json:"total"`
	} `json:"hold"`
}

// A consumer that sends one mail for each sold hold. An EventBridge rule with
//
//	{"source": ["holdfast"], "detail-type": ["hold.confirmed"]}
//
// delivers the envelopes; here the same event comes twice, under two ids.
func ExampleInbox_Handle() {
	in := &consumer.Inbox{Memory: consumer.NewBounded(consumer.SubjectsMaxDefault)}
	sendMail := func(_ context.Context, e consumer.Event) error {
		var sold soldHold
		if err := json.Unmarshal(e.Detail, &sold); err != nil {
			return err
		}
		fmt.Printf("to %s: you have paid %d %s\n", sold.Hold.Owner, sold.Hold.Total.Amount, sold.Hold.Total.Currency)
		return nil
	}

	detail, err := os.ReadFile("../example/hold.confirmed.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, id := range []string{"17793124-05d4-b198-2fde-7ededc63b103", "4b1c6dd8-9e04-3c1f-5a55-5b7b5f3a2c51"} {
		envelope := fmt.Appendf(nil, `{"id":%q,"source":"holdfast","detail-type":"hold.confirmed","detail":%s}`, id, detail)
		outcome, err := in.Handle(context.Background(), envelope, sendMail)
		// An error: hand the message back, it comes again. ErrInvalid, ErrTooLarge and
		// ErrUnknownType will not get better: put it into the dead-letter queue.
		fmt.Println(outcome, err)
	}
	// Output:
	// to U-17: you have paid 120000 KRW
	// handled <nil>
	// duplicate <nil>
}
