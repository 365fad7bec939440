package hotslot_test

import (
	"testing"

	"holdfast/shared/dynamo/dynamotest"
)

func TestMain(m *testing.M) { dynamotest.Main(m) }
