package telemetry

// MetricAPIInternalFaults is the metric of the HTTP API. It is reported only when there is
// something to report, because a line for each request would cost more than the request.
const MetricAPIInternalFaults MetricName = "api_internal_faults"

// The metrics of what buyers ask for. A process adds them up and reports all of them
// together, every few seconds at the most and only if something was counted. The holds that
// were asked for are those that were made and those that were refused, each for one reason.
const (
	MetricHoldRequests             MetricName = "hold_requests"
	MetricHoldRequestsMade         MetricName = "hold_requests_made"
	MetricHoldRequestsShort        MetricName = "hold_requests_short"
	MetricHoldRequestsClosed       MetricName = "hold_requests_closed"
	MetricHoldRequestsPriceChanged MetricName = "hold_requests_price_changed"
	MetricHoldRequestsOverLimit    MetricName = "hold_requests_over_limit"
	MetricHoldRequestsOffSale      MetricName = "hold_requests_off_sale"
	MetricHoldRequestsFailed       MetricName = "hold_requests_failed"
	MetricCommandRequests          MetricName = "command_requests"
	MetricCommandReplays           MetricName = "command_replays"
)

// The metrics of how commands meet each other. The API adds them up with the others; the
// saga reports the late sales and the prevented oversells that it meets, and the sweep its
// retries, when there are any.
const (
	MetricConfirmsLate      MetricName = "confirms_late"
	MetricOversellPrevented MetricName = "oversell_prevented"
	MetricConflictRetries   MetricName = "conflict_retries"
	MetricShardProbes       MetricName = "shard_probes"
	MetricShardSplits       MetricName = "shard_splits"
)

func apiMetrics() []Metric {
	return []Metric{
		counted(MetricAPIInternalFaults, "Requests that ended in a fault of ours, which the caller was told as the code internal. Left out when there was none."),
		counted(MetricHoldRequests, "Holds that were asked for and made, or refused for what is left, its price, its sale or the caller's limits; answers that were given again are left out. Added up in each process, so a few are lost when a process ends."),
		counted(MetricHoldRequestsMade, "Of the holds that were asked for: those that were made. Their share is the success of creating."),
		counted(MetricHoldRequestsShort, "Of the holds that were asked for: those that were refused because less was left. Each is an oversell that was prevented, and a buyer who did not find what they wanted."),
		counted(MetricHoldRequestsClosed, "Of the holds that were asked for: those that were refused because a slot was closed."),
		counted(MetricHoldRequestsPriceChanged, "Of the holds that were asked for: those that were refused because the price was another one than was quoted."),
		counted(MetricHoldRequestsOverLimit, "Of the holds that were asked for: those that were refused for a limit of the hold, the owner, the device or the means of payment, or a cool-down."),
		counted(MetricHoldRequestsOffSale, "Of the holds that were asked for: those that were refused because the sale was not open yet, or over."),
		counted(MetricHoldRequestsFailed, "Holds that were asked for and neither made nor refused for a reason of the shop: answers 5xx. They are not among the holds that were asked for, so that a good sale, which ends in refusals, is not taken for a fault."),
		counted(MetricCommandRequests, "Requests with an Idempotency-Key that could be understood."),
		counted(MetricCommandReplays, "Of the requests with an Idempotency-Key: those that were answered again, because they had been carried out before. Their share tells how often clients repeat themselves."),
		counted(MetricConfirmsLate, "Sales that came when the hold was over: confirms that were refused for it, and payments that the saga found authorized too late, whatever became of them."),
		counted(MetricOversellPrevented, "Requests and late payments that were refused because less was left than they wanted. Each would have been an oversell without the condition in the write."),
		counted(MetricConflictRetries, "Decisions that were made anew because somebody else had changed the same thing in the meantime, and writes that were tried again because they met one that was running."),
		counted(MetricShardProbes, "Slots whose stock items were read to find units, because the first one had too little, or because the slot was short a moment ago."),
		counted(MetricShardSplits, "Lines that were taken from more than one stock item of their slot."),
	}
}
