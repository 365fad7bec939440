package table

import (
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/dynamo"
)

// The limits of a key.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
const (
	partitionKeyBytesMax = 2048
	sortKeyBytesMax      = 1024
)

// keyTypeNumber is the type of a key that is a number; the other type here is text.
const keyTypeNumber = "N"

// Key names one item. A part that is a number is in its one form, so equal keys are equal
// values of this type.
type Key struct {
	Partition, Sort string
}

// keyPart reads the value of a key attribute; present is false when it is not there.
func keyPart(item Item, key dynamo.Key, bytesMax int) (part string, present bool, f *fault) {
	value, present := item[key.Attribute]
	if !present {
		return "", false, nil
	}
	switch v := value.(type) {
	case *types.AttributeValueMemberS:
		if key.Type == keyTypeNumber {
			break
		}
		if v.Value == "" {
			return "", true, requestFaultf("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: %s", key.Attribute)
		}
		if len(v.Value) > bytesMax {
			return "", true, faultf("One or more parameter values were invalid: Size of key %s has exceeded the maximum size limit of %d bytes", key.Attribute, bytesMax)
		}
		return v.Value, true, nil
	case *types.AttributeValueMemberN:
		if key.Type != keyTypeNumber {
			break
		}
		canonical, f := canonicalNumber(v.Value)
		return canonical, true, f
	}
	return "", true, faultf("One or more parameter values were invalid: Type mismatch for key %s expected: %s actual: %s", key.Attribute, key.Type, typeName(value))
}

// sortOrder is a sort key in the form whose text order is the order of the keys.
func sortOrder(part string, key dynamo.Key) string {
	if key.Type == keyTypeNumber {
		return numberOrder(part)
	}
	return part
}

// keyOf reads the table's key out of an item.
func (t *Table) keyOf(item Item) (Key, *fault) {
	partition, hasPartition, f := keyPart(item, t.schema.PartitionKey, partitionKeyBytesMax)
	if f != nil {
		return Key{}, f
	}
	sort, hasSort, f := keyPart(item, t.schema.SortKey, sortKeyBytesMax)
	if f != nil {
		return Key{}, f
	}
	if !hasPartition || !hasSort {
		return Key{}, faultf("One or more parameter values were invalid: Missing the key %s or %s in the item", t.schema.PartitionKey.Attribute, t.schema.SortKey.Attribute)
	}
	return Key{partition, sort}, nil
}

// exactKey reads a key that must be a key and nothing else.
func (t *Table) exactKey(attributes Item) (Key, *fault) {
	const keyAttributes = 2
	if len(attributes) != keyAttributes {
		return Key{}, faultf("The provided key element does not match the schema")
	}
	return t.keyOf(attributes)
}

// checkIndexKeys refuses an item that has an index key which could not be in the index.
// An absent one is fine: the item is then not in the index.
func (t *Table) checkIndexKeys(item Item) *fault {
	for _, index := range t.schema.Indexes {
		if _, _, f := keyPart(item, index.PartitionKey, partitionKeyBytesMax); f != nil {
			return f
		}
		if _, _, f := keyPart(item, index.SortKey, sortKeyBytesMax); f != nil {
			return f
		}
	}
	return nil
}

// place is where an item with this key is in the table.
func (t *Table) place(key Key) entry {
	return entry{order: sortOrder(key.Sort, t.schema.SortKey), key: key}
}
