package localrun_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/scripts/internal/localrun"
	"holdfast/shared/dynamo"
	"holdfast/shared/topology"
)

// items returns every item of the table as it is stored.
func (w *world) items() []map[string]types.AttributeValue {
	w.t.Helper()
	var all []map[string]types.AttributeValue
	pages := dynamodb.NewScanPaginator(w.system.Database(), &dynamodb.ScanInput{
		TableName: aws.String(w.system.Table), ConsistentRead: aws.Bool(true),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, page.Items...)
	}
	return all
}

// everyKind makes the system write an item of every kind that it has.
func (w *world) everyKind() {
	w.t.Helper()
	slot, owner := w.slot(5, ""), w.owner()
	hold := w.mustHold(owner, slot, 1)
	body := fmt.Sprintf(`{"payment_reference":%q}`, newName("payment"))
	w.post(w.shop, "/v1/holds/"+hold+"/confirm", newName("key"), body).want(http.StatusOK)
	w.post(owner, "/v1/holds/"+w.mustHold(owner, slot, 1)+"/cancel", newName("key"), "").want(http.StatusOK)
	w.do(w.catalog, localrun.Request{Method: http.MethodPatch, Path: "/v1/slots/" + slot, Key: newName("key"), Body: `{"capacity_delta":1}`}).want(http.StatusOK)
}

// Case G12: clean-up times were a thousand times too large.
func TestCaseG12_TimesToLive(t *testing.T) {
	const earliest, latest = -24 * time.Hour, 400 * 24 * time.Hour
	w := newWorld(t)
	w.everyKind()
	now, withTime := time.Now(), 0
	for _, item := range w.items() {
		value, has := item[dynamo.AttributeTimeToLive]
		if !has {
			continue
		}
		withTime++
		number, isNumber := value.(*types.AttributeValueMemberN)
		if !isNumber {
			t.Fatalf("%v has a time to live that is no number: %v", item["pk"], value)
		}
		seconds, err := strconv.ParseInt(number.Value, 10, 64)
		if err != nil || seconds < now.Add(earliest).Unix() || seconds > now.Add(latest).Unix() {
			t.Errorf("%v lives until %s: %v", item["pk"], number.Value, err)
		}
	}
	if withTime == 0 {
		t.Error("no item has a time to live")
	}
}

// textOf returns everything that an attribute holds. Bytes are read as text, because an
// answer that is kept is stored as bytes.
func textOf(value types.AttributeValue) string {
	var text strings.Builder
	switch v := value.(type) {
	case *types.AttributeValueMemberM:
		for name, member := range v.Value {
			text.WriteString(name + "=" + textOf(member) + " ")
		}
	case *types.AttributeValueMemberL:
		for _, member := range v.Value {
			text.WriteString(textOf(member) + " ")
		}
	case *types.AttributeValueMemberS:
		text.WriteString(v.Value)
	case *types.AttributeValueMemberN:
		text.WriteString(v.Value)
	case *types.AttributeValueMemberB:
		text.Write(v.Value)
	case *types.AttributeValueMemberBOOL:
		fmt.Fprint(&text, v.Value)
	default:
		fmt.Fprintf(&text, "%#v", v)
	}
	return text.String()
}

