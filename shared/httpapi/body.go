package httpapi

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"holdfast/shared/ledger"
)

// BodyBytesMax bounds a request's body, counted after base64 is undone (case H1).
const BodyBytesMax = 65_536

// readBody reads all of the request's body. Errors are codeBodyTooLarge, and CodeInvalid
// for a body that cannot be read, such as one that is not the base64 that it claims.
func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	if r.ContentLength > BodyBytesMax {
		return nil, bodyTooLarge()
	}
	var body bytes.Buffer
	if r.ContentLength > 0 {
		// One byte more, so that the reader finds the end without growing the buffer.
		body.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	if _, err := body.ReadFrom(io.LimitReader(r.Body, BodyBytesMax+1)); err != nil {
		return nil, invalid("body", "", "the body could not be read: it was cut short, or is not the base64 that it claims to be")
	}
	if body.Len() > BodyBytesMax {
		return nil, bodyTooLarge()
	}
	return body.Bytes(), nil
}

func bodyTooLarge() error {
	return &refusal{code: codeBodyTooLarge, detail: "a body may have at most 65536 bytes"}
}

// checkJSON refuses a body that two readers could understand differently: a member name
// twice, broken UTF-8, or anything after the value.
func checkJSON(body []byte, header http.Header) error {
	media, parameters, err := mime.ParseMediaType(header.Get("Content-Type"))
	if charset := parameters["charset"]; err != nil || media != "application/json" || (charset != "" && charset != "utf-8" && charset != "UTF-8") {
		return &refusal{code: codeUnsupportedMediaType, detail: "send the body as Content-Type: application/json"}
	}
	decoder := jsontext.NewDecoder(bytes.NewReader(body))
	_, err = decoder.ReadValue()
	if err == nil {
		if _, end := decoder.ReadToken(); errors.Is(end, io.EOF) {
			return nil
		}
		return invalid("body", "", "the body has something after its JSON value")
	}
	pointer := ""
	if syntactic := (*jsontext.SyntacticError)(nil); errors.As(err, &syntactic) {
		pointer = string(syntactic.JSONPointer)
	}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return invalid("body", pointer, "the body has a member name twice")
	}
	return invalid("body", pointer, "the body is not JSON in UTF-8")
}

// decode reads a body that was checked against the document into one of its types. It
// still refuses what only Go's types do: a fraction or exponent where an integer belongs,
// and a time that no calendar has.
func decode(body []byte, into any) error {
	if len(body) == 0 {
		return nil
	}
	err := json.Unmarshal(body, into)
	if err == nil {
		return nil
	}
	if semantic := (*json.SemanticError)(nil); errors.As(err, &semantic) {
		return invalid("body", string(semantic.JSONPointer), "this value is out of range, or not written as described")
	}
	return &refusal{code: ledger.CodeInvalid, detail: "the body is not as described"}
}
