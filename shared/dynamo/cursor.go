package dynamo

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/ledger"
)

// A cursor is the order key of the last item of a page. The rest of DynamoDB's start
// key is rebuilt from the question, so a cursor can't lead into somebody else's list.

func encodeCursor(order string) ledger.Cursor {
	return ledger.Cursor(base64.RawURLEncoding.EncodeToString([]byte(order)))
}

func decodeCursor(c ledger.Cursor) (string, error) {
	order, err := base64.RawURLEncoding.DecodeString(string(c))
	if err != nil {
		return "", badCursor()
	}
	return string(order), nil
}

func badCursor() error {
	return &ledger.Error{Code: ledger.CodeInvalid, Message: "the cursor is not one that this list gave; begin without one"}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// startKey is an index's start key at an item: the item's own key and the index's.
func startKey(item itemKey, index map[string]types.AttributeValue) map[string]types.AttributeValue {
	for name, value := range item.attributes() {
		index[name] = value
	}
	return index
}

// validOrder reports whether order is what one of this store's order keys looks like:
// the prefix, a time or no start, and a valid name.
func validOrder(order, prefix string) bool {
	rest, found := strings.CutPrefix(order, prefix)
	start, id, split := strings.Cut(rest, separator)
	if !found || !split || !ledger.ValidName(id) {
		return false
	}
	if start == noStart {
		return true
	}
	_, err := time.Parse(orderTimeLayout, start)
	return err == nil
}

// dueOrder is the cursor of the due index: the due time and the id.
func dueOrder(dueAtMs int64, id string) string {
	return fmt.Sprintf("%d%s%s", dueAtMs, separator, id)
}

func parseDueOrder(order string, validID func(string) bool) (int64, string, error) {
	ms, id, found := strings.Cut(order, separator)
	dueAtMs, err := strconv.ParseInt(ms, 10, 64)
	if !found || err != nil || !validID(id) {
		return 0, "", badCursor()
	}
	return dueAtMs, id, nil
}
