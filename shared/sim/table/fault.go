package table

import (
	"errors"
	"fmt"

	"github.com/aws/smithy-go"
)

// ErrUnsupported is in the error of a request that DynamoDB would understand and this
// table does not. It is no answer of DynamoDB's: a simulation that meets it must stop and
// be extended, not carry on.
var ErrUnsupported = errors.New("not supported by the simulated table")

func unsupported(what string) error { return fmt.Errorf("%s: %w", what, ErrUnsupported) }

// codeValidation is the code of every refusal of a request as it stands.
const codeValidation = "ValidationException"

// fault says what is wrong with a request. Nil is no fault. It is a type of its own, and
// not an error, because the same fault is the answer of a single write and one reason
// among others in a transaction.
type fault struct {
	message string
	// wholeRequest: a transaction is refused as a whole, without reasons by action.
	wholeRequest bool
	// unsupported is not nil when the fault is this package's and not the caller's.
	unsupported error
}

func faultf(format string, arguments ...any) *fault {
	return &fault{message: fmt.Sprintf(format, arguments...)}
}

func requestFaultf(format string, arguments ...any) *fault {
	return &fault{message: fmt.Sprintf(format, arguments...), wholeRequest: true}
}

func unsupportedFault(what string) *fault { return &fault{unsupported: unsupported(what)} }

// err is the fault as the SDK gives it.
func (f *fault) err() error {
	if f.unsupported != nil {
		return f.unsupported
	}
	return &smithy.GenericAPIError{Code: codeValidation, Message: f.message, Fault: smithy.FaultClient}
}

func invalid(format string, arguments ...any) error { return faultf(format, arguments...).err() }
