package config_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"holdfast/shared/config"
	"holdfast/shared/skew"
	"holdfast/shared/system"
	"holdfast/shared/topology"
)

const (
	queueURL  = "https://sqs.eu-central-1.amazonaws.com/123456789012/saga"
	dueURL    = "https://sqs.eu-central-1.amazonaws.com/123456789012/due"
	failedURL = "https://sqs.eu-central-1.amazonaws.com/123456789012/expiry-failed"
	auditURL  = "https://sqs.eu-central-1.amazonaws.com/123456789012/audit"
	secretARN = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:PaymentSecret-a1B2c3"
)

// whole is an environment that has everything.
func whole() map[string]string {
	return map[string]string{
		"HOLDFAST_STAGE": "prod", "HOLDFAST_TABLE_NAME": "holdfast-prod", "HOLDFAST_EVENT_BUS_NAME": "holdfast",
		"HOLDFAST_OPERATOR_GROUP": "ops", "HOLDFAST_SWEEP_PAGE_ITEMS": "250",
		"HOLDFAST_SAGA_QUEUE_URL": queueURL, "HOLDFAST_PAYMENT_SECRET_ID": secretARN,
		"HOLDFAST_DUE_QUEUE_URL": dueURL, "HOLDFAST_EXPIRY_FAILED_QUEUE_URL": failedURL,
		"HOLDFAST_ARCHIVE_BUCKET_NAME": "holdfast-archive", "HOLDFAST_ARCHIVE_HOLDS_AFTER_DAYS": "90",
		"HOLDFAST_ARCHIVE_RESERVATIONS_AFTER_DAYS": "550",
		"HOLDFAST_AUDIT_QUEUE_URL":                 auditURL, "HOLDFAST_AUDIT_BUCKET_NAME": "holdfast-audit",
		"HOLDFAST_AUDIT_EVERY_SECONDS": "3600", "HOLDFAST_AUDIT_REPAIR": "certain",
	}
}

func lookup(environment map[string]string) config.Lookup {
	return func(name string) (string, bool) {
		value, present := environment[name]
		return value, present
	}
}

func TestEachFunctionLoadsWhatItHas(t *testing.T) {
	const day = 24 * time.Hour
	all := map[topology.FunctionName]config.Config{
		topology.FunctionAPI:     {Stage: config.StageProd, TableName: "holdfast-prod", OperatorGroup: "ops", PaymentSecretID: secretARN},
		topology.FunctionWebhook: {Stage: config.StageProd, TableName: "holdfast-prod", SagaQueueURL: queueURL, PaymentSecretID: secretARN},
		topology.FunctionExpiry: {
			Stage: config.StageProd, TableName: "holdfast-prod", SweepPageItems: 250, DueQueueURL: dueURL, ExpiryFailedQueueURL: failedURL,
		},
		topology.FunctionOutbox: {
			Stage: config.StageProd, TableName: "holdfast-prod", EventBusName: "holdfast", SagaQueueURL: queueURL, DueQueueURL: dueURL,
		},
		topology.FunctionSaga: {Stage: config.StageProd, TableName: "holdfast-prod", PaymentSecretID: secretARN},
		topology.FunctionReconcile: {
			Stage: config.StageProd, TableName: "holdfast-prod", EventBusName: "holdfast", SagaQueueURL: queueURL, DueQueueURL: dueURL,
		},
		topology.FunctionAudit: {
			Stage: config.StageProd, TableName: "holdfast-prod", PaymentSecretID: secretARN, AuditQueueURL: auditURL,
			AuditBucketName: "holdfast-audit", AuditEvery: time.Hour, AuditRepair: topology.AuditRepairCertain,
		},
		topology.FunctionArchive: {
			Stage: config.StageProd, TableName: "holdfast-prod", ArchiveBucketName: "holdfast-archive",
			ArchiveHoldsAfter: 90 * day, ArchiveReservationsAfter: 550 * day,
		},
	}
	for _, f := range topology.Functions() {
		want, known := all[f.Name]
		got, err := config.Load(f.Name, lookup(whole()))
		if err != nil || !known || got != want {
			t.Errorf("%s: %+v, %v; want %+v", f.Name, got, err, want)
		}
	}
}

