package localrun_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"

	"holdfast/shared/topology"
)

const (
	targetHeader = "X-Amz-Target"
	// objectServicePrefix is what a target of S3 begins with, if it had one.
	objectServicePrefix = "AmazonS3."
	// idleConnections keeps a connection for each call that a function may make at once.
	idleConnections = 64
)

// observer stands between each function and the services that it calls. It notes which
// action on which resource each call is, and makes chosen calls go wrong.
type observer struct {
	client  *http.Client
	servers []*httptest.Server

	mu     sync.Mutex
	calls  map[topology.FunctionName]map[granted]bool
	faults map[topology.FunctionName]fault
	// messages are the requests with which functions sent something to a queue or the bus.
	messages []string
}

// granted is one action on one resource.
type granted struct {
	resource topology.Resource
	action   string
}

// fault decides what becomes of one call. It calls forward to let the call reach the
// service and be answered there; the function does not see the answer if fault says that it
// is lost.
type fault func(target string, forward func()) (isLost bool)

func newObserver() *observer {
	return &observer{
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: idleConnections, DisableCompression: true}},
		calls:  make(map[topology.FunctionName]map[granted]bool),
		faults: make(map[topology.FunctionName]fault),
	}
}

// between is localrun.Options.Between.
func (o *observer) between(function topology.FunctionName, endpoint string) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		o.pass(w, r, function, endpoint)
	}))
	o.mu.Lock()
	defer o.mu.Unlock()
	o.servers = append(o.servers, server)
	return server.URL
}

// close ends the servers. It does not hold the lock meanwhile: a server waits for its last
// calls, and each of them takes the lock.
func (o *observer) close() {
	o.mu.Lock()
	servers := o.servers
	o.mu.Unlock()
	for _, server := range servers {
		server.CloseClientConnections()
		server.Close()
	}
}

// inject makes the function's calls go through f until the returned function is called.
func (o *observer) inject(function topology.FunctionName, f fault) (end func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.faults[function] = f
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.faults, function)
	}
}

func (o *observer) pass(w http.ResponseWriter, r *http.Request, function topology.FunctionName, endpoint string) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the function has left
	}
	target := targetOf(r)
	o.note(function, calledFor(target, r.URL.Path, body)...)
	o.mu.Lock()
	if strings.HasPrefix(target, "AmazonSQS.") || strings.HasPrefix(target, "AWSEvents.") {
		o.messages = append(o.messages, string(body))
	}
	through := o.faults[function]
	o.mu.Unlock()
	var response *http.Response
	var answer []byte
	forward := func() {
		response, answer = o.forward(r, endpoint, body)
		if target == objectServicePrefix+"GetObject" && response != nil && response.StatusCode == http.StatusNotFound {
			// Who may not list is not told that an object is missing:
			// https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
			o.note(function, granted{bucketIn(r.URL.Path), "s3:ListBucket"})
		}
	}
	if through == nil {
		through = func(_ string, forward func()) bool { forward(); return false }
	}
	if isLost := through(target, forward); isLost || response == nil {
		panic(http.ErrAbortHandler) // closes the connection without an answer
	}
	for name, values := range response.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(response.StatusCode)
	_, _ = w.Write(answer)
}

// bucketIn is the bucket in the path of a request to S3.
func bucketIn(path string) topology.Resource {
	bucket, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return topology.Resource(bucket)
}

// note remembers what the function has called.
func (o *observer) note(function topology.FunctionName, calls ...granted) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.calls[function] == nil {
		o.calls[function] = make(map[granted]bool)
	}
	for _, call := range calls {
		o.calls[function][call] = true
	}
}

// targetOf names a call as the header of most services does. S3 has no such header: there
// the method and the path say what is asked.
func targetOf(r *http.Request) string {
	if target := r.Header.Get(targetHeader); target != "" || !strings.Contains(r.Header.Get("Authorization"), "/s3/aws4_request") {
		return target
	}
	_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case key == "" && r.Method == http.MethodGet:
		return objectServicePrefix + "ListBucket"
	case key != "" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		return objectServicePrefix + "GetObject"
	case key != "" && r.Method == http.MethodPut:
		return objectServicePrefix + "PutObject"
	}
	return objectServicePrefix + r.Method
}

// forward returns the service's whole answer, or nil if the service is not there.
func (o *observer) forward(r *http.Request, endpoint string, body []byte) (*http.Response, []byte) {
	made, err := http.NewRequestWithContext(r.Context(), r.Method, endpoint+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return nil, nil
	}
	made.Header = r.Header.Clone()
	response, err := o.client.Do(made)
	if err != nil {
		return nil, nil
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, nil
	}
	return response, answer
}

// sent returns everything that functions sent to a queue or to the bus so far.
func (o *observer) sent() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.messages)
}

// called returns what the function has called so far.
func (o *observer) called(function topology.FunctionName) []granted {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []granted
	for call := range o.calls[function] {
		all = append(all, call)
	}
	return all
}

// calledFor returns what IAM asks permission for when a call is made: the actions inside a
// transaction, and the index if a query names one. In a local run queues, secrets and the
// bucket have the names that the topology gives them. Sources:
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html
// and https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazondynamodb.html
func calledFor(target, requestPath string, body []byte) []granted {
	_, operation, _ := strings.Cut(target, ".")
	if strings.HasPrefix(target, objectServicePrefix) {
		return []granted{{bucketIn(requestPath), "s3:" + operation}}
	}
	var request struct {
		IndexName     string
		TransactItems []map[string]json.RawMessage
		QueueURL      string `json:"QueueUrl"`
		SecretID      string `json:"SecretId"`
	}
	unknown := []granted{{"unknown", fmt.Sprintf("%s %.80s", target, body)}}
	if json.Unmarshal(body, &request) != nil {
		return unknown
	}
	switch service, _, _ := strings.Cut(target, "."); service {
	case "AWSEvents":
		return []granted{{topology.ResourceEventBus, "events:" + operation}}
	case "AmazonSQS":
		// A call for many messages needs the permission of the call for one.
		return []granted{{topology.Resource(path.Base(request.QueueURL)), "sqs:" + strings.TrimSuffix(operation, "Batch")}}
	case "secretsmanager":
		return []granted{{topology.Resource(request.SecretID), "secretsmanager:" + operation}}
	case "DynamoDB_20120810":
	default:
		return unknown
	}
	resource := topology.ResourceTable
	if request.IndexName != "" {
		resource = topology.TableIndex(request.IndexName)
	}
	actions := map[string]string{
		"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "Get": "GetItem", "ConditionCheck": "ConditionCheckItem",
	}
	var calls []granted
	for _, item := range request.TransactItems {
		for kind := range item {
			calls = append(calls, granted{resource, "dynamodb:" + actions[kind]})
		}
	}
	if len(calls) == 0 {
		calls = []granted{{resource, "dynamodb:" + operation}}
	}
	return slices.Compact(calls)
}
