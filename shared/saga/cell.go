package saga

import "holdfast/shared/payment"

// Row is what the provider says, as in the table of DESIGN.md.
type Row string

// The rows.
const (
	RowNotAsked        Row = "not asked yet"
	RowAuthorized      Row = "authorized or captured, as asked for"
	RowMismatch        Row = "authorized or captured, not as asked for"
	RowLateNews        Row = "authorized in time, the news is late"
	RowDeclined        Row = "declined"
	RowPending         Row = "pending or requires action"
	RowVoided          Row = "voided"
	RowVoidNotAnswered Row = "void refused or not answered"
	RowUnreachable     Row = "unreachable or unknown"
	RowOtherAttempt    Row = "news of another attempt"
	RowSecondPayment   Row = "money of another attempt"
)

// Rows lists every row of the table, which is without RowNotAsked.
func Rows() []Row {
	return []Row{
		RowAuthorized, RowMismatch, RowLateNews, RowDeclined, RowPending, RowVoided,
		RowVoidNotAnswered, RowUnreachable, RowOtherAttempt, RowSecondPayment,
	}
}

// Column is how the hold stands.
type Column string

// The columns.
const (
	ColumnLive       Column = "hold live"
	ColumnStockThere Column = "hold over, stock still there"
	ColumnSoldOut    Column = "hold over, sold out"
)

// Columns lists every column of the table.
func Columns() []Column { return []Column{ColumnLive, ColumnStockThere, ColumnSoldOut} }

// Cell is one cell of the table: it tells an operator why something was decided.
type Cell struct {
	Row    Row
	Column Column
}

func (d decider) cell() Cell { return Cell{d.row(), d.column()} }

func (d decider) column() Column {
	if d.live() {
		return ColumnLive
	}
	if d.held() && !d.Closed {
		return ColumnStockThere
	}
	if _, there := d.allocate(); d.Closed || (d.Stock != nil && !there) {
		return ColumnSoldOut
	}
	return ColumnStockThere
}

func (d decider) row() Row {
	attempt, begun := d.Reservation.Current()
	if !begun {
		return RowNotAsked
	}
	for n, s := range d.Sightings {
		if n != attempt.Number && s.Seen && holdsMoney(s.Payment) {
			return RowSecondPayment
		}
	}
	if d.Notice != nil && d.Notice.Attempt != attempt.Number {
		return RowOtherAttempt
	}
	s, asked := d.Sightings[attempt.Number]
	p := s.Payment
	switch {
	case !asked:
		return RowNotAsked
	case s.Refused == EffectVoid:
		return RowVoidNotAnswered
	case !s.Seen:
		return RowUnreachable
	case holdsMoney(p) && !d.matches(attempt, p):
		return RowMismatch
	case holdsMoney(p) && !d.live() && !p.AuthorizedAt.IsZero() && p.AuthorizedAt.Before(d.Hold.ReleaseAt):
		return RowLateNews
	case holdsMoney(p):
		return RowAuthorized
	case p.Status == payment.StatusDeclined:
		return RowDeclined
	case p.Status == payment.StatusVoided:
		return RowVoided
	}
	return RowPending
}