// Case L5: secrets were written to the logs. Markers stand where clients put secrets, also
// where they do not belong, on good and on bad requests. Then everything that is kept or
// told is searched for them.
func TestCaseL5_NoSecretIsKept(t *testing.T) {
	const cookie, bearer, card, header = "marker-cookie-7d1f", "marker-bearer-7d1f", "4111111111111111", "marker-header-7d1f"
	w := newWorld(t)
	slot, owner := w.slot(5, ""), w.owner()
	secret := http.Header{"Cookie": {"session=" + cookie}, "X-Api-Key": {header}, "User-Agent": {"agent " + header}, "Stripe-Signature": {"t=1,v1=" + header}}
	stolen := secret.Clone()
	stolen.Set("Authorization", "Bearer "+bearer)
	line := fmt.Sprintf(`{"slot_id":%q,"quantity":1,"unit_amount":%d`, slot, unitAmount)
	var told []answer
	for _, attempt := range []struct {
		request localrun.Request
		status  int
	}{
		{localrun.Request{Method: "POST", Path: "/v1/holds", Key: newName("key"), Header: secret, Body: holdBody(slot, 1)}, http.StatusCreated},
		{localrun.Request{Method: "POST", Path: "/v1/holds", Key: card, Header: secret, Body: holdBody(slot, 1)}, http.StatusCreated},
		{localrun.Request{Method: "POST", Path: "/v1/holds", Key: newName("key"), Header: stolen, Body: holdBody(slot, 1)}, http.StatusUnauthorized},
		{localrun.Request{Method: "POST", Path: "/v1/holds", Key: newName("key"), Header: secret, Body: `{"lines":[` + line + `,"card":"` + card + `"}]}`}, http.StatusBadRequest},
		{localrun.Request{Method: "POST", Path: "/v1/holds", Key: newName("key"), Header: secret, Body: `{"lines":[` + line + `}],"card_number":` + card + `}`}, http.StatusBadRequest},
		{localrun.Request{Method: "POST", Path: "/v1/holds", Key: newName("key"), Header: secret, Body: fmt.Sprintf(`{"lines":[{"slot_id":%q,"quantity":"%s","unit_amount":1}]}`, slot, card)}, http.StatusBadRequest},
		{localrun.Request{Method: "POST", Path: "/v1/holds", Key: newName("key"), Header: secret, Body: fmt.Sprintf(`{"lines":[{"slot_id":%q,"quantity":1,"unit_amount":%s}]}`, slot, card)}, http.StatusBadRequest},
		{localrun.Request{Method: "POST", Path: "/v1/holds", Key: newName("key"), Header: secret, Body: `{"lines":"` + card + `"`}, http.StatusBadRequest},
		{localrun.Request{Method: "POST", Path: "/v1/holds", Key: card + ",a", Header: secret, Body: holdBody(slot, 1)}, http.StatusBadRequest},
		{localrun.Request{Method: "GET", Path: "/v1/holds?status=" + card, Header: secret}, http.StatusBadRequest},
		{localrun.Request{Method: "GET", Path: "/v1/holds?cursor=" + card, Header: secret}, http.StatusBadRequest},
		{localrun.Request{Method: "GET", Path: "/v1/holds?card=" + card, Header: secret}, http.StatusBadRequest},
		{localrun.Request{Method: "GET", Path: "/v1/holds/" + card, Header: secret}, http.StatusNotFound},
		{localrun.Request{Method: "POST", Path: "/v1/holds/" + card + "/cancel", Key: newName("key"), Header: secret, Body: "{}"}, http.StatusNotFound},
		{localrun.Request{Method: "GET", Path: "/v1/" + card, Header: secret}, http.StatusNotFound},
	} {
		got := w.do(owner, attempt.request)
		if got.Status != attempt.status {
			t.Errorf("%s %s %s: status %d, want %d: %s", attempt.request.Method, attempt.request.Path, attempt.request.Body, got.Status, attempt.status, got.Body)
		}
		told = append(told, got)
	}
	w.untilPublished()
	kept := w.kept()
	for i, a := range told {
		kept[fmt.Sprintf("answer %d: %s", i, a.Body)] = fmt.Sprint(a.Header) + string(a.Body)
	}
	for _, marker := range []string{cookie, bearer, header, card} {
		for _, where := range found(kept, marker) {
			t.Errorf("%s is in %s", marker, where)
		}
	}
}

// kept is all that the run keeps or tells beside its answers, by where it is: each item of
// the table, and each log, among them the one with the events that came out of the bus.
func (w *world) kept() map[string]string {
	w.t.Helper()
	kept := make(map[string]string)
	for _, item := range w.items() {
		text := textOf(&types.AttributeValueMemberM{Value: item})
		kept["item "+text] = text
	}
	logs, err := filepath.Glob(filepath.Join(w.system.LogFolder(), "*.log"))
	if err != nil || len(logs) < len(topology.Functions()) {
		w.t.Fatalf("the logs are %v, %v", logs, err)
	}
	for _, log := range logs {
		text, err := os.ReadFile(log)
		if err != nil {
			w.t.Fatal(err)
		}
		kept["log "+filepath.Base(log)] = string(text)
	}
	return kept
}

// found is where a text is.
func found(kept map[string]string, text string) []string {
	var places []string
	for where, all := range kept {
		if strings.Contains(all, text) {
			places = append(places, where)
		}
	}
	return places
}
