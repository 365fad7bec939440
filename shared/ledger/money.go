package ledger

import "regexp"

// Currency is an ISO 4217 code in capitals: "USD", "KRW".
type Currency string

// Money is an amount in the minor unit of its currency: 500 JPY is {500, "JPY"},
// 5.00 USD is {500, "USD"}, 1.234 KWD is {1234, "KWD"}. It is never a fraction.
type Money struct {
	AmountMinor int64
	Currency    Currency
}

// AmountMinorMax bounds a unit price. A hold of the most lines, each of the most
// units at this price, still sums below 2^63.
const AmountMinorMax = 1_000_000_000_000

var currencyPattern = regexp.MustCompile(`^[A-Z]{3}$`)

// Valid reports whether m may be a unit price: not negative, at most AmountMinorMax,
// with a currency code of three capitals.
func (m Money) Valid() bool {
	return m.AmountMinor >= 0 && m.AmountMinor <= AmountMinorMax && currencyPattern.MatchString(string(m.Currency))
}

// Times is the price of q units. The caller has checked the bounds of both.
func (m Money) Times(q Units) Money {
	return Money{AmountMinor: m.AmountMinor * int64(q), Currency: m.Currency}
}
