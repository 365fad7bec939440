package dynamo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/ledger"
)

const (
	// forgetTriesMax is how often an item is forgotten anew that has changed in between.
	forgetTriesMax = 5
	// forgetCountsMax is how many counts of an owner one write moves. An expression has at
	// most 300 operators and 4 KB, and a count's name is up to 280 characters.
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
	forgetCountsMax = 10
)

// ForgetClient is the part of the DynamoDB client that forgetting an owner needs beside the
// store. It is apart from Client, because no function that serves users may scan or delete.
type ForgetClient interface {
	Client
	ScanClient
	DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, options ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
}

var _ ForgetClient = (*dynamodb.Client)(nil)

// Forgetter writes another name where items name an owner. It changes no promise: versions,
// counters, sums and events stay, and every count goes with what it counts. So it is no Change.
// Each of its writes may be repeated, and after any number of them the ledger adds up.
type Forgetter struct {
	store  *Store
	client ForgetClient
	from   ledger.OwnerID
	to     ledger.OwnerID
}

// NewForgetter returns one that writes the name to where items name the owner.
func NewForgetter(client ForgetClient, store *Store, owner, to ledger.OwnerID) *Forgetter {
	return &Forgetter{store: store, client: client, from: owner, to: to}
}

// Owned is something of an owner, and where it is stored.
type Owned struct {
	Item        ledger.EventItem
	Hold        *ledger.Hold // one of the two
	Reservation *ledger.Reservation
}

// OwnedHolds lists the owner's holds, the newest first, also those whose time to live is over
// and that are not deleted yet.
func (f *Forgetter) OwnedHolds(ctx context.Context, page ledger.Page) ([]Owned, ledger.Cursor, error) {
	return f.owned(ctx, kindHold, page, func(id string) itemKey { return holdKey(ledger.HoldID(id)) })
}

// OwnedReservations is OwnedHolds of reservations.
func (f *Forgetter) OwnedReservations(ctx context.Context, page ledger.Page) ([]Owned, ledger.Cursor, error) {
	return f.owned(ctx, kindReservation, page, func(id string) itemKey { return reservationKey(ledger.ReservationID(id)) })
}

func (f *Forgetter) owned(ctx context.Context, kind string, page ledger.Page, keyOf func(id string) itemKey) ([]Owned, ledger.Cursor, error) {
	found, err := f.store.ofOwner(ctx, kind, f.from, page, keyOf)
	if err != nil {
		return nil, "", err
	}
	keys := make([]itemKey, len(found.items))
	for i, entry := range found.items {
		keys[i] = itemKey(eventItem(entry))
	}
	items, err := f.store.batchGet(ctx, keys)
	if err != nil {
		return nil, "", err
	}
	all := make([]Owned, 0, len(items))
	for _, i := range items {
		if stringOf(i, AttributeOwner) != string(f.from) {
			continue // the index is late
		}
		one, err := ownedOf(i)
		if err != nil {
			return nil, "", internal("decoding what an owner has", err)
		}
		all = append(all, one)
	}
	return all, found.cursor(AttributeOwnerOrder), nil
}

func ownedOf(i item) (Owned, error) {
	one := Owned{Item: eventItem(i)}
	if one.Item.SortKey == sortHold {
		hold, err := decodeHold(i)
		one.Hold = &hold
		return one, err
	}
	reservation, err := decodeReservation(i)
	one.Reservation = &reservation
	return one, err
}

// Events returns where the events of a hold or a reservation are stored that name the owner.
func (f *Forgetter) Events(ctx context.Context, of ledger.EventItem) ([]ledger.EventItem, error) {
	var named []ledger.EventItem
	var start item
	for {
		page, err := f.store.query(ctx, queryOf{
			limit: ledger.PageItemsMax, start: start,
			condition: expression.Key(AttributePartitionKey).Equal(expression.Value(of.PartitionKey)).
				And(expression.Key(AttributeSortKey).BeginsWith(sortEventPrefix)),
		})
		if err != nil {
			return nil, err
		}
		for _, i := range page.items {
			if len(f.renamed(i)) > 0 {
				named = append(named, eventItem(i))
			}
		}
		if len(named) > archiveItemsMax {
			return nil, internal("reading the events of what an owner has", fmt.Errorf("there are more than %d", archiveItemsMax))
		}
		if start = page.last; len(start) == 0 {
			return named, nil
		}
	}
}

