// Command function is a Lambda binary that does what its event says, good or bad.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

type event struct {
	Do string `json:"do"`
	// Text is what echo answers, and the message of an error.
	Text string `json:"text"`
	// URL is called by visit.
	URL string `json:"url"`
}

type answer struct {
	Text        string   `json:"text"`
	ProcessID   int      `json:"process_id"`
	RequestID   string   `json:"request_id"`
	RemainingMs int64    `json:"remaining_ms"`
	Environment []string `json:"environment"`
}

type refusedError struct{ text string }

func (e refusedError) Error() string { return e.text }

func handle(ctx context.Context, e event) (answer, error) {
	switch e.Do {
	case "echo":
		return describe(ctx, e.Text), nil
	case "visit": // answers what the URL answers, whenever that is
		body, err := get(e.URL)
		return describe(ctx, body), err
	case "fail":
		return answer{}, refusedError{e.Text}
	case "panic":
		panic(e.Text)
	case "exit":
		fmt.Print("a last line without an end")
		os.Exit(7)
	case "overrun":
		select {}
	case "swell":
		return describe(ctx, strings.Repeat("x", 7<<20)), nil
	}
	return answer{}, errors.New("unknown event")
}

func describe(ctx context.Context, text string) answer {
	deadline, _ := ctx.Deadline()
	request, _ := lambdacontext.FromContext(ctx)
	return answer{
		Text: text, ProcessID: os.Getpid(), RequestID: request.AwsRequestID,
		RemainingMs: time.Until(deadline).Milliseconds(), Environment: os.Environ(),
	}
}

func get(url string) (string, error) {
	response, err := http.Get(url)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(response.Body)
	return string(body), errors.Join(err, response.Body.Close())
}

func main() {
	if os.Getenv("BROKEN_START") != "" {
		fmt.Println("cannot start: the variable says so")
		os.Exit(1)
	}
	lambda.Start(handle)
}
