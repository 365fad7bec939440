package localrun

import (
	"holdfast/scripts/internal/eventsource"
	"holdfast/scripts/internal/gateway"
	"holdfast/scripts/internal/lambdahost"
	"holdfast/scripts/internal/queuesource"
	"holdfast/shared/topology"
)

// The namespaces of the numbers.
const (
	namespaceLambda  = "AWS/Lambda"
	namespaceSQS     = "AWS/SQS"
	namespaceGateway = "AWS/ApiGateway"
)

// Number is one number that AWS counts by itself, as CloudWatch would hear of it.
type Number struct {
	Namespace, Metric string
	// Function and Queue say of what it is. Both are empty for a number of the gateway, of
	// which there is one.
	Function topology.FunctionName
	Queue    topology.Resource
	Value    float64
}

func (s *System) measured(n Number) {
	if s.options.Measured != nil {
		s.options.Measured(n)
	}
}

// ofFunction tells what Lambda counts of a function.
func (s *System) ofFunction(name topology.FunctionName) func(lambdahost.Metric, float64) {
	return func(metric lambdahost.Metric, value float64) {
		s.measured(Number{Namespace: namespaceLambda, Metric: string(metric), Function: name, Value: value})
	}
}

// ofStream tells what Lambda counts of the mapping from the stream to a function.
func (s *System) ofStream(name topology.FunctionName) func(eventsource.Metric, float64) {
	return func(metric eventsource.Metric, value float64) {
		s.measured(Number{Namespace: namespaceLambda, Metric: string(metric), Function: name, Value: value})
	}
}

// ofQueue tells what SQS counts of a queue that feeds a function.
func (s *System) ofQueue(resource topology.Resource) func(queuesource.Metric, float64) {
	return func(metric queuesource.Metric, value float64) {
		s.measured(Number{Namespace: namespaceSQS, Metric: string(metric), Queue: resource, Value: value})
	}
}

// ofGateway tells what API Gateway counts.
func (s *System) ofGateway(metric gateway.Metric, value float64) {
	s.measured(Number{Namespace: namespaceGateway, Metric: string(metric), Value: value})
}
