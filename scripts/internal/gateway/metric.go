package gateway

import "net/http"

// Metric names a number that API Gateway counts of an HTTP API, as CloudWatch calls it:
// https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-metrics.html
type Metric string

// The metrics that are imitated.
const (
	MetricCount        Metric = "Count"
	MetricServerErrors Metric = "5xx" // zero for any other answer
	MetricClientErrors Metric = "4xx" // zero for any other answer
)

// serverErrorsFrom is where the statuses begin that say that it is our fault.
const serverErrorsFrom = http.StatusInternalServerError

func (g *Gateway) measure(status int) {
	var server, client float64
	switch {
	case status >= serverErrorsFrom:
		server = 1
	case status >= http.StatusBadRequest:
		client = 1
	}
	g.config.Measured(MetricCount, 1)
	g.config.Measured(MetricServerErrors, server)
	g.config.Measured(MetricClientErrors, client)
}

// notedStatus remembers with which status a request was answered.
type notedStatus struct {
	http.ResponseWriter
	status int
}

// WriteHeader notes the status and writes it.
func (n *notedStatus) WriteHeader(status int) {
	n.status = status
	n.ResponseWriter.WriteHeader(status)
}
