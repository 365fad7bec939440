package ledger

import "time"

// Records are items of the ledger as they are stored, for whoever reads all of them.
type Records struct {
	Slots  []Slot
	Stock  []Stock
	Holds  []StoredHold
	Events []Event
	// ArchivedEvents are events that are marked as archived. What they moved is in the
	// archived counters of the stock.
	ArchivedEvents []Event

	Reservations []StoredReservation

	// Policies are what is said for all slots of a resource, or of a resource type.
	Policies []ScopePolicy
	// Quotas are what is counted of each owner of whom something is.
	Quotas []Quota
	// Reviews are cases that have a record.
	Reviews []Review
	// Unpublished are the events that wait to be published. They are among Events, too.
	Unpublished []UnpublishedEvent
	// Mortal are items that are in use and have a time to live all the same.
	Mortal []MortalItem
	// Unreadable are items that can't be read as what their keys say that they are: nothing
	// else here tells of them.
	Unreadable []EventItem
}

// MortalItem is an item that will be deleted by itself.
type MortalItem struct {
	Item EventItem
	// Hold, Reservation and Slot say what the item is of, as far as it is of one.
	Hold        HoldID
	Reservation ReservationID
	Slot        SlotID
	Shard       Shard
	At          time.Time
}

// RecordsPage is one page of the table.
type RecordsPage struct {
	Records Records
	// Next is where the next page begins, "" after the last one.
	Next Cursor
	// ReadUnits is what the page has cost.
	ReadUnits float64
}

// StoredReservation is a reservation with what its index says of it.
type StoredReservation struct {
	Reservation Reservation
	// Due says that the reservation is in the due index, so that it will be looked at.
	Due bool
	// Archivable says that the archive's list has it.
	Archivable bool
}

// StoredHold is a hold with what its index says of it.
type StoredHold struct {
	Hold Hold
	// Due says that the hold is in the due index, so that a sweep will look at it.
	Due bool
	// Archivable says that the archive's list has it.
	Archivable bool
}

// RecordsOf names one thing whose records are read together: one of its parts is set. With
// OfStock, Slot and Shard name a stock item. Item stands for the thing that has that item.
type RecordsOf struct {
	Item        EventItem
	Hold        HoldID
	Reservation ReservationID
	Slot        SlotID
	Shard       Shard
	OfStock     bool
	Policy      PolicyScope
	Review      ReviewID
}
