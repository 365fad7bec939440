package main

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
)

// meter asks each call for the capacity that it consumed, and adds it up. It is for one
// caller at a time.
type meter struct {
	*dynamodb.Client
	units map[string]float64 // written, by table and index
	reads float64
}

// TransactWriteItems counts a transaction.
func (m *meter) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, options ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityIndexes
	out, err := m.Client.TransactWriteItems(ctx, in, options...)
	if err == nil {
		for _, consumed := range out.ConsumedCapacity {
			m.count(&consumed)
		}
	}
	return out, err
}

// UpdateItem counts a single write.
func (m *meter) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, options ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityIndexes
	out, err := m.Client.UpdateItem(ctx, in, options...)
	if err == nil {
		m.count(out.ConsumedCapacity)
	}
	return out, err
}

func (m *meter) count(consumed *types.ConsumedCapacity) {
	if m.units == nil {
		m.units = make(map[string]float64)
	}
	m.units["table"] += aws.ToFloat64(consumed.Table.CapacityUnits)
	for index, units := range consumed.GlobalSecondaryIndexes {
		m.units[index] += aws.ToFloat64(units.CapacityUnits)
	}
}

// take returns what was counted since the last take, as rows in a fixed order.
func (m *meter) take(step string) []bought {
	var rows []bought
	for _, where := range []string{"table", dynamo.IndexDue, dynamo.IndexOwner, dynamo.IndexUnpublished, dynamo.IndexResource} {
		if units := m.units[where]; units > 0 {
			rows = append(rows, bought{step, where, purposes[step+"/"+where], units})
		}
	}
	m.units = nil
	return rows
}

// total returns the write and read units that were counted since the last take or total.
func (m *meter) total() (writes, reads float64) {
	for _, units := range m.units {
		writes += units
	}
	reads = m.reads
	m.units, m.reads = nil, 0
	return writes, reads
}

// GetItem counts a read.
func (m *meter) GetItem(ctx context.Context, in *dynamodb.GetItemInput, options ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	out, err := m.Client.GetItem(ctx, in, options...)
	if err == nil {
		m.countRead(out.ConsumedCapacity)
	}
	return out, err
}

// BatchGetItem counts a read.
func (m *meter) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, options ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	out, err := m.Client.BatchGetItem(ctx, in, options...)
	if err == nil {
		for _, consumed := range out.ConsumedCapacity {
			m.countRead(&consumed)
		}
	}
	return out, err
}

// TransactGetItems counts a read.
func (m *meter) TransactGetItems(ctx context.Context, in *dynamodb.TransactGetItemsInput, options ...func(*dynamodb.Options)) (*dynamodb.TransactGetItemsOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	out, err := m.Client.TransactGetItems(ctx, in, options...)
	if err == nil {
		for _, consumed := range out.ConsumedCapacity {
			m.countRead(&consumed)
		}
	}
	return out, err
}

// Query counts a read.
func (m *meter) Query(ctx context.Context, in *dynamodb.QueryInput, options ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	out, err := m.Client.Query(ctx, in, options...)
	if err == nil {
		m.countRead(out.ConsumedCapacity)
	}
	return out, err
}

func (m *meter) countRead(consumed *types.ConsumedCapacity) {
	m.reads += aws.ToFloat64(consumed.CapacityUnits)
}
