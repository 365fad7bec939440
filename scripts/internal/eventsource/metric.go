package eventsource

// Metric names a number that Lambda counts of a mapping from a stream, as CloudWatch calls
// it: https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
type Metric string

// MetricIteratorAge is how old the last record of a batch is when the batch is handed to the
// function, in milliseconds.
const MetricIteratorAge Metric = "IteratorAge"

// measure tells the age of a batch that is about to be handed over.
func (p *Poller) measure(batch Batch) {
	last := batch.Records[len(batch.Records)-1]
	age := p.config.Clock.Now().Sub(last.Change.ApproximateCreationDateTime.Time)
	p.config.Measured(MetricIteratorAge, float64(max(0, age.Milliseconds())))
}
