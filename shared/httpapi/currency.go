package httpapi

import (
	"github.com/bojanz/currency"
)

const currencyDetail = "must be the ISO 4217 code of a currency in use, such as KRW"

// checkCurrency refuses a code that no currency has, such as ZZZ, and those that name no
// money: XXX is no currency, XTS is for tests, XAU is gold. Nobody can be charged in one.
func checkCurrency(code Currency) error {
	if code == "" || !currency.IsValid(code) {
		return invalid("body", "/currency", currencyDetail)
	}
	return nil
}
