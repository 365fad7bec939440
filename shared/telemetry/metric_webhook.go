package telemetry

// The metrics of the webhook. Each delivery of the provider is one of them.
const (
	MetricWebhookQueued    MetricName = "webhook_queued"
	MetricWebhookRecorded  MetricName = "webhook_recorded"
	MetricWebhookIgnored   MetricName = "webhook_ignored"
	MetricWebhookRefused   MetricName = "webhook_refused"
	MetricWebhookMalformed MetricName = "webhook_malformed"
	MetricWebhookFailed    MetricName = "webhook_failed"
)

func webhookMetrics() []Metric {
	return []Metric{
		counted(MetricWebhookQueued, "Deliveries of the payment provider that were queued for the saga."),
		counted(MetricWebhookRecorded, "Deliveries of an event that the saga has recorded before."),
		counted(MetricWebhookIgnored, "Deliveries that are signed and about nothing of ours."),
		counted(MetricWebhookRefused, "Deliveries without a good signature, or too large: the secret is wrong, or somebody else sends them."),
		counted(MetricWebhookMalformed, "Deliveries that are signed and can't be read."),
		counted(MetricWebhookFailed, "Deliveries that could not be taken in, because the secret, the table or the queue did not answer; the provider sends them again."),
	}
}
