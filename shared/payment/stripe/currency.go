package stripe

import "holdfast/shared/ledger"

// CodeForeignUnit is the code of a creation that is refused before it is sent.
const CodeForeignUnit = "holdfast_foreign_unit"

// foreignUnits are the currencies whose amounts Stripe counts in another unit than ISO
// 4217 does, and why. The amount of a quote is sent as it is and never altered, so these
// would be charged a hundred times too much or too little; they are refused instead.
// From https://docs.stripe.com/currencies, "Zero-decimal currencies" and "Special cases".
//
// Three-decimal currencies (BHD, JOD, KWD, OMR, TND) are counted in thousandths by both.
// Stripe asks that the last digit is 0 and refuses other amounts; that is its answer to
// give, and the catalogue's prices that have to suit it.
var foreignUnits = map[ledger.Currency]string{
	"ISK": "Stripe counts ISK in hundredths, ISO 4217 in whole units",
	"UGX": "Stripe counts UGX in hundredths, ISO 4217 in whole units",
	"MGA": "Stripe counts MGA in whole units, ISO 4217 in hundredths",
}
