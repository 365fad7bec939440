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

First an address and three tokens: of a buyer, of the shop that gets paid, of an operator:
  URL={url}
  BUYER=$(go run ./scripts/local token{data} -sub U-17 -scope holds)
  SHOP=$(go run ./scripts/local token{data} -sub shop -scope confirm)
  OPS=$(go run ./scripts/local token{data} -sub olga -scope operate -group {group})

What is left of flight {resource}:
  curl -s "$URL/v1/availability?resource_type={type}&resource_id={resource}"; echo

Hold two seats, for ten minutes:
  HOLD=$(curl -s "$URL/v1/holds" -H "Authorization: Bearer $BUYER" -H "Idempotency-Key: hold-$RANDOM$RANDOM" \
    -H 'Content-Type: application/json' -d '{"slot_ids":["{slot}"],"quantity":2,"quoted_price":{price}}' \
    | tee /dev/stderr | sed 's/.*"hold_id":"\([^"]*\)".*/\1/'); echo

Sell them:
  curl -s -X POST "$URL/v1/holds/$HOLD/confirm" -H "Authorization: Bearer $SHOP" -H "Idempotency-Key: confirm-$RANDOM$RANDOM"; echo

The exact numbers of the slot:
  curl -s "$URL/v1/slots/{slot}" -H "Authorization: Bearer $OPS"; echo

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
		"{data}", dataFlag,
		"{group}", localrun.OperatorGroup,
		"{type}", string(flight.ResourceType),
		"{resource}", string(flight.ResourceID),
		"{slot}", string(flight.SlotID),
		"{price}", fmt.Sprint(flight.Terms.Price.AmountMinor),
		"{logs}", system.LogFolder(),
	).Replace(tryText))
}
