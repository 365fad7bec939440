package localrun

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"time"

	"holdfast/scripts/internal/cloud"
	"holdfast/scripts/internal/lambdahost"
	"holdfast/shared/config"
	"holdfast/shared/topology"
)

func (s *System) startFunctions(context.Context) error {
	for _, function := range topology.Functions() {
		variables, err := s.variables(function)
		if err != nil {
			return err
		}
		maps.Copy(s.environment, variables)
		log, err := s.openLog(string(function.Name))
		if err != nil {
			return err
		}
		processes := function.ReservedConcurrency
		if processes == 0 {
			processes = processesMax
		}
		host, err := lambdahost.Start(lambdahost.Config{
			Name: string(function.Name), Binary: s.programs[function.Name], MemoryMiB: function.MemoryMiB,
			Timeout: function.Timeout, ProcessesMax: processes, Region: cloud.Region,
			Variables: variables, Log: log, Measured: s.ofFunction(function.Name),
		})
		if err != nil {
			return fmt.Errorf("%w; see the logs in %s", err, s.folder.file(logFolderName))
		}
		s.onClose(func() error { host.Close(); return nil })
		s.functions[function.Name] = host
		s.tell("the function %s is running: %s", function.Name, function.Description)
	}
	return nil
}

// variables is the environment of a function: what it has when it is deployed, and where
// the services are that it talks to.
func (s *System) variables(function topology.Function) (map[string]string, error) {
	values := map[topology.Variable]string{
		topology.VariableStage:           string(config.StageLocal),
		topology.VariableTableName:       s.Table,
		topology.VariableEventBusName:    eventBusName,
		topology.VariableOperatorGroup:   OperatorGroup,
		topology.VariableSweepPage:       strconv.Itoa(sweepPageItems),
		topology.VariableSagaQueueURL:    s.queues[topology.ResourceSagaQueue].URL,
		topology.VariablePaymentSecretID: string(topology.ResourcePaymentSecret),

		topology.VariableDueQueueURL:                  s.queues[topology.ResourceDueQueue].URL,
		topology.VariableExpiryFailedQueueURL:         s.queues[topology.ResourceExpiryFailed].URL,
		topology.VariableArchiveBucketName:            archiveBucketName,
		topology.VariableArchiveHoldsAfterDays:        strconv.Itoa(archiveHoldsAfterDays),
		topology.VariableArchiveReservationsAfterDays: strconv.Itoa(archiveReservationsAfterDays),

		topology.VariableAuditQueueURL:     s.queues[topology.ResourceAuditQueue].URL,
		topology.VariableAuditBucketName:   auditBucketName,
		topology.VariableAuditEverySeconds: strconv.Itoa(int(s.options.auditEvery() / time.Second)),
		topology.VariableAuditRepair:       string(topology.AuditRepairCertain),
	}
	between := s.options.Between
	if between == nil {
		between = func(_ topology.FunctionName, endpoint string) string { return endpoint }
	}
	cloudEndpoint := between(function.Name, s.cloud.Endpoint)
	variables := map[string]string{
		string(config.VariableLocalDynamoDBEndpoint):    between(function.Name, s.engineEndpoint),
		string(config.VariableLocalEventBridgeEndpoint): cloudEndpoint,
		string(config.VariableLocalSQSEndpoint):         cloudEndpoint,
		string(config.VariableLocalSecretsEndpoint):     cloudEndpoint,
		string(config.VariableLocalS3Endpoint):          cloudEndpoint,
		string(config.VariableLocalStripeEndpoint):      s.Payments.URL(),
	}
	for _, variable := range function.Variables {
		value, isKnown := values[variable]
		if !isKnown {
			return nil, fmt.Errorf("the function %s needs %s, which a local run does not know", function.Name, variable)
		}
		variables[string(variable)] = value
	}
	return variables, nil
}

// Invoke gives an event to a function, as its trigger would, and returns its answer.
func (s *System) Invoke(ctx context.Context, function topology.FunctionName, payload []byte) ([]byte, error) {
	return s.functions[function].Invoke(ctx, payload)
}

// KillFunction kills the function's processes in the middle of whatever they do. The calls
// that they were working on fail; the next one starts a new process.
func (s *System) KillFunction(function topology.FunctionName) { s.functions[function].Kill() }