// ScanNamed reads one page of one of total segments of the table, strongly consistent, and
// returns where the owner is named. A page may be empty and not be the last.
func (f *Forgetter) ScanNamed(ctx context.Context, segment, total int, after ledger.Cursor) ([]ledger.EventItem, ledger.Cursor, error) {
	start, err := scanStart(after)
	if err != nil {
		return nil, "", err
	}
	out, err := f.client.Scan(ctx, &dynamodb.ScanInput{
		TableName: aws.String(f.store.table), Segment: aws.Int32(int32(segment)), TotalSegments: aws.Int32(int32(total)),
		ExclusiveStartKey: start, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return nil, "", readFailed(fmt.Sprintf("scanning segment %d of %d", segment, total), err)
	}
	var named []ledger.EventItem
	for _, i := range out.Items {
		if f.names("", &types.AttributeValueMemberM{Value: i}) {
			named = append(named, eventItem(i))
		}
	}
	return named, scanNext(out.LastEvaluatedKey), nil
}

// ourWords are attributes whose values are words of the ledger itself. An owner may be called
// like one of them.
var ourWords = []string{"status", "type", "command", "from", "to", "kind", "state", "decision", "finding", "currency", AttributeSortKey}

// names reports whether the owner is named in a text of the value, as a word of it.
func (f *Forgetter) names(attribute string, value types.AttributeValue) bool {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		if slices.Contains(actors, attribute) {
			return f.other(attribute, v.Value) != v.Value
		}
		return !slices.Contains(ourWords, attribute) && replaceWord(v.Value, string(f.from), string(f.to)) != v.Value
	case *types.AttributeValueMemberB:
		return replaceWord(string(v.Value), string(f.from), string(f.to)) != string(v.Value)
	case *types.AttributeValueMemberL:
		return slices.ContainsFunc(v.Value, func(member types.AttributeValue) bool { return f.names(attribute, member) })
	case *types.AttributeValueMemberM:
		for name, member := range v.Value {
			if f.names(name, member) {
				return true
			}
		}
	}
	return false
}

// Forget writes the other name into the item, and moves what is counted of the owner with it.
// It reports false if the item does not name the owner where it would name one, or is not
// there: the id of a slot that has the owner's name in it stays.
func (f *Forgetter) Forget(ctx context.Context, at ledger.EventItem) (bool, error) {
	if at.SortKey == sortQuota {
		return f.forgetQuota(ctx)
	}
	for range forgetTriesMax {
		i, err := f.store.get(ctx, itemKey(at))
		if err != nil {
			return false, err
		}
		changes := f.renamed(i)
		if len(changes) == 0 {
			return false, nil
		}
		done, err := f.rename(ctx, at, i, changes)
		if err != nil || done {
			return done, err
		}
	}
	return false, unavailable("forgetting an owner", fmt.Errorf("an item changed %d times", forgetTriesMax))
}

// rename writes the changes, under the condition that what they change is still so.
func (f *Forgetter) rename(ctx context.Context, at ledger.EventItem, i item, changes map[string]rename) (bool, error) {
	condition := expression.AttributeExists(expression.Name(AttributePartitionKey))
	var update expression.UpdateBuilder
	for _, path := range slices.Sorted(maps.Keys(changes)) {
		condition = condition.And(expression.Name(path).Equal(expression.Value(changes[path].from)))
		update = update.Set(expression.Name(path), expression.Value(changes[path].to))
	}
	if at.SortKey == sortHold {
		return f.renameHold(ctx, i, condition, update)
	}
	done, err := f.store.updateIf(ctx, itemKey(at), condition, update)
	if err != nil {
		return false, readFailed("writing another name for an owner", err)
	}
	return done, nil
}

// renameHold moves the counts that the hold is part of in the same write. So what is counted of
// an owner is at every moment what that owner's holds say.
func (f *Forgetter) renameHold(ctx context.Context, i item, condition expression.ConditionBuilder, update expression.UpdateBuilder) (bool, error) {
	hold, err := decodeHold(i)
	if err != nil {
		return false, internal("decoding a hold", err)
	}
	condition = condition.And(expression.Name(attributeVersion).Equal(expression.Value(hold.Version)))
	renamed, err := updateLeg(holdKey(hold.ID), condition, update, refusedHold)
	if err != nil {
		return false, internal("encoding another name for an owner", err)
	}
	all := []leg{renamed}
	if hold.Owner == f.from {
		moved, err := f.countLegs(ledger.CountsOf(hold))
		if err != nil {
			return false, err
		}
		all = append(all, moved...)
	}
	return f.transact(ctx, all)
}

