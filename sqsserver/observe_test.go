package sqsserver_test

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// The observer is called once for each request, with what an operator needs to know, and
// without the content of messages.
func TestOnRequest(t *testing.T) {
	var seen []sqsserver.Request
	server := sqsserver.New(sqsserver.Config{OnRequest: func(r sqsserver.Request) { seen = append(seen, r) }})
	defer server.Close()
	b := &testServer{T: t, server: server}
	b.url = b.create("q", nil)
	credentials := map[string]string{"Authorization": "AWS4-HMAC-SHA256 Credential=AKID/20261121/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=00"}
	do := func(action, body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		_ = wasCut(func() { server.ServeHTTP(w, request("POST", action, body, credentials)) })
		return w
	}
	const secretBody = "the body of the message"
	do("SendMessage", `{"QueueUrl":"q","MessageBody":"`+secretBody+`"}`)
	do("SendMessageBatch", `{"QueueUrl":"q","Entries":[{"Id":"a","MessageBody":"x"},{"Id":"b","MessageBody":""}]}`)
	received := do("ReceiveMessage", `{"QueueUrl":"q","MaxNumberOfMessages":10}`)
	handle := received.Body.String()
	_, handle, _ = strings.Cut(handle, `"ReceiptHandle":"`)
	handle, _, _ = strings.Cut(handle, `"`)
	do("ChangeMessageVisibility", `{"QueueUrl":"q","VisibilityTimeout":1,"ReceiptHandle":"`+handle+`"}`)
	do("DeleteMessage", `{"QueueUrl":"q","ReceiptHandle":"`+handle+`"}`)
	do("CreateQueue", `{"QueueName":"new"}`)
	do("SendMessage", `{"QueueUrl":"nowhere","MessageBody":"x"}`)
	do("LaunchRocket", `{}`)
	if err := server.SetFaults("q", sqsserver.Fault{Kind: sqsserver.FaultLoseReply}); err != nil {
		t.Fatal(err)
	}
	do("PurgeQueue", `{"QueueUrl":"q"}`)

	ok := func(action, queue string, messages, failed int) sqsserver.Request {
		return sqsserver.Request{Protocol: "json", Action: action, Region: "us-east-1", Account: "000000000000", AccessKey: "AKID", Queue: queue, Status: 200, Messages: messages, Failed: failed}
	}
	refused := func(action string, code string) sqsserver.Request {
		r := ok(action, "", 0, 0)
		r.Status, r.Code = 400, code
		return r
	}
	cut := ok("PurgeQueue", "q", 0, 0)
	cut.Status = 0
	want := []sqsserver.Request{
		ok("SendMessage", "q", 1, 0), ok("SendMessageBatch", "q", 1, 1), ok("ReceiveMessage", "q", 2, 0),
		ok("ChangeMessageVisibility", "q", 1, 0), ok("DeleteMessage", "q", 1, 0), ok("CreateQueue", "new", 0, 0),
		refused("SendMessage", "AWS.SimpleQueueService.NonExistentQueue"), refused("", "InvalidAction"), cut,
	}
	variable := cmpopts.IgnoreFields(sqsserver.Request{}, "ID", "Started", "Duration", "Remote", "BytesIn", "BytesOut")
	if diff := cmp.Diff(want, seen, variable); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	for i, r := range seen {
		if len(r.ID) != 36 || r.Started.IsZero() || r.Remote == "" || r.BytesIn == 0 || r.Duration < 0 || r.Duration > time.Minute {
			t.Errorf("request %d: %+v", i, r)
		}
	}
	if got, want := seen[2].BytesOut, received.Body.Len(); got != want {
		t.Errorf("the receive wrote %d bytes, by its account %d", want, got)
	}
}

// A request that panics, or has no right to be there, is reported as well.
func TestOnRequestOfFailures(t *testing.T) {
	var seen []sqsserver.Request
	server := sqsserver.New(sqsserver.Config{
		OnRequest: func(r sqsserver.Request) { seen = append(seen, r) }, Logger: withoutOutput(),
		Credentials: []sqsserver.Credentials{{AccessKeyID: "a", SecretAccessKey: "b"}},
	})
	defer server.Close()
	server.ServeHTTP(httptest.NewRecorder(), request("POST", "ListQueues", `{}`, nil))
	if len(seen) != 1 || seen[0].Status != 403 || seen[0].Code != "AccessDenied" || seen[0].BytesIn != 0 {
		t.Errorf("reported %+v", seen)
	}
	open := sqsserver.New(sqsserver.Config{OnRequest: func(r sqsserver.Request) { seen = append(seen, r) }, Logger: withoutOutput()})
	defer open.Close()
	open.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/", badBody{}))
	if len(seen) != 2 || seen[1].Status != 500 || seen[1].Code != "InternalFailure" || seen[1].Protocol != "query" {
		t.Errorf("reported %+v", seen)
	}
}

