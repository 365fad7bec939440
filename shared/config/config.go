package config

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	"holdfast/shared/ledger"
	"holdfast/shared/topology"
)

// The variables of a local run, which send a function to servers on the same machine.
// No deployed function has them.
const (
	VariableLocalDynamoDBEndpoint    topology.Variable = "HOLDFAST_LOCAL_DYNAMODB_ENDPOINT"
	VariableLocalEventBridgeEndpoint topology.Variable = "HOLDFAST_LOCAL_EVENTBRIDGE_ENDPOINT"
	VariableLocalSQSEndpoint         topology.Variable = "HOLDFAST_LOCAL_SQS_ENDPOINT"
	VariableLocalSecretsEndpoint     topology.Variable = "HOLDFAST_LOCAL_SECRETS_ENDPOINT" //nolint:gosec // the name of a variable
	VariableLocalStripeEndpoint      topology.Variable = "HOLDFAST_LOCAL_STRIPE_ENDPOINT"
	VariableLocalS3Endpoint          topology.Variable = "HOLDFAST_LOCAL_S3_ENDPOINT"
)

// Stage names one deployment.
type Stage string

// The stages. StageLocal is the one on a developer's machine.
const (
	StageDev     Stage = "dev"
	StageStaging Stage = "staging"
	StageProd    Stage = "prod"
	StageLocal   Stage = "local"
)

// Stages returns every stage, in a fixed order. The caller owns the result.
func Stages() []Stage { return []Stage{StageDev, StageStaging, StageProd, StageLocal} }

// Config is what a function reads from its environment. A field whose variable the
// function does not have is zero.
type Config struct {
	Stage Stage
	// TableName is the one table.
	TableName string
	// EventBusName is the bus of ledger events.
	EventBusName string
	// OperatorGroup is the group whose members are operators.
	OperatorGroup string
	// SweepPageItems is how many due holds the sweep reads in one page.
	SweepPageItems int
	// SagaQueueURL is the address of the queue whose messages make the saga look at a
	// reservation.
	SagaQueueURL string
	// PaymentSecretID is the name or ARN of the secret with the payment provider's keys.
	// It is no secret itself.
	PaymentSecretID string
	// DueQueueURL is the address of the queue whose messages end holds at their due time.
	DueQueueURL string
	// ExpiryFailedQueueURL is the address of the queue that is told of parked holds.
	ExpiryFailedQueueURL string
	// ArchiveBucketName is the bucket of the archive.
	ArchiveBucketName string
	// ArchiveHoldsAfter is how long an ended hold stays in the table, and
	// ArchiveReservationsAfter a reservation at rest.
	ArchiveHoldsAfter, ArchiveReservationsAfter time.Duration
	// AuditQueueURL is the address of the queue of the parts of an audit, and AuditBucketName
	// the bucket of what they saw.
	AuditQueueURL, AuditBucketName string
	// AuditEvery is from the beginning of one audit to that of the next.
	AuditEvery time.Duration
	// AuditRepair is what an audit writes by itself.
	AuditRepair topology.AuditRepair
	// The endpoints are set in local runs only.
	LocalDynamoDBEndpoint    string
	LocalEventBridgeEndpoint string
	LocalSQSEndpoint         string
	LocalSecretsEndpoint     string
	LocalStripeEndpoint      string
	LocalS3Endpoint          string
}

// archiveAfterDaysMax is ten years: longer than any law we know keeps books.
const archiveAfterDaysMax = 3660

// An audit begins at most every minute, which is what the Scheduler can do, and at least
// every day. A day is whole times each of these, so that audits begin at the same times on
// every day. A local run has a schedule of its own, which may be faster.
const (
	auditEverySecondsMin      = 60
	auditEverySecondsMinLocal = 1
	auditEverySecondsMax      = 24 * 60 * 60
)

// Lookup reads one environment variable, like os.LookupEnv.
type Lookup func(name string) (value string, present bool)

var (
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
	tableNamePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,255}$`)
	// https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_CreateEventBus.html
	eventBusNamePattern = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,256}$`)
	// A group's name has no space, because API Gateway renders a list of groups with
	// spaces between them, and no bracket, because it puts brackets around.
	groupPattern = regexp.MustCompile(`^[^\s\[\],"]{1,128}$`)
	// https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
	bucketNamePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	// A name has at most 512 of these characters, and an ARN some more, with colons:
	// https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_CreateSecret.html
	secretIDPattern = regexp.MustCompile(`^[A-Za-z0-9/_+=.@:-]{1,1000}$`)
)

// Load reads the variables that the function has in the topology. The error names every
// variable that is missing or wrong, not only the first; it never repeats a value.
func Load(function topology.FunctionName, lookup Lookup) (Config, error) {
	f, known := topology.FunctionNamed(function)
	if !known {
		return Config{}, fmt.Errorf("there is no function %q", function)
	}
	var c Config
	var failures []error
	for _, v := range f.Variables {
		value, present := lookup(string(v))
		if !present || value == "" {
			failures = append(failures, fmt.Errorf("%s is not set", v))
			continue
		}
		if err := c.set(v, value); err != nil {
			failures = append(failures, fmt.Errorf("%s %w", v, err))
		}
	}
	for _, local := range []struct {
		variable topology.Variable
		endpoint *string
	}{
		{VariableLocalDynamoDBEndpoint, &c.LocalDynamoDBEndpoint},
		{VariableLocalEventBridgeEndpoint, &c.LocalEventBridgeEndpoint},
		{VariableLocalSQSEndpoint, &c.LocalSQSEndpoint},
		{VariableLocalSecretsEndpoint, &c.LocalSecretsEndpoint},
		{VariableLocalStripeEndpoint, &c.LocalStripeEndpoint},
		{VariableLocalS3Endpoint, &c.LocalS3Endpoint},
	} {
		value, present := lookup(string(local.variable))
		if !present || value == "" {
			continue
		}
		if err := c.checkEndpoint(value); err != nil {
			failures = append(failures, fmt.Errorf("%s %w", local.variable, err))
		}
		*local.endpoint = value
	}
	if err := errors.Join(failures...); err != nil {
		return Config{}, fmt.Errorf("environment of %s:\n%w", function, err)
	}
	return c, nil
}