// countLegs move counts from one name to the other.
func (f *Forgetter) countLegs(counts map[ledger.QuotaKey]ledger.Units) ([]leg, error) {
	from, to := ledger.QuotaWrite{Owner: f.from}, ledger.QuotaWrite{Owner: f.to}
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		if units := counts[key]; units != 0 {
			from.Deltas = append(from.Deltas, ledger.QuotaDelta{Key: key, Units: -units})
			to.Deltas = append(to.Deltas, ledger.QuotaDelta{Key: key, Units: units})
		}
	}
	if len(from.Deltas) == 0 {
		return nil, nil
	}
	less, err := quotaLeg(from, 0)
	if err != nil {
		return nil, internal("encoding the counts of an owner", err)
	}
	more, err := quotaLeg(to, 0)
	if err != nil {
		return nil, internal("encoding the counts of an owner", err)
	}
	return []leg{less, more}, nil
}

// transact writes all legs or none, and reports false if a condition was not true.
func (f *Forgetter) transact(ctx context.Context, all []leg) (bool, error) {
	items := make([]types.TransactWriteItem, len(all))
	for i := range all {
		all[i].setTable(&all[i].item, f.store.table)
		items[i] = all[i].item
	}
	err := f.store.commit(ctx, ledger.Change{}, all, items)
	if refused := (*ledger.Refused)(nil); errors.As(err, &refused) {
		return false, nil
	}
	return err == nil, err
}

// forgetQuota moves what is still counted of the owner, which are the sales whose holds have
// left the table, and deletes the owner's item. The expired holds are forgotten with it: whoever
// comes back under the same name begins anew. It reports false where there is no item.
func (f *Forgetter) forgetQuota(ctx context.Context) (bool, error) {
	found, err := f.store.get(ctx, quotaKey(f.from))
	if err != nil || len(found) == 0 {
		return false, err
	}
	quota, err := decodeQuota(f.from, found)
	if err != nil {
		return false, internal("decoding the counts of an owner", err)
	}
	for keys := range slices.Chunk(slices.Sorted(maps.Keys(quota.Counts)), forgetCountsMax) {
		counts := make(map[ledger.QuotaKey]ledger.Units, len(keys))
		for _, key := range keys {
			counts[key] = quota.Counts[key]
		}
		if err := f.moveCounts(ctx, counts); err != nil {
			return false, err
		}
	}
	return true, f.deleteQuota(ctx)
}

// moveCounts moves counts that were read as given; one that has changed since stays for the
// next run.
func (f *Forgetter) moveCounts(ctx context.Context, counts map[ledger.QuotaKey]ledger.Units) error {
	var condition []expression.ConditionBuilder
	var update expression.UpdateBuilder
	to := ledger.QuotaWrite{Owner: f.to}
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		name := countName(key)
		condition = append(condition, isNot(name, counts[key]))
		update = update.Remove(name)
		if counts[key] != 0 {
			to.Deltas = append(to.Deltas, ledger.QuotaDelta{Key: key, Units: counts[key]})
		}
	}
	refused := func(found item) (ledger.RefusedLeg, error) {
		quota, err := decodeQuota(f.from, found)
		return ledger.RefusedLeg{Kind: ledger.LegQuota, Quota: &quota}, err
	}
	less, err := updateLeg(quotaKey(f.from), none(condition), update, refused)
	if err != nil {
		return internal("encoding the counts of an owner", err)
	}
	all := []leg{less}
	if len(to.Deltas) > 0 {
		more, err := quotaLeg(to, 0)
		if err != nil {
			return internal("encoding the counts of an owner", err)
		}
		all = append(all, more)
	}
	moved, err := f.transact(ctx, all)
	if err == nil && !moved {
		err = unavailable("moving the counts of an owner", errors.New("they changed meanwhile"))
	}
	return err
}

