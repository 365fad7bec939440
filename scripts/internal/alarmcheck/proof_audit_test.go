package alarmcheck_test

import (
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/shared/sim/table"
	"holdfast/shared/topology"
)

// auditNext is when the next audit has come to its end, whenever the fault is.
const auditNext = auditEvery + 15*time.Minute

// tamper changes an item as no code of ours does. number is the value :v of the expression.
func (p *plant) tamper(key table.Key, update string, number string) {
	p.tb.Helper()
	in := &dynamodb.UpdateItemInput{Key: keyAttributes(key), TableName: aws.String(tableName), UpdateExpression: aws.String(update)}
	if number != "" {
		in.ExpressionAttributeValues = table.Item{":v": &types.AttributeValueMemberN{Value: number}}
	}
	mutations, err := p.database.table.Update(in)
	p.must(err)
	p.database.applied(mutations)
}

// stockKey is where the plant's slot keeps its stock.
func stockKey() table.Key { return table.Key{Partition: "STOCK#seat#0", Sort: "STOCK"} }

// loseUnits makes the stock say that more is held than is.
func (p *plant) loseUnits() {
	p.tb.Helper()
	p.tamper(stockKey(), "SET available = available - :v, held = held + :v", "3")
}

// auditProofs are faults that only a look at all of the table finds.
func auditProofs() map[string]proof {
	// The first audit has come to its end before the fault.
	audited := func(p *plant) {
		p.run(longCalmFor)
		p.noTraffic = true
		p.run(auditEvery)
	}
	lost := proof{calm: audited, fault: func(p *plant) { p.loseUnits(); p.run(auditNext) }}
	ghost := proof{calm: audited, fault: func(p *plant) {
		p.refusing(topology.FunctionExpiry, errDenied, "TransactWriteItems")
		p.hold()
		p.run(2 * auditNext)
	}}
	return map[string]proof{
		"AuditMismatch": lost, "AuditFindingsCritical": lost,
		"AuditGhosts": ghost, "AuditFindingsWarning": ghost,
		"AuditHeartbeat": {calm: audited, fault: func(p *plant) {
			p.refusing(topology.FunctionAudit, errDenied, "Scan")
			p.run(5 * auditEvery)
		}},
		// A hold loses its place in the due index, and no message tells of it either.
		"ExpiryIndexHoles": {calm: audited, fault: func(p *plant) {
			p.queueHeld[topology.ResourceDueQueue] = true
			p.tamper(table.Key{Partition: "HOLD#" + p.hold(), Sort: "HOLD"}, "REMOVE due_shard, due_at_ms", "")
			p.run(auditNext)
		}},
		// The ledger closes a slot that is oversold, and something opens it all the same.
		"AuditOversold": {calm: audited, fault: func(p *plant) {
			p.sell(3)
			if status, body := p.request(http.MethodPatch, "/v1/slots/seat", "catalog", `{"capacity":1,"accept_oversold":true}`); status != http.StatusOK {
				p.tb.Fatalf("lower the capacity: %d %v", status, body)
			}
			in := &dynamodb.UpdateItemInput{
				Key: keyAttributes(table.Key{Partition: "SLOT#seat", Sort: "SLOT"}), TableName: aws.String(tableName),
				UpdateExpression: aws.String("SET #open = :v"), ExpressionAttributeNames: map[string]string{"#open": "open"},
				ExpressionAttributeValues: table.Item{":v": &types.AttributeValueMemberBOOL{Value: true}},
			}
			mutations, err := p.database.table.Update(in)
			p.must(err)
			p.database.applied(mutations)
			p.run(auditNext)
		}},
		// What is wrong changes whenever the audit looks at it again.
		"AuditUnsettled": {calm: audited, fault: func(p *plant) {
			p.loseUnits()
			p.database.refuse = func(by topology.FunctionName, call dbCall) error {
				if by == topology.FunctionAudit && call.operation != "Scan" && call.operation != "Query" {
					p.tamper(stockKey(), "SET version = version + :v", "1")
				}
				return nil
			}
			p.run(4 * auditNext)
		}},
	}
}

// sell sells so many units.
func (p *plant) sell(units int) {
	p.tb.Helper()
	for range units {
		if _, err := p.bank.Pay(second(p.begin())); err != nil {
			p.tb.Fatal(err)
		}
	}
	p.run(2 * time.Minute)
}

func second(_, b string) string { return b }
