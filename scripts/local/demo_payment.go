package main

import (
	"context"
	"fmt"
	"net/http"

	"holdfast/scripts/internal/localrun"
	"holdfast/scripts/local/flights"
	"holdfast/shared/ledger"
	"holdfast/shared/payment/paymenttest"
	"holdfast/shared/payment/stripetest"
)

// payments tells of money: paid, declined, late, with a lost answer, and with a provider
// whose notices come twice and in the wrong order.
func (s *story) payments(ctx context.Context, flight, lastSeat flights.Flight) error {
	scenes := []func(context.Context, flights.Flight) error{s.paid, s.declined, s.lostAnswers, s.doubledNotices}
	for _, scene := range scenes {
		if err := scene(ctx, flight); err != nil {
			return err
		}
	}
	return s.paidTooLate(ctx, lastSeat)
}

// startPayment opens a payment attempt for the hold.
func (s *story) startPayment(ctx context.Context, b buyer, hold holdAnswer) (reservationAnswer, error) {
	answer, err := b.caller.Do(ctx, localrun.Request{Method: http.MethodPost, Path: "/v1/holds/" + hold.HoldID + "/payment", Key: s.key()})
	return readReservation(answer, err, http.StatusAccepted)
}

// pay lets the buyer pay for the hold, and waits until the reservation is COMPLETED.
func (s *story) pay(ctx context.Context, b buyer, hold holdAnswer) (reservationAnswer, error) {
	started, err := s.startPayment(ctx, b, hold)
	if err != nil {
		return started, err
	}
	if _, err := s.system.Payments.Bank().Pay(started.ClientSecret); err != nil {
		return started, err
	}
	return s.waitForReservation(ctx, b, started.ReservationID, "COMPLETED")
}

// holdAndStart holds one seat for the buyer of that name, and opens a payment attempt.
func (s *story) holdAndStart(ctx context.Context, name string, flight flights.Flight) (buyer, reservationAnswer, error) {
	b, err := s.buyer(name)
	if err != nil {
		return b, reservationAnswer{}, err
	}
	hold, err := s.mustHold(ctx, b, flight, 1)
	if err != nil {
		return b, reservationAnswer{}, fmt.Errorf("hold a seat for %s: %w", name, err)
	}
	reservation, err := s.startPayment(ctx, b, hold)
	if err != nil {
		return b, reservation, fmt.Errorf("begin the payment of %s: %w", name, err)
	}
	return b, reservation, nil
}

// waitForReservation waits until the reservation has that status, and gives its last
// answer.
func (s *story) waitForReservation(ctx context.Context, b buyer, id, status string) (reservationAnswer, error) {
	var last reservationAnswer
	err := s.waitUntil(ctx, "reservation "+id+" is "+status, func() (bool, error) {
		answer, err := b.caller.Do(ctx, localrun.Request{Method: http.MethodGet, Path: "/v1/reservations/" + id})
		last, err = readReservation(answer, err, http.StatusOK)
		return last.Status == status, err
	})
	if err != nil {
		return last, fmt.Errorf("it is %s (%s): %w", last.Status, last.Message, err)
	}
	return last, nil
}

// paid: the way that it mostly goes.
func (s *story) paid(ctx context.Context, flight flights.Flight) error {
	b, reservation, err := s.holdAndStart(ctx, "paying-buyer", flight)
	if err != nil {
		return err
	}
	if _, err := s.system.Payments.Bank().Pay(reservation.ClientSecret); err != nil {
		return err
	}
	done, err := s.waitForReservation(ctx, b, reservation.ReservationID, "COMPLETED")
	s.say("%s pays for a seat of %s: %s", b.name, flight.SlotID, done.Message)
	return err
}

// declined: the card is refused. The seat is given back only after the provider has
// confirmed that no other try can succeed.
func (s *story) declined(ctx context.Context, flight flights.Flight) error {
	b, reservation, err := s.holdAndStart(ctx, "unlucky-buyer", flight)
	if err != nil {
		return err
	}
	if _, err := s.system.Payments.Bank().Decline(reservation.ClientSecret); err != nil {
		return err
	}
	done, err := s.waitForReservation(ctx, b, reservation.ReservationID, "CANCELED")
	s.say("the card of %s is declined: %s", b.name, done.Message)
	return err
}

