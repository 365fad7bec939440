package main

import (
	"testing"

	"holdfast/shared/dynamo"
)

func TestTheTableIsItsSchema(t *testing.T) {
	schema := dynamo.TableSchema()
	keys := func(partitionKey, sortKey dynamo.Key) any {
		return []any{
			map[string]any{"AttributeName": partitionKey.Attribute, "KeyType": "HASH"},
			map[string]any{"AttributeName": sortKey.Attribute, "KeyType": "RANGE"},
		}
	}
	eachStage(t, func(t *testing.T, s synthesis) {
		table := s.mustResource(t, "AWS::DynamoDB::GlobalTable", "Table")
		mustBe(t, "key", table.at("KeySchema"), keys(schema.PartitionKey, schema.SortKey))
		types := map[string]string{schema.PartitionKey.Attribute: schema.PartitionKey.Type, schema.SortKey.Attribute: schema.SortKey.Type}
		for i, index := range schema.Indexes {
			made := table.at("GlobalSecondaryIndexes", i)
			mustBe(t, "index name", at(made, "IndexName"), index.Name)
			mustBe(t, index.Name+" key", at(made, "KeySchema"), keys(index.PartitionKey, index.SortKey))
			mustBe(t, index.Name+" projection", at(made, "Projection"), map[string]any{"ProjectionType": "KEYS_ONLY"})
			types[index.PartitionKey.Attribute], types[index.SortKey.Attribute] = index.PartitionKey.Type, index.SortKey.Type
		}
		if table.at("GlobalSecondaryIndexes", len(schema.Indexes)) != nil {
			t.Errorf("the table has more than the %d indexes of the schema", len(schema.Indexes))
		}
		got := map[string]string{}
		for _, definition := range listed(table.at("AttributeDefinitions")) {
			name, _ := at(definition, "AttributeName").(string)
			got[name], _ = at(definition, "AttributeType").(string)
		}
		mustBe(t, "attribute types", got, types)
		mustBe(t, "stream", table.at("StreamSpecification", "StreamViewType"), schema.StreamView)
		mustBe(t, "time to live", table.at("TimeToLiveSpecification"), map[string]any{"AttributeName": schema.TimeToLiveAttribute, "Enabled": true})
	})
}

func TestTheTableIsGuardedByStage(t *testing.T) {
	protected := map[stageName]bool{stageProd: true}
	recoverable := map[stageName]bool{stageStaging: true, stageProd: true}
	eachStage(t, func(t *testing.T, s synthesis) {
		table := s.mustResource(t, "AWS::DynamoDB::GlobalTable", "Table")
		mustBe(t, "billing", table.at("BillingMode"), "PAY_PER_REQUEST")
		mustBe(t, "encryption", table.at("SSESpecification", "SSEEnabled"), true)
		mustBe(t, "deletion protection", table.at("Replicas", 0, "DeletionProtectionEnabled"), protected[s.stage.Name])
		mustBe(t, "point-in-time recovery",
			table.at("Replicas", 0, "PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled"), recoverable[s.stage.Name])
		if table.at("Replicas", 1) != nil {
			t.Error("the table has a replica in another Region, where a condition would not hold")
		}
	})
}

func TestAKeyOfAnUnknownTypeIsAnError(t *testing.T) {
	if _, err := attribute(dynamo.Key{Attribute: "pk", Type: "BOOL"}); err == nil {
		t.Error("a key of type BOOL is accepted")
	}
}
