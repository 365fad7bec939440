package dynamotest

import (
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

const (
	// writeUnitBytes is how much of an item one write unit writes. Source:
	// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/read-write-operations.html
	writeUnitBytes = 1024
	// singleWrite and transactionalWrite are the write units of each started KB.
	singleWrite, transactionalWrite = 1.0, 2.0
	// indexEntryUnits is what an entry of an index costs, whose keys are far below a KB.
	indexEntryUnits = 1.0
)

// charge is what a write costs one partition.
type charge struct {
	partition string
	units     float64
}

// chargesOf is what one action of a transaction costs.
func (t *Throttled) chargesOf(action types.TransactWriteItem) []charge {
	switch {
	case action.Put != nil:
		return t.putCharges(action.Put.TableName, action.Put.Item, transactionalWrite)
	case action.Update != nil:
		return t.updateCharge(action.Update.TableName, action.Update.Key, transactionalWrite)
	case action.Delete != nil:
		return t.updateCharge(action.Delete.TableName, action.Delete.Key, transactionalWrite)
	case action.ConditionCheck != nil:
		return t.updateCharge(action.ConditionCheck.TableName, action.ConditionCheck.Key, transactionalWrite)
	}
	return nil
}

// putCharges is what writing a whole item costs, the entries of its indexes included.
func (t *Throttled) putCharges(table *string, item map[string]types.AttributeValue, perKB float64) []charge {
	units := max(1, (itemBytes(item)+writeUnitBytes-1)/writeUnitBytes)
	charges := []charge{{t.partitionOf(table, "", item[t.schema.PartitionKey.Attribute]), perKB * float64(units)}}
	for _, index := range t.schema.Indexes {
		key, inIndex := item[index.PartitionKey.Attribute]
		if _, sorted := item[index.SortKey.Attribute]; inIndex && sorted {
			charges = append(charges, charge{t.partitionOf(table, index.Name, key), indexEntryUnits})
		}
	}
	return charges
}

// updateCharge is what a write costs that names only the key of its item.
func (t *Throttled) updateCharge(table *string, key map[string]types.AttributeValue, perKB float64) []charge {
	return []charge{{t.partitionOf(table, "", key[t.schema.PartitionKey.Attribute]), perKB}}
}

// partitionOf names a partition of a table, or of one of its indexes.
func (t *Throttled) partitionOf(table *string, index string, key types.AttributeValue) string {
	return strings.Join([]string{aws.ToString(table), index, keyText(key)}, "\x00")
}

func keyText(key types.AttributeValue) string {
	switch k := key.(type) {
	case *types.AttributeValueMemberS:
		return k.Value
	case *types.AttributeValueMemberN:
		return k.Value
	case *types.AttributeValueMemberB:
		return strconv.Quote(string(k.Value))
	}
	return ""
}

// itemBytes is the size of an item as DynamoDB counts it, to within a byte or two of each
// number. Source:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
func itemBytes(item map[string]types.AttributeValue) int {
	bytes := 0
	for name, value := range item {
		bytes += len(name) + valueBytes(value)
	}
	return bytes
}

func valueBytes(value types.AttributeValue) int {
	// collectionBytes is what a list or a map costs, and elementBytes each of its elements.
	const collectionBytes, elementBytes = 3, 1
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		return len(v.Value)
	case *types.AttributeValueMemberB:
		return len(v.Value)
	case *types.AttributeValueMemberN:
		return numberBytes(v.Value)
	case *types.AttributeValueMemberM:
		return collectionBytes + itemBytes(v.Value) + elementBytes*len(v.Value)
	case *types.AttributeValueMemberL:
		bytes := collectionBytes
		for _, element := range v.Value {
			bytes += elementBytes + valueBytes(element)
		}
		return bytes
	case *types.AttributeValueMemberSS:
		return len(strings.Join(v.Value, ""))
	case *types.AttributeValueMemberNS:
		bytes := 0
		for _, number := range v.Value {
			bytes += numberBytes(number)
		}
		return bytes
	case *types.AttributeValueMemberBS:
		bytes := 0
		for _, binary := range v.Value {
			bytes += len(binary)
		}
		return bytes
	}
	return 1 // true, false or null
}

// numberBytes is one byte for each two digits, and one more.
func numberBytes(number string) int { return (len(number)+1)/2 + 1 }