// lostAnswers: the provider does its work and the answer is lost, first of the creation
// and then of the capture.
func (s *story) lostAnswers(ctx context.Context, flight flights.Flight) error {
	bank := s.system.Payments.Bank()
	for _, method := range []paymenttest.Method{paymenttest.MethodCreate, paymenttest.MethodCapture} {
		s.system.Payments.AddFault(stripetest.Fault{Method: method, Calls: 1, Outcome: stripetest.AnswerLost})
	}
	defer s.system.Payments.ClearFaults()
	b, reservation, err := s.holdAndStart(ctx, "patient-buyer", flight)
	if err != nil {
		return err
	}
	if reservation.ClientSecret != "" {
		return fmt.Errorf("the answer of the provider was to be lost, and its secret is there")
	}
	answer, err := b.caller.Do(ctx, localrun.Request{Method: http.MethodPost, Path: "/v1/reservations/" + reservation.ReservationID + "/payment-session"})
	session, err := readReservation(answer, err, http.StatusOK)
	if err != nil {
		return fmt.Errorf("ask for the secret again: %w", err)
	}
	if _, err := bank.Pay(session.ClientSecret); err != nil {
		return err
	}
	if _, err := s.waitForReservation(ctx, b, reservation.ReservationID, "COMPLETED"); err != nil {
		return err
	}
	book := bank.Book(ledger.ReservationID(reservation.ReservationID), flight.Terms.Price.Currency)
	if book.Payments != 1 || book.Captures != 1 {
		return fmt.Errorf("with lost answers the provider has %d payments and %d captures, want one of each", book.Payments, book.Captures)
	}
	s.say("two answers of the provider are lost after it did its work: %s still has one payment, captured once", b.name)
	return nil
}

// doubledNotices: every webhook comes twice, the newest first.
func (s *story) doubledNotices(ctx context.Context, flight flights.Flight) error {
	s.system.Payments.SetWebhookFaults(stripetest.WebhookFaults{Twice: true, Paused: true})
	defer s.system.Payments.SetWebhookFaults(stripetest.WebhookFaults{})
	b, reservation, err := s.holdAndStart(ctx, "noisy-buyer", flight)
	if err != nil {
		return err
	}
	if _, err := s.system.Payments.Bank().Pay(reservation.ClientSecret); err != nil {
		return err
	}
	delivered := 0
	deliver := func() error {
		for waiting := len(s.system.Payments.Queue()); waiting > 0; waiting-- {
			status, err := s.system.Payments.Deliver(ctx, waiting-1)
			if err != nil || status != http.StatusOK {
				return fmt.Errorf("a webhook was answered with %d: %w", status, err)
			}
			delivered++
		}
		return nil
	}
	s.system.Payments.Collect()
	if err := deliver(); err != nil {
		return err
	}
	if _, err := s.waitForReservation(ctx, b, reservation.ReservationID, "COMPLETED"); err != nil {
		return err
	}
	s.system.Payments.Collect()
	if err := deliver(); err != nil { // what the capture made the provider send
		return err
	}
	s.say("%d webhooks come twice and the newest first: %s has paid once", delivered, b.name)
	return nil
}

// paidTooLate: the provider says that the payment is cancelled, the seat is sold to
// somebody else, and then the money comes all the same. The flight's holds have been short
// and without grace since leftToExpire: said only now, it could miss a process of the API
// that still has the old policy in its cache.
func (s *story) paidTooLate(ctx context.Context, flight flights.Flight) error {
	bank := s.system.Payments.Bank()
	bank.SetDefaultScript(paymenttest.Script{VoidLies: true})
	defer bank.SetDefaultScript(paymenttest.Script{})
	b, reservation, err := s.holdAndStart(ctx, "slow-buyer", flight)
	if err != nil {
		return err
	}
	if _, err := s.waitForReservation(ctx, b, reservation.ReservationID, "CANCELED"); err != nil {
		return err
	}
	if err := s.sellRest(ctx, flight); err != nil {
		return err
	}
	if _, err := bank.LateSuccess(reservation.ClientSecret, true); err != nil {
		return err
	}
	s.system.Payments.Collect()
	done, err := s.waitForReservation(ctx, b, reservation.ReservationID, "REFUNDED")
	s.say("%s pays after the last seat of %s was sold to another: %s", b.name, flight.SlotID, done.Message)
	return err
}

// sellRest sells all that is left of a flight.
func (s *story) sellRest(ctx context.Context, flight flights.Flight) error {
	numbers, err := s.numbers(ctx, string(flight.SlotID))
	if err != nil {
		return err
	}
	other, err := s.buyer("quick-buyer")
	if err != nil {
		return err
	}
	hold, err := s.mustHold(ctx, other, flight, numbers.Available)
	if err != nil {
		return fmt.Errorf("hold the rest of %s: %w", flight.SlotID, err)
	}
	answer, err := s.end(ctx, s.shop, hold, "confirm")
	_, err = readHold(answer, err, http.StatusOK)
	return err
}
