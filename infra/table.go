package main

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/jsii-runtime-go"

	"holdfast/shared/dynamo"
)

// newTable makes the one table from its schema, with on-demand capacity.
//
// It is encrypted with the key that AWS manages for DynamoDB in this account: each
// use of the key is in the audit trail, and no role needs a permission on it.
func newTable(stack awscdk.Stack, chosen stage) (awsdynamodb.TableV2, error) {
	schema := dynamo.TableSchema()
	if want := string(awsdynamodb.StreamViewType_NEW_IMAGE); schema.StreamView != want {
		return nil, fmt.Errorf("stream view %q of the schema: want %s", schema.StreamView, want)
	}
	partitionKey, err := attribute(schema.PartitionKey)
	if err != nil {
		return nil, err
	}
	sortKey, err := attribute(schema.SortKey)
	if err != nil {
		return nil, err
	}
	indexes, err := indexesOf(schema)
	if err != nil {
		return nil, err
	}
	return awsdynamodb.NewTableV2(stack, jsii.String("Table"), &awsdynamodb.TablePropsV2{
		PartitionKey:           partitionKey,
		SortKey:                sortKey,
		GlobalSecondaryIndexes: &indexes,
		Billing:                awsdynamodb.Billing_OnDemand(nil),
		Encryption:             awsdynamodb.TableEncryptionV2_AwsManagedKey(),
		DynamoStream:           awsdynamodb.StreamViewType_NEW_IMAGE,
		TimeToLiveAttribute:    jsii.String(schema.TimeToLiveAttribute),
		DeletionProtection:     jsii.Bool(chosen.DeletionProtection),
		RemovalPolicy:          chosen.RemovalPolicy,
		PointInTimeRecoverySpecification: &awsdynamodb.PointInTimeRecoverySpecification{
			PointInTimeRecoveryEnabled: jsii.Bool(chosen.PointInTimeRecovery),
		},
	}), nil
}

func indexesOf(schema dynamo.Schema) ([]*awsdynamodb.GlobalSecondaryIndexPropsV2, error) {
	var indexes []*awsdynamodb.GlobalSecondaryIndexPropsV2
	for _, index := range schema.Indexes {
		partitionKey, err := attribute(index.PartitionKey)
		if err != nil {
			return nil, fmt.Errorf("index %s: %w", index.Name, err)
		}
		sortKey, err := attribute(index.SortKey)
		if err != nil {
			return nil, fmt.Errorf("index %s: %w", index.Name, err)
		}
		indexes = append(indexes, &awsdynamodb.GlobalSecondaryIndexPropsV2{
			IndexName:      jsii.String(index.Name),
			PartitionKey:   partitionKey,
			SortKey:        sortKey,
			ProjectionType: awsdynamodb.ProjectionType_KEYS_ONLY,
		})
	}
	return indexes, nil
}

func attribute(key dynamo.Key) (*awsdynamodb.Attribute, error) {
	types := map[string]awsdynamodb.AttributeType{
		"S": awsdynamodb.AttributeType_STRING,
		"N": awsdynamodb.AttributeType_NUMBER,
	}
	kind, ok := types[key.Type]
	if !ok {
		return nil, fmt.Errorf("key attribute %s has the unknown type %q", key.Attribute, key.Type)
	}
	return &awsdynamodb.Attribute{Name: jsii.String(key.Attribute), Type: kind}, nil
}
