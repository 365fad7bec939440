package main

import (
	"encoding/json"
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"

	"holdfast/shared/dynamo"
)

// addStreamTrigger maps the table's stream to the function.
//
// The mapping is written at the level of CloudFormation, because the construct for
// it grants more than the topology allows: listing the streams of every table, and
// reading the attributes of the failure queue.
func addStreamTrigger(stack awscdk.Stack, f deployedFunction, found resources) error {
	trigger := f.Stream
	failures, err := found.queues.named(trigger.FailureDestination)
	if err != nil {
		return err
	}
	var filters []any
	for _, prefix := range trigger.SortKeyPrefixFilters {
		pattern, err := sortKeyPattern(prefix)
		if err != nil {
			return err
		}
		filters = append(filters, &awslambda.CfnEventSourceMapping_FilterProperty{Pattern: jsii.String(pattern)})
	}
	mapping := awslambda.NewCfnEventSourceMapping(stack, jsii.String(constructID(string(f.Name))+"Stream"),
		&awslambda.CfnEventSourceMappingProps{
			FunctionName:   f.lambda.FunctionName(),
			EventSourceArn: found.table.TableStreamArn(),
			// The oldest record first: LATEST would lose what is written while the mapping is made.
			StartingPosition:               jsii.String("TRIM_HORIZON"),
			BatchSize:                      jsii.Number(trigger.BatchRecordsMax),
			MaximumBatchingWindowInSeconds: jsii.Number(trigger.BatchWindow.Seconds()),
			ParallelizationFactor:          jsii.Number(trigger.ParallelBatches),
			// One bad record costs its own delivery and not that of its batch.
			BisectBatchOnFunctionError: jsii.Bool(true),
			FunctionResponseTypes:      jsii.Strings("ReportBatchItemFailures"),
			MaximumRetryAttempts:       jsii.Number(trigger.Retries),
			MaximumRecordAgeInSeconds:  jsii.Number(trigger.RecordAgeMax.Seconds()),
			DestinationConfig: &awslambda.CfnEventSourceMapping_DestinationConfigProperty{
				OnFailure: &awslambda.CfnEventSourceMapping_OnFailureProperty{Destination: failures.QueueArn()},
			},
			FilterCriteria: &awslambda.CfnEventSourceMapping_FilterCriteriaProperty{Filters: &filters},
		})
	// Lambda tries the role's permissions when the mapping is made.
	mapping.Node().AddDependency(f.role)
	return nil
}

// sortKeyPattern is the filter for items whose sort key starts with prefix. It looks
// at the item only: a filter on the name of the event is not documented for DynamoDB
// streams. Source: https://docs.aws.amazon.com/lambda/latest/dg/with-ddb-filtering.html
func sortKeyPattern(prefix string) (string, error) {
	schema := dynamo.TableSchema()
	pattern, err := json.Marshal(map[string]any{
		"dynamodb": map[string]any{
			"Keys": map[string]any{
				schema.SortKey.Attribute: map[string]any{
					schema.SortKey.Type: []any{map[string]string{"prefix": prefix}},
				},
			},
		},
	})
	if err != nil {
		return "", fmt.Errorf("filter for sort keys with prefix %q: %w", prefix, err)
	}
	return string(pattern), nil
}
