package main

import (
	"fmt"
	"io"
	"strings"

	"holdfast/scripts/internal/localrun"
	"holdfast/scripts/local/flights"
)

// tryText is a session to paste into another terminal, a command at a time. Comments stand
// outside the commands, because not every shell takes them where one types. $RANDOM makes
// the keys new each time, so that pasting a command twice makes two requests.
const tryText = `
Try it in another terminal, in the same folder.

First two addresses, of the API and of the payment provider, and two tokens, of a buyer and
of an operator:
  URL={url}
  PROVIDER={provider}
  BUYER=$(go run ./scripts/local token{data} -sub U-17 -scope holds)
  OPS=$(go run ./scripts/local token{data} -sub olga -scope operate -group {group})

What is left of flight {resource}:
  curl -s "$URL/v1/availability?resource_type={type}&resource_id={resource}"; echo

Hold two seats, for ten minutes:
  HOLD=$(curl -s "$URL/v1/holds" -H "Authorization: Bearer $BUYER" -H "Idempotency-Key: hold-$RANDOM$RANDOM" \
    -H 'Content-Type: application/json' -d '{"slot_ids":["{slot}"],"quantity":2,"quoted_price":{price}}' \
    | tee /dev/stderr | sed 's/.*"hold_id":"\([^"]*\)".*/\1/'); echo

Begin to pay for them:
  RESERVATION=$(curl -s -X POST "$URL/v1/holds/$HOLD/payment" -H "Authorization: Bearer $BUYER" \
    -H "Idempotency-Key: pay-$RANDOM$RANDOM" | tee /dev/stderr | sed 's/.*"reservation_id":"\([^"]*\)".*/\1/'); echo

Be the buyer's bank (try decline or require-action, too):
  curl -s -X POST "$PROVIDER/_test/payments/$RESERVATION/pay"; echo

What has become of the seats and of the money:
  curl -s "$URL/v1/reservations/$RESERVATION" -H "Authorization: Bearer $BUYER"; echo

The exact numbers of the slot:
  curl -s "$URL/v1/slots/{slot}" -H "Authorization: Bearer $OPS"; echo

Once a minute an audit compares all of the table with itself. What it finds is in {logs}/audit.log;
break something by hand, and look there.

All routes are told in {url}/v1/openapi.json
The events as they come out of the bus, and a log of each part, are in {logs}
Ctrl-C ends everything.
`

func printWhatToTry(out io.Writer, system *localrun.System, dataFlag string, flight flights.Flight) {
	if dataFlag != "" {
		dataFlag = " -data '" + dataFlag + "'"
	}
	fmt.Fprint(out, strings.NewReplacer(
		"{url}", system.BaseURL,
		"{provider}", system.Payments.URL(),
		"{data}", dataFlag,
		"{group}", localrun.OperatorGroup,
		"{type}", string(flight.ResourceType),
		"{resource}", string(flight.ResourceID),
		"{slot}", string(flight.SlotID),
		"{price}", fmt.Sprint(flight.Terms.Price.AmountMinor),
		"{logs}", system.LogFolder(),
	).Replace(tryText))
}
