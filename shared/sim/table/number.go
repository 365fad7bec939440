package table

import (
	"cmp"
	"math/big"
	"strconv"
	"strings"
)

// The limits of a DynamoDB number.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/HowItWorks.NamingRulesDataTypes.html
const (
	numberDigitsMax    = 38
	numberMagnitudeMax = 125  // of the first digit's power of ten
	numberMagnitudeMin = -130 // likewise
	// fastDigitsMax is how many digits surely fit in an int64, also after one addition.
	fastDigitsMax = 18
	// exponentTextMax is the longest exponent that is read at all.
	exponentTextMax = 6
)

// decimal is coefficient × 10^exponent, exact. The coefficient has no trailing zeros, so
// each value has one form; zero has exponent 0.
type decimal struct {
	coefficient *big.Int
	exponent    int
}

var bigTen = big.NewInt(10)

// fastInteger reads a whole number of few digits, which nearly all numbers are.
func fastInteger(text string) (int64, bool) {
	digits := text
	negative := len(digits) > 0 && digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	if len(digits) == 0 || len(digits) > fastDigitsMax {
		return 0, false
	}
	var n int64
	for i := range len(digits) {
		if digits[i] < '0' || digits[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(digits[i]-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}

func parseDecimal(text string) (decimal, *fault) {
	mantissa, exponentText, hasExponent := text, "", false
	if at := strings.IndexAny(text, "eE"); at >= 0 {
		mantissa, exponentText, hasExponent = text[:at], text[at+1:], true
	}
	exponent := 0
	if hasExponent {
		read, err := strconv.Atoi(exponentText)
		if err != nil || len(exponentText) > exponentTextMax {
			return decimal{}, notANumber(text)
		}
		exponent = read
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	unsigned := strings.TrimLeft(whole, "+-")
	if len(whole)-len(unsigned) > 1 || unsigned+fraction == "" || strings.ContainsAny(fraction, "+-") {
		return decimal{}, notANumber(text)
	}
	coefficient, ok := new(big.Int).SetString(whole+fraction, 10)
	if !ok || strings.Contains(text, "_") {
		return decimal{}, notANumber(text)
	}
	d := decimal{coefficient, exponent - len(fraction)}.withoutTrailingZeros()
	return d, d.check()
}

func notANumber(text string) *fault {
	return requestFaultf("The parameter cannot be converted to a numeric value: %s", text)
}

func (d decimal) withoutTrailingZeros() decimal {
	if d.coefficient.Sign() == 0 {
		return decimal{new(big.Int), 0}
	}
	digits := d.coefficient.String()
	zeros := len(digits) - len(strings.TrimRight(digits, "0"))
	if zeros == 0 {
		return d
	}
	divisor := new(big.Int).Exp(bigTen, big.NewInt(int64(zeros)), nil)
	return decimal{new(big.Int).Quo(d.coefficient, divisor), d.exponent + zeros}
}

func (d decimal) check() *fault {
	if d.coefficient.Sign() == 0 {
		return nil
	}
	digits := len(new(big.Int).Abs(d.coefficient).String())
	magnitude := d.exponent + digits - 1
	switch {
	case magnitude > numberMagnitudeMax:
		return requestFaultf("Number overflow. Attempting to store a number with magnitude larger than supported range")
	case magnitude < numberMagnitudeMin:
		return requestFaultf("Number underflow. Attempting to store a number with magnitude smaller than supported range")
	case digits > numberDigitsMax:
		return requestFaultf("Attempting to store more than %d significant digits in a Number", numberDigitsMax)
	}
	return nil
}

// String is the form in which DynamoDB gives a number back: plain, without an exponent
// and without zeros that say nothing.
func (d decimal) String() string {
	digits := new(big.Int).Abs(d.coefficient).String()
	sign := ""
	if d.coefficient.Sign() < 0 {
		sign = "-"
	}
	if d.exponent >= 0 {
		return sign + digits + strings.Repeat("0", d.exponent)
	}
	if point := len(digits) + d.exponent; point > 0 {
		return sign + digits[:point] + "." + digits[point:]
	}
	return sign + "0." + strings.Repeat("0", -d.exponent-len(digits)) + digits
}

// canonicalNumber is the one form of a number's value.
func canonicalNumber(text string) (string, *fault) {
	if _, fast := fastInteger(text); fast {
		first := strings.TrimPrefix(text, "-")
		if first[0] != '0' || text == "0" {
			return text, nil
		}
	}
	d, f := parseDecimal(text)
	if f != nil {
		return "", f
	}
	return d.String(), nil
}

// compareNumbers compares two texts that parse; literals and items are checked before.
func compareNumbers(a, b string) int {
	fastA, okA := fastInteger(a)
	fastB, okB := fastInteger(b)
	if okA && okB {
		return cmp.Compare(fastA, fastB)
	}
	left, _ := parseDecimal(a)
	right, _ := parseDecimal(b)
	x, y, _ := aligned(left, right)
	return x.Cmp(y)
}

// addNumbers is a+b, or a-b.
func addNumbers(a, b string, subtract bool) (string, *fault) {
	fastA, okA := fastInteger(a)
	fastB, okB := fastInteger(b)
	if okA && okB {
		if subtract {
			fastB = -fastB
		}
		return strconv.FormatInt(fastA+fastB, 10), nil
	}
	left, f := parseDecimal(a)
	if f != nil {
		return "", f
	}
	right, f := parseDecimal(b)
	if f != nil {
		return "", f
	}
	x, y, exponent := aligned(left, right)
	sum := new(big.Int)
	if subtract {
		sum.Sub(x, y)
	} else {
		sum.Add(x, y)
	}
	d := decimal{sum, exponent}.withoutTrailingZeros()
	return d.String(), d.check()
}

// aligned gives both coefficients at the smaller exponent. The exponents are bounded by
// decimal.check, so this is a few hundred digits at most.
func aligned(a, b decimal) (x, y *big.Int, exponent int) {
	exponent = min(a.exponent, b.exponent)
	scale := func(d decimal) *big.Int {
		power := new(big.Int).Exp(bigTen, big.NewInt(int64(d.exponent-exponent)), nil)
		return power.Mul(power, d.coefficient)
	}
	return scale(a), scale(b), exponent
}

// magnitudeOffset makes every magnitude a positive number of three digits.
const magnitudeOffset = 500

// numberOrder writes a canonical number so that the order of the texts is the order of
// the numbers: a sign, the magnitude, and the digits, for a negative number each taken
// from nine.
func numberOrder(canonical string) string {
	digits, negative := strings.CutPrefix(canonical, "-")
	whole, fraction, _ := strings.Cut(digits, ".")
	all := strings.TrimRight(strings.TrimLeft(whole+fraction, "0"), "0")
	if all == "" {
		return "1"
	}
	magnitude := len(whole) - 1
	if whole == "0" {
		magnitude = -1 - (len(fraction) - len(strings.TrimLeft(fraction, "0")))
	}
	if !negative {
		return "2" + strconv.Itoa(magnitudeOffset+magnitude) + all
	}
	complement := make([]byte, len(all), len(all)+1)
	for i := range len(all) {
		complement[i] = '9' - (all[i] - '0')
	}
	// ':' sorts after every digit: of two negative numbers with the same first digits,
	// the longer one is the smaller.
	return "0" + strconv.Itoa(magnitudeOffset-magnitude) + string(append(complement, ':'))
}
