package lambdahost

// Metric names a number that Lambda counts of every function, as CloudWatch calls it:
// https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
type Metric string

// The metrics that are imitated. AWS counts a call that was throttled as no invocation.
const (
	MetricInvocations Metric = "Invocations"
	MetricErrors      Metric = "Errors"    // zero for a call that went well
	MetricThrottles   Metric = "Throttles" // zero for a call that was let in
	MetricDuration    Metric = "Duration"  // milliseconds
)

// measure lets a call be worked on, and counts it before anybody is told its outcome. It
// counts also a call whose caller has left: the function runs on, as on AWS.
func (h *Host) measure(work func(chan<- outcome), outcomes chan<- outcome) {
	began, measured := h.config.Clock.Now(), make(chan outcome, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		out := <-measured
		failed := 0.0
		if out.err != nil {
			failed = 1
		}
		h.config.Measured(MetricInvocations, 1)
		h.config.Measured(MetricErrors, failed)
		h.config.Measured(MetricThrottles, 0)
		h.config.Measured(MetricDuration, float64(h.config.Clock.Now().Sub(began).Milliseconds()))
		outcomes <- out
	}()
	work(measured)
	<-done
}
