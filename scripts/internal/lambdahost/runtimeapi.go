package lambdahost

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
)

// The names of the Runtime API, version 2018-06-01.
const (
	runtimePath           = "/2018-06-01/runtime"
	headerRequestID       = "Lambda-Runtime-Aws-Request-Id"
	headerDeadlineMs      = "Lambda-Runtime-Deadline-Ms"
	headerFunctionARN     = "Lambda-Runtime-Invoked-Function-Arn"
	typeResponseTooLarge  = "Function.ResponseSizeTooLarge"
	typeUnreadableFailure = "Runtime.InvalidErrorShape"
)

// errorReport is how a function reports an error of its handler or of its start.
type errorReport struct {
	Type    string `json:"errorType"`
	Message string `json:"errorMessage"`
}

func (p *process) runtimeAPI() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+runtimePath+"/invocation/next", p.serveNext)
	mux.HandleFunc("POST "+runtimePath+"/invocation/{id}/response", p.serveResponse)
	mux.HandleFunc("POST "+runtimePath+"/invocation/{id}/error", p.serveError)
	mux.HandleFunc("POST "+runtimePath+"/init/error", p.serveInitError)
	return mux
}

// serveNext keeps the function waiting until there is an event for it.
func (p *process) serveNext(w http.ResponseWriter, r *http.Request) {
	select {
	case p.ready <- struct{}{}:
	default:
		http.Error(w, "another request already waits for the next event", http.StatusForbidden)
		return
	}
	var event *invocation
	select {
	case event = <-p.pending:
	case <-r.Context().Done():
		return
	}
	p.mu.Lock()
	p.current = event
	p.mu.Unlock()
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set(headerRequestID, event.id)
	header.Set(headerDeadlineMs, strconv.FormatInt(event.deadline.UnixMilli(), 10))
	header.Set(headerFunctionARN, "arn:aws:lambda:"+p.config.Region+":"+accountID+":function:"+p.config.Name)
	// A function that is gone before it has read the event is noticed by its end.
	_, _ = w.Write(event.payload)
}

func (p *process) serveResponse(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, PayloadBytesMax))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		p.finish(w, r, http.StatusRequestEntityTooLarge, outcome{err: &FunctionError{
			Function: p.config.Name,
			Type:     typeResponseTooLarge,
			Message:  fmt.Sprintf("response payload size exceeded maximum allowed payload size (%d bytes)", PayloadBytesMax),
		}})
		return
	}
	if err != nil {
		return // the connection broke, so the process is ending
	}
	p.finish(w, r, http.StatusAccepted, outcome{response: body})
}

func (p *process) serveError(w http.ResponseWriter, r *http.Request) {
	report := readReport(w, r)
	p.finish(w, r, http.StatusAccepted, outcome{err: &FunctionError{
		Function: p.config.Name, Type: report.Type, Message: report.Message,
	}})
}

func (p *process) serveInitError(w http.ResponseWriter, r *http.Request) {
	report := readReport(w, r)
	select {
	case p.initFailed <- fmt.Errorf("%s: %s", report.Type, report.Message):
	default: // only the first report counts
	}
	w.WriteHeader(http.StatusAccepted)
}

// finish ends the current event, if the request names it, and acknowledges.
func (p *process) finish(w http.ResponseWriter, r *http.Request, status int, out outcome) {
	p.mu.Lock()
	event := p.current
	if event == nil || event.id != r.PathValue("id") {
		p.mu.Unlock()
		http.Error(w, "not the current request id", http.StatusBadRequest)
		return
	}
	p.current = nil
	p.mu.Unlock()
	event.done <- out
	w.WriteHeader(status)
}

func readReport(w http.ResponseWriter, r *http.Request) errorReport {
	var report errorReport
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, PayloadBytesMax)).Decode(&report); err != nil {
		return errorReport{Type: typeUnreadableFailure, Message: err.Error()}
	}
	return report
}