// deleteQuota deletes the owner's item once nothing is counted in it. DynamoDB has no condition
// on how many attributes there are. So what was counted between the look and the deletion comes
// back with its answer, and is counted again: the owner still does something.
func (f *Forgetter) deleteQuota(ctx context.Context) error {
	out, err := f.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: aws.String(f.store.table), Key: quotaKey(f.from).attributes(), ReturnValues: types.ReturnValueAllOld,
	})
	if err != nil {
		return readFailed("deleting the counts of an owner", err)
	}
	quota, err := decodeQuota(f.from, out.Attributes)
	if err != nil {
		return internal("decoding the counts of an owner", err)
	}
	if len(quota.Counts) == 0 {
		return nil
	}
	again := ledger.QuotaWrite{Owner: f.from}
	for _, key := range slices.Sorted(maps.Keys(quota.Counts)) {
		if units := quota.Counts[key]; units != 0 {
			again.Deltas = append(again.Deltas, ledger.QuotaDelta{Key: key, Units: units})
		}
	}
	if len(again.Deltas) > 0 {
		back, err := quotaLeg(again, 0)
		if err != nil {
			return internal("encoding the counts of an owner", err)
		}
		if _, err := f.transact(ctx, []leg{back}); err != nil {
			return err
		}
	}
	return unavailable("deleting the counts of an owner", errors.New("something is counted again; the owner still does something"))
}

// rename is one text that is written over another.
type rename struct{ from, to string }

// renamed are the texts of the item that name the owner, by their path, and what they are to be.
func (f *Forgetter) renamed(i item) map[string]rename {
	changes := make(map[string]rename)
	f.visit(&types.AttributeValueMemberM{Value: i}, "", "", func(path string, _ *types.AttributeValueMemberS, change rename) {
		changes[path] = change
	})
	return changes
}

// visit tells of each text that names the owner, with its path in the item.
func (f *Forgetter) visit(value types.AttributeValue, path, attribute string, tell func(path string, at *types.AttributeValueMemberS, change rename)) {
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		if to := f.other(attribute, v.Value); to != v.Value {
			tell(path, v, rename{v.Value, to})
		}
	case *types.AttributeValueMemberL:
		for i, member := range v.Value {
			f.visit(member, path+"["+strconv.Itoa(i)+"]", attribute, tell)
		}
	case *types.AttributeValueMemberM:
		for name, member := range v.Value {
			at := name
			if path != "" {
				at = path + "." + name
			}
			f.visit(member, at, name, tell)
		}
	}
}

// other is the text without the owner's name, where an attribute may have one. It goes by the
// attribute, because an owner may be called HELD.
func (f *Forgetter) other(attribute, text string) string {
	switch {
	case attribute == AttributeOwner:
		if text == string(f.from) {
			return string(f.to)
		}
	case slices.Contains(actors, attribute):
		if kind, who, found := strings.Cut(text, ":"); found && who == string(f.from) {
			return kind + ":" + string(f.to)
		}
	case slices.Contains(freeTexts, attribute):
		return replaceWord(text, string(f.from), string(f.to))
	}
	return text
}

var (
	// actors are attributes that say who did something, as "owner:U-17".
	actors = []string{"actor", "claimed_by", "decided_by"}
	// freeTexts are attributes that a person has written, or that tell a person something.
	freeTexts = []string{"why", "subject", "evidence", attributeQuarantinedReason}
)

// replaceWord replaces word in text where no letter, digit or underscore stands beside it.
func replaceWord(text, word, with string) string {
	var out strings.Builder
	done := 0
	for {
		at := strings.Index(text[done:], word)
		if at < 0 || word == "" {
			return out.String() + text[done:]
		}
		at += done
		before, _ := utf8.DecodeLastRuneInString(text[:at])
		after, _ := utf8.DecodeRuneInString(text[at+len(word):])
		out.WriteString(text[done:at])
		if partOfWord(before) || partOfWord(after) {
			out.WriteString(word)
		} else {
			out.WriteString(with)
		}
		done = at + len(word)
	}
}

func partOfWord(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_')
}

// ForgetText is the text of an archived item without the owner's name, and whether it had it.
func (f *Forgetter) ForgetText(of []byte) ([]byte, bool, error) {
	i, err := parseItem(of)
	if err != nil {
		return nil, false, err
	}
	named := false
	f.visit(&types.AttributeValueMemberM{Value: i}, "", "", func(_ string, at *types.AttributeValueMemberS, change rename) {
		at.Value, named = change.to, true
	})
	if !named {
		return of, false, nil
	}
	out, err := itemText(i)
	return out, true, err
}
