package reconcile

// RepairOutcome is what became of one finding.
type RepairOutcome string

// The outcomes.
const (
	// RepairPlanned: it would be done; the run was a dry one.
	RepairPlanned RepairOutcome = "planned"
	// RepairDone: it was done.
	RepairDone RepairOutcome = "repaired"
	// RepairQueued: a person is asked, by a case that was opened or got new evidence.
	RepairQueued RepairOutcome = "queued"
	// RepairKnown: a person was asked before, with the same evidence. Nothing was written.
	RepairKnown RepairOutcome = "known"
	// RepairSkipped: it is not so any more, or a step came in between each time.
	RepairSkipped RepairOutcome = "skipped"
	// RepairFailed: it could not be done. The next run tries again, if it is still so.
	RepairFailed RepairOutcome = "failed"
	// RepairLeft: the run had done as much as one may, or had no time left.
	RepairLeft RepairOutcome = "left"
)

// RepairResult is what became of one finding, and why.
type RepairResult struct {
	Action  Action        `json:"action"`
	Outcome RepairOutcome `json:"outcome"`
	// Note says what was or would be written, or why it was not. It has numbers and ids, and
	// nothing that identifies a person or opens a door.
	Note string `json:"note"`
}

// RepairReport is what became of all findings of a run, in the order of the findings.
type RepairReport struct {
	Applied bool           `json:"applied"`
	Results []RepairResult `json:"results"`
}

// Count is how many findings came to that.
func (r RepairReport) Count(outcome RepairOutcome) int {
	n := 0
	for _, result := range r.Results {
		if result.Outcome == outcome {
			n++
		}
	}
	return n
}

// Written is how many findings something was written about.
func (r RepairReport) Written() int { return r.Count(RepairDone) + r.Count(RepairQueued) }
