package localrun

import (
	"io"
	"time"

	"holdfast/shared/payment"
	"holdfast/shared/topology"
)

const (
	// OperatorGroup is the group whose members are operators in a local run.
	OperatorGroup = "ops"
	// tableName is the table in a data folder that is kept.
	tableName    = "holdfast-local"
	eventBusName = "holdfast-local"
	// archiveBucketName is the archive's bucket, in the emulator's memory.
	archiveBucketName = string(topology.ResourceArchiveBucket)
	// auditBucketName is the audit's bucket, in the emulator's memory too.
	auditBucketName = string(topology.ResourceAuditBucket)
	// auditEvery is short, so that somebody who breaks something sees soon that it is found. The
	// audit is looked after as often, in place of every quarter of an hour.
	auditEvery = time.Minute
	// The retentions are those of the stage dev.
	archiveHoldsAfterDays        = 30
	archiveReservationsAfterDays = 400
	// sweepPageItems is the page of the stage dev.
	sweepPageItems = 100
	// queueRetryAfter is short, so that nobody waits for the minutes that a failed message
	// stays hidden on AWS, and longer than most faults that somebody injects.
	queueRetryAfter = 2 * time.Second
	// queueHiddenFor is how long a message stays hidden while it is worked on. It is short
	// because the answer to a receive may be lost, and with it the messages until they are
	// seen again: on AWS that is minutes. A slow run may meet a second one of the same
	// message, as it may on AWS.
	queueHiddenFor = 10 * time.Second
	// processesMax bounds the processes of a function that reserves no concurrency. AWS
	// starts as many as there are calls at once, one machine cannot.
	processesMax = 8
)

// Options says how to start a System. The zero value is one for tests and stories: its data
// is scratch, and it listens on any free port.
type Options struct {
	// DataFolder keeps everything, and is made if it is missing. If it is empty, a folder
	// and a table of their own are made, and Close removes both.
	DataFolder string
	// Fresh removes the table first. The signing key stays, so tokens stay valid.
	Fresh bool
	// Port is the gateway's port on 127.0.0.1, and the payment provider's is the next one; 0
	// means any free ones.
	Port int
	// SweepEvery is what the schedules take for a minute: it is how often the sweep runs, and
	// what runs less often is faster or slower by the same factor. 0 means as deployed, but for
	// the audit, which is looked after every minute.
	SweepEvery time.Duration
	// AuditEvery is from the beginning of one audit to that of the next, and how long one may
	// take, in whole seconds; 0 means a minute. It must be longer than the looks of an audit at
	// a suspect, which take reconcile.IndexLagMax.
	AuditEvery time.Duration
	// QueueRetryAfter is how long a message stays hidden after a run that failed at it, in
	// whole seconds; 0 means two seconds.
	QueueRetryAfter time.Duration
	// OwnEngine starts an engine even if the environment names one, for a caller of
	// KillEngine.
	OwnEngine bool
	// Between may put an observer between a function and the AWS service at the endpoint,
	// and returns the endpoint that the function is told. Nil means nobody is between.
	Between func(function topology.FunctionName, endpoint string) string
	// PaymentKeys are the keys between us and the payment provider. The zero value means
	// fresh ones.
	PaymentKeys PaymentKeys
	// Measured is told each number that AWS would count by itself. Nil means nobody is.
	Measured func(Number)
	// Progress is told in short lines what happens. Nil means nobody is told.
	Progress io.Writer
}

// PaymentKeys are what we and the payment provider know each other by.
type PaymentKeys struct {
	// API is the key that our calls carry.
	API payment.Secret
	// Webhook has the secrets of which one must sign each webhook: two while it is being
	// changed. The provider signs with the first one.
	Webhook []payment.Secret
}

func (o Options) auditEvery() time.Duration {
	if o.AuditEvery == 0 {
		return auditEvery
	}
	return o.AuditEvery
}
