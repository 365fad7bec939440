package dynamo

// Schema describes the one table, as data. The local runner and the tests create
// the table from it, and the CDK stack synthesises the same one.
type Schema struct {
	PartitionKey Key
	SortKey      Key
	Indexes      []Index
	// StreamView is what a stream record carries of an item.
	StreamView string
	// TimeToLiveAttribute holds whole epoch seconds. It is set only on idempotency
	// records, counters of signals and archived items; it never ends a hold.
	TimeToLiveAttribute string
}

// Key is one key attribute with its DynamoDB type, "S" or "N".
type Key struct {
	Attribute string
	Type      string
}

// Index is a sparse secondary index: an item is in it only while it has both key
// attributes. All indexes carry keys only, because an index is never the truth: who
// finds an item through one reads the item itself before acting on it.
type Index struct {
	Name         string
	PartitionKey Key
	SortKey      Key
}

// The attribute names of the table's keys, and the index names.
const (
	AttributePartitionKey = "pk"
	AttributeSortKey      = "sk"

	IndexDue                      = "due"
	AttributeDueShard             = "due_shard"
	AttributeDueAtMs              = "due_at_ms"
	IndexUnpublished              = "unpublished"
	AttributeUnpublishedShard     = "unpublished_shard"
	AttributeUnpublishedOrder     = "unpublished_order"
	IndexOwner                    = "owner"
	AttributeOwner                = "owner"
	AttributeOwnerOrder           = "owner_order"
	IndexResource                 = "resource"
	AttributeResource             = "resource"
	AttributeResourceOrder        = "resource_order"
	IndexReview                   = "review"
	AttributeReviewList           = "review_list"
	AttributeReviewOrder          = "review_order"
	AttributeTimeToLive           = "ttl_at_seconds"
	streamViewNewImage            = "NEW_IMAGE"
	keyTypeString, keyTypeInteger = "S", "N"
)

// TableSchema returns the schema of Holdfast's one table.
func TableSchema() Schema {
	text := func(name string) Key { return Key{name, keyTypeString} }
	return Schema{
		PartitionKey: text(AttributePartitionKey),
		SortKey:      text(AttributeSortKey),
		Indexes: []Index{
			{IndexDue, text(AttributeDueShard), Key{AttributeDueAtMs, keyTypeInteger}},
			{IndexUnpublished, text(AttributeUnpublishedShard), text(AttributeUnpublishedOrder)},
			{IndexOwner, text(AttributeOwner), text(AttributeOwnerOrder)},
			{IndexResource, text(AttributeResource), text(AttributeResourceOrder)},
			{IndexReview, text(AttributeReviewList), text(AttributeReviewOrder)},
		},
		StreamView:          streamViewNewImage,
		TimeToLiveAttribute: AttributeTimeToLive,
	}
}