// A variable that topology gives a function must be one that Load understands.
func TestEveryVariableOfTheTopologyIsUnderstood(t *testing.T) {
	for _, f := range topology.Functions() {
		if _, err := config.Load(f.Name, lookup(whole())); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
	if _, err := config.Load("no-such-function", lookup(whole())); err == nil {
		t.Error("a function that does not exist has a configuration")
	}
}

func TestEverythingWrongIsToldAtOnce(t *testing.T) {
	_, err := config.Load(topology.FunctionAPI, lookup(map[string]string{"HOLDFAST_STAGE": "marker", "HOLDFAST_OPERATOR_GROUP": ""}))
	if err == nil {
		t.Fatal("an empty environment is accepted")
	}
	for _, name := range []string{"HOLDFAST_STAGE must", "HOLDFAST_TABLE_NAME is not set", "HOLDFAST_OPERATOR_GROUP is not set"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%q does not tell %q", err, name)
		}
	}
	if strings.Contains(err.Error(), "marker") {
		t.Errorf("%q repeats a value", err)
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	for name, values := range map[string][]string{
		"HOLDFAST_STAGE":                      {"Prod", "production", " dev"},
		"HOLDFAST_TABLE_NAME":                 {"ab", "a table", "arn:aws:dynamodb", strings.Repeat("t", 256)},
		"HOLDFAST_EVENT_BUS_NAME":             {"a bus", strings.Repeat("b", 257)},
		"HOLDFAST_OPERATOR_GROUP":             {"two words", "ops]", "[ops", "a,b"},
		"HOLDFAST_SWEEP_PAGE_ITEMS":           {"0", "501", "-1", "many", "1.5"},
		"HOLDFAST_SAGA_QUEUE_URL":             {"saga", "sqs.eu-central-1.amazonaws.com/1/saga", "https:///saga", "ftp://host/saga"},
		"HOLDFAST_DUE_QUEUE_URL":              {"due", "https:///due"},
		"HOLDFAST_EXPIRY_FAILED_QUEUE_URL":    {"expiry-failed", "ftp://host/expiry-failed"},
		"HOLDFAST_PAYMENT_SECRET_ID":          {"a secret", "{\"api_key\":1}", strings.Repeat("s", 1001)},
		"HOLDFAST_LOCAL_S3_ENDPOINT":          {"localhost"},
		"HOLDFAST_LOCAL_SQS_ENDPOINT":         {"localhost"},
		"HOLDFAST_LOCAL_SECRETS_ENDPOINT":     {"localhost"},
		"HOLDFAST_LOCAL_STRIPE_ENDPOINT":      {"localhost"},
		"HOLDFAST_LOCAL_DYNAMODB_ENDPOINT":    {"127.0.0.1:8000", "ftp://127.0.0.1", "http://"},
		"HOLDFAST_LOCAL_EVENTBRIDGE_ENDPOINT": {"localhost"},

		"HOLDFAST_ARCHIVE_BUCKET_NAME":             {"ab", "A-Bucket", "a bucket", "-bucket", "arn:aws:s3:::bucket", strings.Repeat("b", 64)},
		"HOLDFAST_ARCHIVE_HOLDS_AFTER_DAYS":        {"0", "-1", "3661", "many", "1.5"},
		"HOLDFAST_ARCHIVE_RESERVATIONS_AFTER_DAYS": {"0", "-1", "3661", "many", "1.5"},

		"HOLDFAST_AUDIT_QUEUE_URL":     {"audit", "ftp://host/audit"},
		"HOLDFAST_AUDIT_BUCKET_NAME":   {"ab", "a bucket"},
		"HOLDFAST_AUDIT_EVERY_SECONDS": {"0", "7", "61", "-60", "86401", "172800", "1h", "3600.0"},
		"HOLDFAST_AUDIT_REPAIR":        {"on", "Certain", "all"},
	} {
		for _, value := range values {
			environment := whole()
			environment["HOLDFAST_STAGE"] = "local"
			environment[name] = value
			refused := 0
			for _, f := range topology.Functions() {
				if _, err := config.Load(f.Name, lookup(environment)); err != nil && strings.Contains(err.Error(), name) {
					refused++
				}
			}
			if refused == 0 {
				t.Errorf("%s = %q is accepted by every function", name, value)
			}
		}
	}
}

func TestLocalEndpointsAreLocal(t *testing.T) {
	for _, name := range []topology.Variable{
		config.VariableLocalDynamoDBEndpoint, config.VariableLocalEventBridgeEndpoint,
		config.VariableLocalSQSEndpoint, config.VariableLocalSecretsEndpoint, config.VariableLocalStripeEndpoint, config.VariableLocalS3Endpoint,
	} {
		environment := whole()
		environment[string(name)] = "http://127.0.0.1:8000"
		for _, stage := range config.Stages() {
			environment["HOLDFAST_STAGE"] = string(stage)
			c, err := config.Load(topology.FunctionOutbox, lookup(environment))
			if local := stage == config.StageLocal; (err == nil) != local || c.Local() != local {
				t.Errorf("%s in %s: %+v, %v", name, stage, c, err)
			}
		}
	}
}

// A message over plain HTTP could be read on its way; a queue of the same machine has
// nothing else.
func TestOnlyALocalQueueIsPlain(t *testing.T) {
	for name, function := range map[string]topology.FunctionName{
		"HOLDFAST_SAGA_QUEUE_URL":          topology.FunctionWebhook,
		"HOLDFAST_DUE_QUEUE_URL":           topology.FunctionOutbox,
		"HOLDFAST_EXPIRY_FAILED_QUEUE_URL": topology.FunctionExpiry,
		"HOLDFAST_AUDIT_QUEUE_URL":         topology.FunctionAudit,
	} {
		environment := whole()
		environment[name] = "http://127.0.0.1:4566/000000000000/queue"
		for _, stage := range config.Stages() {
			environment["HOLDFAST_STAGE"] = string(stage)
			_, err := config.Load(function, lookup(environment))
			if (err == nil) != (stage == config.StageLocal) {
				t.Errorf("a plain %s in %s: %v", name, stage, err)
			}
		}
	}
}

// The Scheduler can begin nothing more often than each minute; the schedule of a local run can.
func TestOnlyALocalAuditIsFast(t *testing.T) {
	for _, seconds := range []string{"1", "20", "30"} {
		environment := whole()
		environment["HOLDFAST_AUDIT_EVERY_SECONDS"] = seconds
		for _, stage := range config.Stages() {
			environment["HOLDFAST_STAGE"] = string(stage)
			_, err := config.Load(topology.FunctionAudit, lookup(environment))
			if (err == nil) != (stage == config.StageLocal) {
				t.Errorf("an audit every %s seconds in %s: %v", seconds, stage, err)
			}
		}
	}
}

// Case H8: what one AWS call may take fits into the database budget with room to spare.
func TestCaseH8_OneCallFitsIntoTheBudget(t *testing.T) {
	const longest = config.TriesMax*config.TryTimeout + (config.TriesMax-1)*config.BackoffMax
	if longest >= topology.DatabaseBudget {
		t.Errorf("one call may take %s, the budget is %s", longest, topology.DatabaseBudget)
	}
}

// The clients that the functions build really have the bounds: a server that is broken
// is asked TriesMax times.
func TestRetriesAreBounded(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer server.Close()
	local := whole()
	maps.Copy(local, map[string]string{"HOLDFAST_STAGE": "local", "HOLDFAST_LOCAL_DYNAMODB_ENDPOINT": server.URL})
	c, err := config.Load(topology.FunctionAPI, lookup(local))
	if err != nil {
		t.Fatal(err)
	}
	shared, err := c.AWS(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	client := dynamodb.NewFromConfig(shared, func(o *dynamodb.Options) { o.BaseEndpoint = config.Endpoint(c.LocalDynamoDBEndpoint) })
	if _, err := client.ListTables(t.Context(), &dynamodb.ListTablesInput{}); err == nil {
		t.Error("a broken server gives no error")
	}
	if asked.Load() != config.TriesMax {
		t.Errorf("asked %d times, want %d", asked.Load(), config.TriesMax)
	}
}

// Against AWS the same bounds hold, and the region and credentials come from where the
// platform puts them.
func TestDeployedConfigurationIsBounded(t *testing.T) {
	t.Setenv("AWS_REGION", "eu-central-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_CONFIG_FILE", t.TempDir()+"/none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", t.TempDir()+"/none")
	shared, err := config.Config{Stage: config.StageProd}.AWS(t.Context(), skew.NewGauge(system.RealClock{}))
	if err != nil {
		t.Fatal(err)
	}
	if len(shared.APIOptions) != 1 {
		t.Errorf("%d API options: the answers are not observed", len(shared.APIOptions))
	}
	if shared.Region != "eu-central-1" || shared.Retryer().MaxAttempts() != config.TriesMax {
		t.Errorf("region %s, %d attempts", shared.Region, shared.Retryer().MaxAttempts())
	}
	if config.Endpoint("") != nil {
		t.Error("a deployed client has an endpoint of ours")
	}
}
