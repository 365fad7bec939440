// Package httpapi is the HTTP face of the ledger: the contract, and the handlers that
// keep it.
//
// The problem it solves: a gateway checks a token and nothing else. Bodies arrive as
// text or as base64, repeated headers arrive as one, claims arrive as whatever the
// gateway makes of them, and a client that lost an answer asks again. Whatever comes in
// must either be exactly one understood command, or a problem that says what is wrong,
// with nothing written.
//
// openapi.yaml is the contract and comes first. The types, the parameter binding and the
// embedded document of *.gen.go are generated from it, and every request is checked
// against it before a handler sees it. A change of the API begins there.
//
// # The way of a request
//
// [API.Lambda] turns an API Gateway event of payload format 2.0 into an http.Request
// with a [Caller] in its context; [API.ServeHTTP] is a plain http.Handler, which is what
// tests drive. A request then meets, in this order: the route (route.go), the token's
// scopes (principal.go), the body's size and its JSON (body.go), the document
// (validation.go), and the handler of its noun (slot.go, hold.go, payment.go,
// reservation.go, availability.go). The
// handler turns the body into a command of package commands and the outcome into an
// answer. Every answer that is not a success passes through the one table in problem.go.
//
// What is kept to be answered again is the bytes of the first answer, so handlers hand
// package commands a function that renders them.
//
// # The payment in the buyer's words
//
// A reservation goes through ten statuses, and its hold through others, beside it. What a
// buyer wants to know is what happened to the units and what happened to the money:
// outcome.go derives the two, and the message that tells them, from the reservation, its
// hold and the time, and from nothing else.
//
// A payment's client secret goes from the provider into the answer of the two routes in
// payment.go, and nowhere else. What is rendered, and kept to be answered again, has none.
//
// The package starts no goroutine and knows no AWS service but the event's form.
package httpapi

//go:generate go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -config oapi-codegen.yaml openapi.yaml
//go:generate go run github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2 -config oapi-codegen-document.yaml openapi.yaml
