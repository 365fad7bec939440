package queuesource_test

import (
	"errors"
	"slices"
	"testing"

	"holdfast/scripts/internal/queuesource"
)

// Each line is one of Lambda's rules for an answer:
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
func TestWhatAnAnswerMeans(t *testing.T) {
	batch := []string{"a", "b", "c"}
	for answer, want := range map[string][]string{
		// All is done.
		``:                            nil,
		`null`:                        nil,
		`{}`:                          nil,
		`{"batchItemFailures":null}`:  nil,
		`{"batchItemFailures":[]}`:    nil,
		`{"other":1}`:                 nil,
		`{"BatchItemFailures":[{}]}`:  nil, // a misspelt list is no list, and its messages are lost
		`{"batchitemfailures":["b"]}`: nil,
		// Some come again.
		`{"batchItemFailures":[{"itemIdentifier":"b"}]}`:                          {"b"},
		`{"batchItemFailures":[{"itemIdentifier":"c"},{"itemIdentifier":"a"}]}`:   {"c", "a"},
		`{"batchItemFailures":[{"itemIdentifier":"b","reason":"told to fail"}]}`:  {"b"},
		`{"batchItemFailures":[{"itemIdentifier":"b"},{"itemIdentifier":"b"}]}`:   {"b", "b"},
		`{"unknown":true,"batchItemFailures":[{"itemIdentifier":"a","n":[1,2]}]}`: {"a"},
		// Everything comes again.
		`{`:                            batch,
		`"done"`:                       batch,
		`[]`:                           batch,
		`{"batchItemFailures":"b"}`:    batch,
		`{"batchItemFailures":["b"]}`:  batch,
		`{"batchItemFailures":[null]}`: batch,
		`{"batchItemFailures":[{}]}`:   batch,
		`{"batchItemFailures":[{"itemIdentifier":""}]}`:                           batch,
		`{"batchItemFailures":[{"itemIdentifier":null}]}`:                         batch,
		`{"batchItemFailures":[{"itemIdentifier":7}]}`:                            batch,
		`{"batchItemFailures":[{"ItemIdentifier":"b"}]}`:                          batch,
		`{"batchItemFailures":[{"itemIdentifier":"b"},{"itemIdentifier":"x"}]}`:   batch,
		`{"batchItemFailures":[{"itemIdentifier":"b"},{"messageId":"c"}]}`:        batch,
		`{"batchItemFailures":[{"itemIdentifier":"b"}]} {"batchItemFailures":[]}`: batch,
	} {
		failed, err := queuesource.Failed(batch, []byte(answer), nil)
		if !slices.Equal(failed, want) {
			t.Errorf("%s: %v come again, want %v", answer, failed, want)
		}
		if isWhole := len(want) == len(batch); (err != nil) != isWhole {
			t.Errorf("%s: error %v", answer, err)
		}
	}
}

func TestAFailedRunBringsItsBatchBack(t *testing.T) {
	told := errors.New("told to fail")
	failed, err := queuesource.Failed([]string{"a", "b"}, []byte(`{"batchItemFailures":[]}`), told)
	if !slices.Equal(failed, []string{"a", "b"}) || !errors.Is(err, told) {
		t.Errorf("%v come again, %v", failed, err)
	}
}
