package ledgertest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"holdfast/shared/ledger"
)

// same compares two values of one type exactly, but does not tell an empty list or map
// from a nil one: no store has to keep that difference. Times must be equal to the last
// bit, their location too.
func same(a, b any) bool { return sameValue(reflect.ValueOf(a), reflect.ValueOf(b)) }

func sameValue(a, b reflect.Value) bool {
	if a.Type() != b.Type() {
		return false
	}
	if a.Type() == reflect.TypeFor[time.Time]() {
		return a.Interface() == b.Interface()
	}
	switch a.Kind() {
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() && b.IsNil()
		}
		return sameValue(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if !sameValue(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Slice:
		if a.Len() != b.Len() {
			return false
		}
		for i := range a.Len() {
			if !sameValue(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		if a.Len() != b.Len() {
			return false
		}
		for _, key := range a.MapKeys() {
			if other := b.MapIndex(key); !other.IsValid() || !sameValue(a.MapIndex(key), other) {
				return false
			}
		}
		return true
	default:
		return a.Interface() == b.Interface()
	}
}

// text shows a value with what its pointers point to.
func text(value any) string {
	out, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Sprintf("%+v", value)
	}
	return string(out)
}

// sortLegs puts legs in a fixed order: the order of a refusal's legs means nothing.
func sortLegs(legs []ledger.RefusedLeg) {
	slices.SortFunc(legs, func(a, b ledger.RefusedLeg) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Slot, b.Slot), cmp.Compare(a.Shard, b.Shard), cmp.Compare(eventID(a), eventID(b)))
	})
}

func eventID(leg ledger.RefusedLeg) ledger.EventID {
	if leg.Event == nil {
		return ""
	}
	return leg.Event.ID
}
