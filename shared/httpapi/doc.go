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
// scopes (principal.go), the brake on its owner (owner_rate.go), the body's size and its
// JSON (body.go), the document (validation.go), and the handler of its noun (slot.go,
// policy.go, hold.go, payment.go, reservation.go, review.go, availability.go, and the files that begin
// with one of these). The handler turns the body into a command of package commands and the
// outcome into an answer. Every answer that is not a success passes through the one table in
// problem.go.
//
// A batch of slots (slot_batch.go) is the one request that may be refused in part. Each row is
// read like the body of its own PUT or PATCH and has its own result, with the problem that
// the request of the row alone would have been answered with.
//
// What is kept to be answered again is the bytes of the first answer, so handlers hand
// package commands a function that renders them.
//
// # What is left
//
// Availability is a hint, and is asked for far more often than anything is held. So a
// process reads a page of slots, or the stock of a slot, once a second for all who ask, in
// batches and by one index, whatever else there is; an answer is as of its oldest part.
// The alternatives of a refusal come from the same reads. No hold is decided by them.
//
// A search for groups (the nights of a stay, seats side by side) looks beyond the end of
// its page, so that no group is lost where a page ends: a stay is on the page of its first
// slot, and the slots of one start are looked at together. What that reads is bounded, and
// beyond the bound the search is refused; an answer with some groups missing would look
// like one that has them all. Rejected: pages that overlap by a fixed number of slots,
// because no number is enough for every catalogue, and whole ranges without pages, because
// anybody may ask.
//
// # Limits, and who counts
//
// What one owner may have is said by policies and counted by the ledger, exactly, in the
// write that makes the hold. What this package adds are brakes: [OwnerRate] counts the
// requests of an owner in one process, so that with n processes an owner gets up to n times
// as many through, and the gateway's limits per route (package topology) come before it. No
// promise may rest on either.
//
// A policy may also limit how many holds are made from one device or with one means of
// payment. The shop's service names those in the body of a create, as opaque texts.
// signal.go hashes them with their kind and hour before anything else sees them. They are
// no part of a request's fingerprint: one key makes at most one hold whatever they say, and
// an honest retry must not be refused because the device is known by another text by then.
//
// # Times that people say
//
// When a sale begins is said by people who look at a clock on a wall, so sale_from and
// sale_until may be local times of a named zone (sale_time.go). They are read once, when
// they are said, and kept as a moment: a zone whose rules change later moves no sale that
// was announced. What a clock never shows is refused, because no guess would be right. Of
// two moments that it shows alike the first is taken, always, so that the answer, which is
// in UTC, tells what was understood.
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
