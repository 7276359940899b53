package sqsserver_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// Replies to the byte, on a server that has the queues q and f.fifo.
func TestReplies(t *testing.T) {
	const url = "http://localhost:9324/000000000000/q"
	tests := []struct {
		name           string
		request        *http.Request
		status         int
		queryError     string
		body           string
		matchesPattern bool
	}{
		{
			name:    "an action without output has an empty body",
			request: request("POST", "PurgeQueue", `{"QueueUrl":"`+url+`"}`, nil),
			status:  200,
		},
		{
			name:    "an empty result is an empty object",
			request: request("POST", "ReceiveMessage", `{"QueueUrl":"`+url+`"}`, nil),
			status:  200, body: `{}`,
		},
		{
			name:    "GetQueueAttributes without names",
			request: request("POST", "GetQueueAttributes", `{"QueueUrl":"`+url+`"}`, nil),
			status:  200, body: `{}`,
		},
		{
			name:    "ListQueueTags without tags",
			request: request("POST", "ListQueueTags", `{"QueueUrl":"`+url+`"}`, nil),
			status:  200, body: `{}`,
		},
		{
			name:    "ListDeadLetterSourceQueues without sources",
			request: request("POST", "ListDeadLetterSourceQueues", `{"QueueUrl":"`+url+`"}`, nil),
			status:  200, body: `{}`,
		},
		{
			name:    "the queue is that of the body, whatever the path",
			request: onPath("/000000000000/f.fifo", request("POST", "GetQueueAttributes", `{"QueueUrl":"`+url+`","AttributeNames":["QueueArn"]}`, nil)),
			status:  200, body: `{"Attributes":{"QueueArn":"arn:aws:sqs:us-east-1:000000000000:q"}}`,
		},
		{
			name:    "the path names no queue for JSON",
			request: onPath("/000000000000/q", request("POST", "PurgeQueue", `{}`, nil)),
			status:  400, queryError: "AWS.SimpleQueueService.NonExistentQueue;Sender",
			body: `{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"The specified queue does not exist."}`,
		},
		{
			name:    "queue urls have the host of the request",
			request: request("POST", "GetQueueUrl", `{"QueueName":"q"}`, nil),
			status:  200, body: `{"QueueUrl":"` + url + `"}`,
		},
		{
			name:    "the region of the credentials has queues of its own",
			request: request("POST", "GetQueueUrl", `{"QueueName":"q"}`, map[string]string{"Authorization": "AWS4-HMAC-SHA256 Credential=AKID/20261121/eu-west-1/sqs/aws4_request, SignedHeaders=host, Signature=00"}),
			status:  400, queryError: "AWS.SimpleQueueService.NonExistentQueue;Sender",
			body: `{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"The specified queue does not exist."}`,
		},
		{
			name:    "the configured region in the credentials",
			request: request("POST", "GetQueueUrl", `{"QueueName":"q"}`, map[string]string{"Authorization": "AWS4-HMAC-SHA256 Credential=AKID/20261121/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=00"}),
			status:  200, body: `{"QueueUrl":"` + url + `"}`,
		},
		{
			name:    "a message",
			request: request("POST", "SendMessage", `{"QueueUrl":"`+url+`","MessageBody":"hello"}`, nil),
			status:  200, matchesPattern: true,
			body: `{"MessageId":"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}","MD5OfMessageBody":"5d41402abc4b2a76b9719d911017c592"}`,
		},
		{
			name:    "a message of a FIFO queue",
			request: request("POST", "SendMessage", `{"QueueUrl":"f.fifo","MessageBody":"hello","MessageGroupId":"g","MessageDeduplicationId":"d"}`, nil),
			status:  200, matchesPattern: true,
			body: `{"MessageId":"[0-9a-f-]{36}","MD5OfMessageBody":"5d41402abc4b2a76b9719d911017c592","SequenceNumber":"[1-9][0-9]{19}"}`,
		},
		{
			name:    "a modelled error",
			request: request("POST", "SendMessage", `{"QueueUrl":"http://x/000000000000/no","MessageBody":"x"}`, nil),
			status:  400, queryError: "AWS.SimpleQueueService.NonExistentQueue;Sender",
			body: `{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"The specified queue does not exist."}`,
		},
		{
			name:    "an error of status 404",
			request: request("POST", "DeleteMessage", `{"QueueUrl":"`+url+`","ReceiptHandle":"x"}`, nil),
			status:  404, queryError: "ReceiptHandleIsInvalid;Sender",
			body: `{"__type":"com.amazonaws.sqs#ReceiptHandleIsInvalid","message":"The input receipt handle \"x\" is not a valid receipt handle."}`,
		},
		{
			name:    "an error of the framework",
			request: request("POST", "ReceiveMessage", `{"QueueUrl":"`+url+`","MaxNumberOfMessages":11}`, nil),
			status:  400, queryError: "InvalidParameterValue;Sender",
			body: `{"__type":"com.amazon.coral.service#InvalidParameterValueException","message":"Value 11 for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided."}`,
		},
		{
			name:    "an unknown action",
			request: request("POST", "LaunchRocket", `{}`, nil),
			status:  400, queryError: "InvalidAction;Sender",
			body: `{"__type":"com.amazon.coral.service#UnknownOperationException","message":"The action LaunchRocket is not valid for this endpoint."}`,
		},
		{
			name:    "an action of another service",
			request: request("POST", "", `{}`, map[string]string{"X-Amz-Target": "DynamoDB_20120810.GetItem"}),
			status:  400, queryError: "InvalidAction;Sender", matchesPattern: true,
			body: `.*UnknownOperationException.*DynamoDB_20120810.GetItem.*`,
		},
		{
			name:    "JSON without an action",
			request: request("POST", "", `{}`, nil),
			status:  400, queryError: "InvalidAction;Sender", matchesPattern: true,
			body: `.*UnknownOperationException.*X-Amz-Target.*`,
		},
		{
			name:    "a body that is no JSON",
			request: request("POST", "SendMessage", `{"QueueUrl":`, nil),
			status:  400, queryError: "MalformedInput;Sender", matchesPattern: true,
			body: `.*"com.amazon.coral.service#SerializationException".*at byte 12.*`,
		},
		{
			name:    "a body that is no object",
			request: request("POST", "SendMessage", `[]`, nil),
			status:  400, queryError: "MalformedInput;Sender", matchesPattern: true,
			body: `.*SerializationException.*`,
		},
		{
			name:    "a body that is larger than any valid one",
			request: request("POST", "SendMessage", `{"MessageBody":"`+strings.Repeat("x", 9<<20)+`"}`, nil),
			status:  400, queryError: "MalformedInput;Sender", matchesPattern: true,
			body: `.*SerializationException.*`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server := newServer(t)
			for name, attributes := range map[string]map[string]string{"q": nil, "f.fifo": {"FifoQueue": "true"}} {
				if _, err := server.CreateQueue(t.Context(), &sqsserver.CreateQueueInput{QueueName: name, Attributes: attributes}); err != nil {
					t.Fatal(err)
				}
			}
			w := httptest.NewRecorder()
			server.ServeHTTP(w, test.request)
			reply := w.Result()
			if reply.StatusCode != test.status {
				t.Errorf("status %d, want %d", reply.StatusCode, test.status)
			}
			if got := reply.Header.Get("X-Amzn-Query-Error"); got != test.queryError {
				t.Errorf("x-amzn-query-error %q, want %q", got, test.queryError)
			}
			if got, want := reply.Header.Get("Content-Type"), "application/x-amz-json-1.0"; got != want {
				t.Errorf("content type %q, want %q", got, want)
			}
			if id := reply.Header.Get("X-Amzn-Requestid"); len(id) != 36 {
				t.Errorf("request id %q, want a UUID", id)
			}
			body, _ := io.ReadAll(reply.Body)
			if test.matchesPattern {
				if !regexp.MustCompile(`^` + test.body + `$`).Match(body) {
					t.Errorf("body %s, want one that matches %s", body, test.body)
				}
			} else if diff := cmp.Diff(test.body, string(body)); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

// The actions without output answer with no body in JSON, and with their metadata
// alone in XML.
func TestSilentActions(t *testing.T) {
	b := newTestServer(t, nil)
	b.send("x")
	handle := b.receive(b.url)[0].ReceiptHandle
	for _, test := range []struct{ action, members, parameters string }{
		{"TagQueue", `"Tags":{"a":"b"}`, "Tag.1.Key=a&Tag.1.Value=b"},
		{"UntagQueue", `"TagKeys":["a"]`, "TagKey.1=a"},
		{"AddPermission", `"Label":"json","AWSAccountIds":["111111111111"],"Actions":["SendMessage"]`, "Label=query&AWSAccountId.1=111111111111&ActionName.1=SendMessage"},
		{"RemovePermission", `"Label":"json"`, "Label=query"},
		{"SetQueueAttributes", `"Attributes":{"DelaySeconds":"0"}`, "Attribute.1.Name=DelaySeconds&Attribute.1.Value=0"},
		{"ChangeMessageVisibility", `"ReceiptHandle":"` + handle + `","VisibilityTimeout":60`, "VisibilityTimeout=60&ReceiptHandle=" + url.QueryEscape(handle)},
		{"DeleteMessage", `"ReceiptHandle":"` + handle + `"`, "ReceiptHandle=" + url.QueryEscape(handle)},
	} {
		w := httptest.NewRecorder()
		b.server.ServeHTTP(w, request("POST", test.action, `{"QueueUrl":"q",`+test.members+`}`, nil))
		if w.Code != 200 || w.Body.Len() != 0 {
			t.Errorf("%s in JSON: %d %s, want 200 and nothing", test.action, w.Code, w.Body)
		}
		w = httptest.NewRecorder()
		b.server.ServeHTTP(w, formRequest("POST", "/000000000000/q", "Action="+test.action+"&"+test.parameters))
		if w.Code != 200 || !regexp.MustCompile("^"+xmlReply(test.action, "")+"$").MatchString(w.Body.String()) {
			t.Errorf("%s by Query: %d %s, want 200 and no result", test.action, w.Code, w.Body)
		}
	}
}

// A client that does not ask for query-compatible errors gets the same statuses and
// headers.
func TestErrorsWithoutQueryMode(t *testing.T) {
	b := newTestServer(t, nil)
	r := request("POST", "DeleteMessage", `{"QueueUrl":"q","ReceiptHandle":"x"}`, nil)
	r.Header.Del("X-Amzn-Query-Mode")
	w := httptest.NewRecorder()
	b.server.ServeHTTP(w, r)
	if got := w.Header().Get("X-Amzn-Query-Error"); w.Code != 404 || got != "ReceiptHandleIsInvalid;Sender" {
		t.Errorf("status %d, x-amzn-query-error %q", w.Code, got)
	}
}

// A message carries the trace header of the request that sent it, unless it has
// its own.
func TestTraceHeaderOfTheRequest(t *testing.T) {
	const (
		trace = "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1"
		own   = "Root=1-00000000-bd862e3fe1be46a994272793"
	)
	b := newTestServer(t, nil)
	send := func(header, body string) int {
		w := httptest.NewRecorder()
		b.server.ServeHTTP(w, request("POST", "SendMessage", body, map[string]string{"X-Amzn-Trace-Id": header}))
		return w.Code
	}
	send(trace, `{"QueueUrl":"q","MessageBody":"x"}`)
	send(trace, `{"QueueUrl":"q","MessageBody":"x","MessageSystemAttributes":{"AWSTraceHeader":{"DataType":"String","StringValue":"`+own+`"}}}`)
	messages := b.receive(b.url)
	if len(messages) != 2 || messages[0].Attributes.AWSTraceHeader != trace || messages[1].Attributes.AWSTraceHeader != own {
		t.Errorf("received %+v, want the request's trace header and the message's own", messages)
	}
	if status := send("nonsense", `{"QueueUrl":"q","MessageBody":"x"}`); status != 400 {
		t.Errorf("a malformed trace header has status %d, want 400", status)
	}
}

func TestPagesOfThisMachineMayCall(t *testing.T) {
	want := map[string]string{
		"Access-Control-Allow-Origin":  "http://localhost:3000",
		"Access-Control-Allow-Methods": "GET, POST, OPTIONS",
		"Access-Control-Allow-Headers": "authorization, content-type, x-amz-date, x-amz-content-sha256, x-amz-security-token, " +
			"x-amz-target, x-amzn-query-mode, x-amz-user-agent, amz-sdk-invocation-id, amz-sdk-request, " +
			"x-amz-invocation-type, x-amz-log-type, x-amz-client-context",
		"Access-Control-Expose-Headers": "x-amzn-requestid, x-amzn-query-error, " +
			"x-amzn-errortype, x-amz-function-error, x-amz-log-result, x-amz-executed-version",
	}
	server := newServer(t)
	for _, r := range []*http.Request{
		request("OPTIONS", "", "", map[string]string{"Origin": "http://localhost:3000"}),
		request("POST", "ListQueues", "{}", map[string]string{"Origin": "http://localhost:3000"}),
	} {
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		got := make(map[string]string)
		for name := range w.Header() {
			if strings.HasPrefix(name, "Access-Control-") {
				got[name] = w.Header().Get(name)
			}
		}
		if diff := cmp.Diff(want, got); w.Code != 200 || diff != "" {
			t.Errorf("%s: status %d, headers (-want +got):\n%s", r.Method, w.Code, diff)
		}
	}
}

// failingWriter is the reply of a client whose connection has broken.
type failingWriter struct{ http.ResponseWriter }

func (w failingWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// flushFailingWriter notices it only when the reply leaves the buffer.
type flushFailingWriter struct{ http.ResponseWriter }

func (w flushFailingWriter) FlushError() error { return errors.New("broken pipe") }

// leavingClient is the context of a client that leaves between its request and the reply.
type leavingClient struct {
	context.Context
	asked bool
}

func (c *leavingClient) Err() error {
	if c.asked {
		return context.Canceled
	}
	c.asked = true
	return nil
}

// Messages whose reply does not reach the client are visible again at once.
func TestUndeliveredMessagesComeBack(t *testing.T) {
	tests := []struct {
		name  string
		ctx   context.Context
		reply func(http.ResponseWriter) http.ResponseWriter
	}{
		{"the write fails", t.Context(), func(w http.ResponseWriter) http.ResponseWriter { return failingWriter{w} }},
		{"the flush fails", t.Context(), func(w http.ResponseWriter) http.ResponseWriter { return flushFailingWriter{w} }},
		{"the client has gone", &leavingClient{Context: t.Context()}, func(w http.ResponseWriter) http.ResponseWriter { return w }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newTestServer(t, nil)
			b.send("x")
			r := request("POST", "ReceiveMessage", `{"QueueUrl":"q"}`, nil).WithContext(test.ctx)
			func() {
				defer func() {
					if recover() != http.ErrAbortHandler {
						t.Error("the connection is not cut")
					}
				}()
				b.server.ServeHTTP(test.reply(httptest.NewRecorder()), r)
			}()
			messages := b.receive(b.url)
			if len(messages) != 1 || messages[0].Attributes.ApproximateReceiveCount != 2 {
				t.Errorf("received %v, want the message for the second time", messages)
			}
		})
	}
}

// A client that closes its connection during a long poll takes no message with
// it.
func TestClientThatLeavesALongPoll(t *testing.T) {
	b := newTestServer(t, nil)
	listener := httptest.NewServer(b.server)
	defer listener.Close()
	polls := func(want int) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); b.server.Queues()[0].Polls != want; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d polls wait, want %d", b.server.Queues()[0].Polls, want)
			}
		}
	}

	ctx, leave := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := sdkClient(listener.URL, listener.Client()).ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &b.url, WaitTimeSeconds: 20})
		result <- err
	}()
	polls(1)
	leave()
	polls(0)
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled poll returned %v", err)
	}
	b.send("x")
	if messages := b.receive(b.url); len(messages) != 1 || messages[0].Attributes.ApproximateReceiveCount != 1 {
		t.Errorf("received %v, want the message for the first time", messages)
	}
}