// FuzzServeHTTP: every request is answered in its own protocol, without a panic or an internal
// failure.
func FuzzServeHTTP(f *testing.F) {
	type seed struct{ method, target, path, contentType, body string }
	for _, s := range []seed{
		{"POST", "AmazonSQS.SendMessage", "/", "application/x-amz-json-1.0", `{"QueueUrl":"q","MessageBody":"x","MessageAttributes":{"a":{"DataType":"Binary","BinaryValue":"AA=="}}}`},
		{"POST", "AmazonSQS.ReceiveMessage", "/", "application/x-amz-json-1.0", `{"QueueUrl":"q","MaxNumberOfMessages":10,"AttributeNames":["All"],"MessageAttributeNames":["a.*"]}`},
		{"POST", "AmazonSQS.SendMessageBatch", "/", "", `{"QueueUrl":"f.fifo","Entries":[{"Id":"a","MessageBody":"x","MessageGroupId":"g","MessageDeduplicationId":"d"}]}`},
		{"POST", "AmazonSQS.CreateQueue", "/", "", `{"QueueName":"new","Attributes":{"RedrivePolicy":"{\"maxReceiveCount\":1}"},"tags":{"a":"b"}}`},
		{"POST", "AmazonSQS.SetQueueAttributes", "/", "", `{"QueueUrl":"q","Attributes":{"VisibilityTimeout":"1","Policy":"{}"}}`},
		{"POST", "AmazonSQS.ListQueues", "/", "", `{"MaxResults":1,"NextToken":"YQ"}`},
		{"POST", "AmazonSQS.AddPermission", "/", "", `{"QueueUrl":"q","Label":"l","AWSAccountIds":["1"],"Actions":["*"]}`},
		{"POST", "AmazonSQS.StartMessageMoveTask", "/", "", `{"SourceArn":"arn:aws:sqs:us-east-1:000000000000:q"}`},
		{"GET", "", "/000000000000/q?Action=SendMessage&MessageBody=x&MessageAttribute.1.Name=a&MessageAttribute.1.Value.DataType=String&MessageAttribute.1.Value.StringValue=%26", "", ""},
		{"POST", "", "/", "application/x-www-form-urlencoded", "Action=ReceiveMessage&QueueUrl=q&AttributeName.1=All&MaxNumberOfMessages=10"},
		{"POST", "", "/000000000000/f.fifo", "application/x-www-form-urlencoded", "Action=SendMessage&MessageBody=x&MessageGroupId=g&MessageDeduplicationId=1"},
		{"GET", "", "/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKID%2F20261121%2Feu-west-1%2Fsqs%2Faws4_request&Action=ListQueues", "", ""},
		{"OPTIONS", "", "/", "", ""},
		{"POST", "AmazonSQS.DeleteMessage", "/", "", `{"QueueUrl":"q","ReceiptHandle":"x"}`},
	} {
		f.Add(s.method, s.target, s.path, s.contentType, []byte(s.body))
	}
	f.Fuzz(func(t *testing.T, method, target, path, contentType string, body []byte) {
		server := sqsserver.New(sqsserver.Config{Seed: 1, Logger: failing(t)})
		defer server.Close()
		b := &testServer{T: t, server: server}
		b.url = b.create("q", nil)
		b.create("f.fifo", map[string]string{"FifoQueue": "true"})
		b.send("hello")
		r, err := parsedRequest(method, path, body)
		if err != nil {
			return // no server gets that far
		}
		if target != "" {
			r.Header.Set("X-Amz-Target", target)
		}
		r.Header.Set("Content-Type", contentType)
		if strings.Contains(string(body)+path, "WaitTimeSeconds") {
			return // it may wait for long
		}
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
		if w.Code != 200 && w.Body.Len() == 0 && method != "HEAD" {
			t.Errorf("status %d without a word", w.Code)
		}
		if err := server.Err(); err != nil {
			t.Error(err)
		}
		again, err := parsedRequest(method, path, body)
		if err != nil {
			t.Fatal(err)
		}
		again.Header = r.Header
		guarded := sqsserver.New(sqsserver.Config{Logger: failing(t), Credentials: []sqsserver.Credentials{{AccessKeyID: "AKID", SecretAccessKey: "secret"}}})
		defer guarded.Close()
		w = httptest.NewRecorder()
		guarded.ServeHTTP(w, again)
		if w.Code != 403 && w.Code != 400 && method != "OPTIONS" {
			t.Errorf("a server with a key answered %d: %s", w.Code, w.Body)
		}
		if err := b.server.PurgeQueue(t.Context(), &sqsserver.PurgeQueueInput{QueueUrl: b.url}); err != nil && !isGone(err) {
			t.Errorf("the server does not work any more: %v", err)
		}
	})
}

func isGone(err error) bool {
	var e *sqsserver.Error
	return errors.As(err, &e) && (e.HTTPStatus() == 400 || e.HTTPStatus() == 403) // deleted, or purged before
}