func (c *Config) set(v topology.Variable, value string) error {
	switch v {
	case topology.VariableStage:
		c.Stage = Stage(value)
		if !slices.Contains(Stages(), c.Stage) {
			return fmt.Errorf("must be one of %v", Stages())
		}
	case topology.VariableTableName:
		c.TableName = value
		return check(tableNamePattern, value, "must be the name of a table")
	case topology.VariableEventBusName:
		c.EventBusName = value
		return check(eventBusNamePattern, value, "must be the name of an event bus")
	case topology.VariableOperatorGroup:
		c.OperatorGroup = value
		return check(groupPattern, value, "must be a group's name without spaces and brackets")
	case topology.VariableSweepPage:
		items, err := strconv.Atoi(value)
		if err != nil || items < 1 || items > ledger.PageItemsMax {
			return fmt.Errorf("must be a number from 1 to %d", ledger.PageItemsMax)
		}
		c.SweepPageItems = items
	case topology.VariableSagaQueueURL:
		c.SagaQueueURL = value
		return c.checkQueueURL(value)
	case topology.VariableDueQueueURL:
		c.DueQueueURL = value
		return c.checkQueueURL(value)
	case topology.VariableExpiryFailedQueueURL:
		c.ExpiryFailedQueueURL = value
		return c.checkQueueURL(value)
	case topology.VariableArchiveBucketName:
		c.ArchiveBucketName = value
		return check(bucketNamePattern, value, "must be the name of a bucket")
	case topology.VariableArchiveHoldsAfterDays:
		return setDays(&c.ArchiveHoldsAfter, value)
	case topology.VariableArchiveReservationsAfterDays:
		return setDays(&c.ArchiveReservationsAfter, value)
	case topology.VariableAuditQueueURL, topology.VariableAuditBucketName, topology.VariableAuditEverySeconds, topology.VariableAuditRepair:
		return c.setAudit(v, value)
	case topology.VariablePaymentSecretID:
		c.PaymentSecretID = value
		return check(secretIDPattern, value, "must be the name or the ARN of a secret")
	default:
		return errors.New("is a variable that this package does not know")
	}
	return nil
}

// setAudit reads what the audit alone is told.
func (c *Config) setAudit(v topology.Variable, value string) error {
	switch v {
	case topology.VariableAuditQueueURL:
		c.AuditQueueURL = value
		return c.checkQueueURL(value)
	case topology.VariableAuditBucketName:
		c.AuditBucketName = value
		return check(bucketNamePattern, value, "must be the name of a bucket")
	case topology.VariableAuditEverySeconds:
		least := auditEverySecondsMin
		if c.Stage == StageLocal {
			least = auditEverySecondsMinLocal
		}
		seconds, err := strconv.Atoi(value)
		if err != nil || seconds < least || seconds > auditEverySecondsMax || auditEverySecondsMax%seconds != 0 {
			return fmt.Errorf("must be a number of seconds from %d to %d of which a day is a whole number of times", least, auditEverySecondsMax)
		}
		c.AuditEvery = time.Duration(seconds) * time.Second
	default: // topology.VariableAuditRepair
		c.AuditRepair = topology.AuditRepair(value)
		if !slices.Contains(topology.AuditRepairs(), c.AuditRepair) {
			return fmt.Errorf("must be one of %v", topology.AuditRepairs())
		}
	}
	return nil
}

// setDays reads a number of days. Zero would archive what has just ended.
func setDays(to *time.Duration, value string) error {
	days, err := strconv.Atoi(value)
	if err != nil || days < 1 || days > archiveAfterDaysMax {
		return fmt.Errorf("must be a number of days from 1 to %d", archiveAfterDaysMax)
	}
	*to = time.Duration(days) * 24 * time.Hour
	return nil
}

// checkQueueURL accepts plain HTTP on a developer's machine only.
func (c *Config) checkQueueURL(value string) error {
	if u, err := url.Parse(value); err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || c.Stage != StageLocal) {
		return errors.New("must be the https URL of a queue")
	}
	return nil
}

func check(pattern *regexp.Regexp, value, message string) error {
	if !pattern.MatchString(value) {
		return errors.New(message)
	}
	return nil
}

// checkEndpoint keeps a variable of a local run out of every deployed stage: there it
// would send the ledger to somebody else's server.
func (c *Config) checkEndpoint(value string) error {
	if c.Stage != StageLocal {
		return fmt.Errorf("may be set in the stage %s only", StageLocal)
	}
	if u, err := url.Parse(value); err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return errors.New("must be an http URL with a host")
	}
	return nil
}
