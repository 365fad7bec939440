package ledger

import "time"

func (p Policy) validateSale() error {
	whole := func(t time.Time) bool { return t.Equal(t.Truncate(time.Millisecond)) }
	switch {
	case p.saleNeverOpens():
		return errorf(CodeInvalid, "sale_until must be later than sale_from")
	case !whole(p.SaleFrom) || !whole(p.SaleUntil):
		return errorf(CodeInvalid, "sale_from and sale_until must be in whole milliseconds")
	case p.SaleEndsFor < 0 || p.SaleEndsFor > CancelForLimit:
		return errorf(CodeInvalid, "sale_ends_seconds_before_start must be 0 to %d", int(CancelForLimit.Seconds()))
	case len(p.SaleTimeZone) > TimeZoneCharactersMax:
		return errorf(CodeInvalid, "sale_time_zone must be at most %d characters", TimeZoneCharactersMax)
	}
	return nil
}

// saleNeverOpens reports whether the sale ends before it begins.
func (p Policy) saleNeverOpens() bool {
	return !p.SaleFrom.IsZero() && !p.SaleUntil.IsZero() && !p.SaleFrom.Before(p.SaleUntil)
}

// OnSale returns CodeSaleNotOpen or CodeSaleOver where no hold of s can be made at now.
// The slot must be resolved.
func (s Slot) OnSale(now time.Time) error {
	from, until := s.Policy.SaleFrom, s.Policy.SaleUntil
	if s.Policy.SaleEnds && !s.StartsAt.IsZero() {
		if ends := s.StartsAt.Add(-s.Policy.SaleEndsFor); until.IsZero() || ends.Before(until) {
			until = ends
		}
	}
	switch {
	case !until.IsZero() && !now.Before(until):
		return &Error{Code: CodeSaleOver, Slots: []SlotID{s.ID}, Message: "the sale ended at " + until.UTC().Format(time.RFC3339) + "; choose another slot"}
	case !from.IsZero() && now.Before(from):
		return &Error{Code: CodeSaleNotOpen, Slots: []SlotID{s.ID}, RetryAfter: from.Sub(now), OpensAt: from,
			Message: "the sale begins at " + from.UTC().Format(time.RFC3339)}
	}
	return nil
}
