package queuesource

import (
	"encoding/json"
	"fmt"
	"slices"
)

// The names in a function's answer. They are compared to the letter, as Lambda does; Go's
// own decoding would also take other cases of them.
const (
	failuresMember   = "batchItemFailures"
	identifierMember = "itemIdentifier"
)

// Failed returns which messages of a batch have to come again after an invocation returned
// answer and invokeErr. If err is not nil it says why that is all of them: the invocation
// failed, or its answer has not the form that Lambda wants, or names a message that is not
// in the batch.
func Failed(batch []string, answer []byte, invokeErr error) (failed []string, err error) {
	if invokeErr != nil {
		return batch, invokeErr
	}
	named, err := readFailures(answer)
	if err != nil {
		return batch, fmt.Errorf("answer of the function: %w", err)
	}
	for _, id := range named {
		if !slices.Contains(batch, id) {
			return batch, fmt.Errorf("answer of the function: %q is no message of the batch", id)
		}
	}
	return named, nil
}

func readFailures(answer []byte) ([]string, error) {
	if len(answer) == 0 {
		return nil, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(answer, &members); err != nil {
		return nil, err
	}
	list, isThere := members[failuresMember]
	if !isThere {
		return nil, nil
	}
	var failures []map[string]json.RawMessage
	if err := json.Unmarshal(list, &failures); err != nil {
		return nil, err
	}
	var named []string
	for _, failure := range failures {
		var id string
		if err := json.Unmarshal(failure[identifierMember], &id); err != nil {
			return nil, fmt.Errorf("a failure without %s: %w", identifierMember, err)
		}
		named = append(named, id)
	}
	return named, nil
}
