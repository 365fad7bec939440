package paymenttest

import (
	"cmp"
	"slices"

	"holdfast/shared/ledger"
	"holdfast/shared/payment"
)

// Book is what the bank has done for one reservation in one currency. A test that counts
// money reads it here and not from what Holdfast believes.
type Book struct {
	Reservation ledger.ReservationID
	Currency    ledger.Currency
	// AuthorizedMinor is reserved now and neither captured nor let go.
	AuthorizedMinor, CapturedMinor, RefundedMinor int64
	// Payments and Captures count payments and captures.
	Payments, Captures int
}

// Payments are all payments in order of creation.
func (b *Bank) Payments() []Payment {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.lapse()
	all := make([]Payment, 0, len(b.payments))
	for _, p := range b.payments {
		all = append(all, p.snapshot())
	}
	return all
}

// Books are the books of all reservations, ordered by reservation and currency.
func (b *Bank) Books() []Book {
	type place struct {
		reservation ledger.ReservationID
		currency    ledger.Currency
	}
	var books []Book
	at := map[place]int{}
	for _, p := range b.Payments() {
		here := place{p.Reservation, p.Amount.Currency}
		i, found := at[here]
		if !found {
			i = len(books)
			at[here] = i
			books = append(books, Book{Reservation: p.Reservation, Currency: p.Amount.Currency})
		}
		books[i].add(p)
	}
	slices.SortFunc(books, func(x, y Book) int {
		return cmp.Or(cmp.Compare(x.Reservation, y.Reservation), cmp.Compare(x.Currency, y.Currency))
	})
	return books
}

// Book is the book of one reservation in one currency; empty if there is no payment.
func (b *Bank) Book(r ledger.ReservationID, currency ledger.Currency) Book {
	book := Book{Reservation: r, Currency: currency}
	for _, p := range b.Payments() {
		if p.Reservation == r && p.Amount.Currency == currency {
			book.add(p)
		}
	}
	return book
}

func (b *Book) add(p Payment) {
	b.Payments++
	b.Captures += p.Captures
	b.CapturedMinor += p.CapturedMinor
	b.RefundedMinor += p.RefundedMinor
	if p.Status == payment.StatusAuthorized {
		b.AuthorizedMinor += p.AuthorizedMinor
	}
}
