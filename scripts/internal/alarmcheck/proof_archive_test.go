package alarmcheck_test

import (
	"time"

	"holdfast/shared/archive/archivetest"
	"holdfast/shared/topology"
)

// archiveProofs are faults of what moves old records out of the table.
func archiveProofs() map[string]proof {
	// Records end, and are old enough a day later.
	old := func(p *plant) {
		p.run(longCalmFor)
		p.noTraffic = true
		p.run(5 * time.Minute)
		p.clock.Advance(retained)
	}
	return map[string]proof{
		"ArchiveHeartbeat": {calm: longCalm, fault: func(p *plant) {
			p.noTraffic = true
			p.refusing(topology.FunctionArchive, errDenied, "Query")
			p.run(150 * time.Minute)
		}},
		"ArchiveFailed": {calm: old, fault: func(p *plant) {
			p.bucket.Order(func(operation archivetest.Operation, _ string) archivetest.Fault {
				if operation == archivetest.Put {
					return archivetest.Down
				}
				return archivetest.None
			})
			p.run(150 * time.Minute)
		}},
		// Each read of the archive takes as long as a run may.
		"ArchiveTruncated": {calm: old, fault: func(p *plant) {
			p.slowing(topology.FunctionArchive, 7*time.Minute, "Query", "GetItem")
			p.runOnly(topology.FunctionArchive, 25*time.Hour)
		}},
	}
}
