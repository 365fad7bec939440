package gateway

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/aws/aws-lambda-go/events"
)

// statusMin and statusMax are the status codes that a function may answer with.
const statusMin, statusMax = 200, 599

// writeAnswer writes what a function returned. Nothing has been written if it returns
// an error, which says that the answer has no valid form: the client then gets 500.
//
// An answer without a status code is the body itself, with status 200 and type
// application/json:
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
func writeAnswer(w http.ResponseWriter, payload []byte) error {
	var answer events.APIGatewayV2HTTPResponse
	if !json.Valid(payload) {
		return fmt.Errorf("the function's answer is not JSON")
	}
	if err := json.Unmarshal(payload, &answer); err != nil || answer.StatusCode == 0 {
		answer = events.APIGatewayV2HTTPResponse{
			StatusCode: http.StatusOK,
			Headers:    map[string]string{"Content-Type": "application/json"},
			Body:       string(payload),
		}
	}
	if answer.StatusCode < statusMin || answer.StatusCode > statusMax {
		return fmt.Errorf("the function's answer has status %d", answer.StatusCode)
	}
	body := []byte(answer.Body)
	if answer.IsBase64Encoded {
		var err error
		if body, err = base64.StdEncoding.DecodeString(answer.Body); err != nil {
			return fmt.Errorf("the body of the function's answer: %w", err)
		}
	}
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	for name, value := range answer.Headers {
		header.Set(name, value)
	}
	for _, cookie := range answer.Cookies {
		header.Add("Set-Cookie", cookie)
	}
	w.WriteHeader(answer.StatusCode)
	// A client that is gone before it has read the answer needs no other one.
	_, _ = w.Write(body)
	return nil
}

// refuse answers in the gateway's own words.
func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "{\"message\":%q}", message)
}
