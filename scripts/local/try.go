package main

import (
	"fmt"
	"io"
	"strings"

	"holdfast/scripts/internal/localrun"
	"holdfast/scripts/local/flights"
)

// tryText is a session to paste, line by line, into another terminal. $RANDOM makes the
// keys new each time, so that pasting a line twice is two requests.
const tryText = `
try it in another terminal, in the same folder:

  URL={url}
  BUYER=$(go run ./scripts/local token{data} -sub U-17 -scope holds)
  SHOP=$(go run ./scripts/local token{data} -sub shop -scope confirm)
  OPS=$(go run ./scripts/local token{data} -sub olga -scope operate -group {group})

  # what is left of flight {resource}
  curl -s "$URL/v1/availability?resource_type={type}&resource_id={resource}"; echo
  # hold two seats, for ten minutes
  HOLD=$(curl -s "$URL/v1/holds" -H "Authorization: Bearer $BUYER" -H "Idempotency-Key: hold-$RANDOM$RANDOM" -H 'Content-Type: application/json' \
    -d '{"slot_ids":["{slot}"],"quantity":2,"quoted_price":{price}}' | tee /dev/stderr | sed 's/.*"hold_id":"\([^"]*\)".*/\1/'); echo
  # sell them: only a service that has been paid may
  curl -s -X POST "$URL/v1/holds/$HOLD/confirm" -H "Authorization: Bearer $SHOP" -H "Idempotency-Key: confirm-$RANDOM$RANDOM"; echo
  # what an operator sees: the exact numbers of the slot
  curl -s "$URL/v1/slots/{slot}" -H "Authorization: Bearer $OPS"; echo

the contract of all routes: {url}/v1/openapi.json
events as they come out of the bus, and a log of each part: {logs}
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
