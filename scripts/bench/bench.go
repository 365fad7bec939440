package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/shared/dynamo"
	"holdfast/shared/dynamo/engine"
	"holdfast/shared/httpapi"
	"holdfast/shared/ledger"
	"holdfast/shared/system"
)

const (
	tableName = "bench"
	// slotCount is how many slots the holds are spread over, as in a normal hour.
	slotCount = 64
	// slotCapacity is never used up by a run.
	slotCapacity = 100_000_000
	unitAmount   = 17_900
)

// bench is an engine with a table, and the real handler in front of it.
type bench struct {
	engine *engine.Engine
	client *dynamodb.Client
	api    *httpapi.API
	keys   int
}

func newBench(ctx context.Context) (*bench, error) {
	e, err := engine.Start(ctx, engine.Options{Log: os.Stderr, OwnProcess: true})
	if err != nil {
		return nil, err
	}
	b := &bench{engine: e, client: e.Client()}
	if err := b.prepare(ctx); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

func (b *bench) close() {
	if err := b.engine.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "bench: end the engine:", err)
	}
}

// prepare makes the table and its slots.
func (b *bench) prepare(ctx context.Context) error {
	if err := dynamo.CreateTable(ctx, b.client, tableName); err != nil {
		return err
	}
	var err error
	if b.api, err = apiOn(b.client); err != nil {
		return err
	}
	for i := range slotCount {
		body := fmt.Sprintf(`{"resource_type":"flight","resource_id":"UA1545","capacity":%d,"unit_amount":%d,"currency":"USD","open":true}`, slotCapacity, unitAmount)
		answer, err := invoke(ctx, b.api, request(http.MethodPut, "/v1/slots/"+string(slotID(i)), "catalog", "", body))
		if err != nil {
			return err
		}
		if answer.StatusCode != http.StatusCreated {
			return fmt.Errorf("define a slot: %d %s", answer.StatusCode, answer.Body)
		}
	}
	return nil
}

// apiOn is the API as functions/api wires it, on any client.
func apiOn(client dynamo.Client) (*httpapi.API, error) { return apiWith(client, nil) }

// apiWith is apiOn with a contract that is loaded already; nil loads one.
func apiWith(client dynamo.Client, contract *httpapi.Contract) (*httpapi.API, error) {
	clock, random := system.RealClock{}, system.RealRandom{}
	return httpapi.New(httpapi.Options{
		Store: dynamo.NewStore(client, tableName, clock, random), Clock: clock, Random: random,
		OperatorGroup: "ops", Logger: slog.New(slog.NewJSONHandler(io.Discard, nil)), Contract: contract,
	})
}

func slotID(i int) ledger.SlotID {
	return ledger.SlotID(fmt.Sprintf("flight-20130101-UA%04d-EWR-IAH", i%slotCount))
}

// createEvent is the gateway's event of a new hold under a key of its own.
func (b *bench) createEvent() json.RawMessage {
	b.keys++
	body := fmt.Sprintf(`{"lines":[{"slot_id":%q,"quantity":2,"unit_amount":%d}]}`, slotID(b.keys), unitAmount)
	return request(http.MethodPost, "/v1/holds", "holds", fmt.Sprintf("bench-key-%d", b.keys), body)
}

// request is an event of payload format 2.0, as API Gateway sends it. The path may have a
// query after it.
func request(method, path, scope, key, body string) json.RawMessage {
	path, query, _ := strings.Cut(path, "?")
	event := events.APIGatewayV2HTTPRequest{
		Version: "2.0", RouteKey: "$default", RawPath: path, RawQueryString: query, Body: body,
		Headers: map[string]string{"content-type": "application/json", "user-agent": "bench", "accept": "application/json"},
		RequestContext: events.APIGatewayV2HTTPRequestContext{
			Stage: "$default", RequestID: "JKJaXmPLvHcESHA=",
			HTTP: events.APIGatewayV2HTTPRequestContextHTTPDescription{Method: method, Path: path, Protocol: "HTTP/1.1", SourceIP: "127.0.0.1"},
			Authorizer: &events.APIGatewayV2HTTPRequestContextAuthorizerDescription{
				JWT: &events.APIGatewayV2HTTPRequestContextAuthorizerJWTDescription{
					Claims: map[string]string{"sub": "U-17", "scope": scope, "iss": "https://issuer.example.invalid", "exp": "1800000000"},
					Scopes: []string{scope},
				},
			},
		},
	}
	if key != "" {
		event.Headers["idempotency-key"] = key
	}
	encoded, err := json.Marshal(event)
	if err != nil {
		panic(err) // texts and numbers only
	}
	return encoded
}

func invoke(ctx context.Context, api *httpapi.API, event json.RawMessage) (events.APIGatewayV2HTTPResponse, error) {
	return api.Lambda(ctx, event)
}
