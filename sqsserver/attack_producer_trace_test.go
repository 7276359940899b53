package sqsserver_test

// Holds off: a producer, who may send to one queue, and nothing else. It sends what no
// limit counts, for the server to keep and for the receivers of the queue to be sent.

import (
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/sqsserver"
)

const validTrace = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"

// traceOf is a valid trace header of n bytes.
func traceOf(n int) string {
	return validTrace + ";x=" + strings.Repeat("y", n-len(validTrace)-3)
}

// sendsWith is every way to send a message with a trace header, and whether it is in the
// HTTP header.
func sendsWith(b *testServer, trace string) map[string]func() (status int, reply string) {
	value := `{"DataType":"String","StringValue":` + quoted(trace) + `}`
	inJSON := func(action, body string, header map[string]string) func() (int, string) {
		return func() (int, string) {
			w := httptest.NewRecorder()
			b.server.ServeHTTP(w, request("POST", action, body, header))
			return w.Code, w.Body.String()
		}
	}
	inQuery := func(parameters, prefix string) func() (int, string) {
		return func() (int, string) {
			r := httptest.NewRequest("POST", "/000000000000/q", strings.NewReader(parameters+
				"&"+prefix+"MessageSystemAttribute.1.Name=AWSTraceHeader&"+prefix+"MessageSystemAttribute.1.Value.DataType=String"+
				"&"+prefix+"MessageSystemAttribute.1.Value.StringValue="+url.QueryEscape(trace)))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			b.server.ServeHTTP(w, r)
			return w.Code, w.Body.String()
		}
	}
	const entry = "SendMessageBatchRequestEntry.1."
	return map[string]func() (int, string){
		"JSON":       inJSON("SendMessage", `{"QueueUrl":"q","MessageBody":"x","MessageSystemAttributes":{"AWSTraceHeader":`+value+`}}`, nil),
		"JSON batch": inJSON("SendMessageBatch", `{"QueueUrl":"q","Entries":[{"Id":"a","MessageBody":"x","MessageSystemAttributes":{"AWSTraceHeader":`+value+`}}]}`, nil),
		"header":     inJSON("SendMessage", `{"QueueUrl":"q","MessageBody":"x"}`, map[string]string{"X-Amzn-Trace-Id": trace}),
		"header of a batch": inJSON("SendMessageBatch", `{"QueueUrl":"q","Entries":[{"Id":"a","MessageBody":"x"}]}`,
			map[string]string{"X-Amzn-Trace-Id": trace}),
		"Query":       inQuery("Action=SendMessage&MessageBody=x", ""),
		"Query batch": inQuery("Action=SendMessageBatch&"+entry+"Id=a&"+entry+"MessageBody=x", entry),
	}
}

func quoted(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// TestAttackTraceHeaderIsBounded: a trace header does not count towards the size of a
// message, so it has a limit of its own, whichever way it comes.
func TestAttackTraceHeaderIsBounded(t *testing.T) {
	for _, c := range []struct {
		name, trace string
		valid       bool
	}{
		{"as long as may be", traceOf(500), true},
		{"a byte longer", traceOf(501), false},
		{"7 MiB", traceOf(7 << 20), false},
		{"what becomes six times as long in JSON", validTrace + ";x=" + strings.Repeat("\u2028", 100), false},
		{"a line break", validTrace + ";x=\ny", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newTestServer(t, nil)
			sends := sendsWith(b, c.trace)
			for way, send := range sends {
				status, reply := send()
				refused := strings.Contains(reply, "InvalidParameterValue")
				if refused == c.valid || status != 200 && strings.Contains(way, "batch") {
					t.Errorf("%s: %d %.300s", way, status, reply)
				}
				if len(reply) > 2000 {
					t.Errorf("%s: the answer has %d bytes", way, len(reply))
				}
			}
			out, err := b.server.ReceiveMessage(t.Context(), &sqsserver.ReceiveMessageInput{QueueUrl: b.url,
				MaxNumberOfMessages: sqsserver.Int(10), AttributeNames: []string{"All"}})
			if want := map[bool]int{true: len(sends)}[c.valid]; err != nil || len(out.Messages) != want {
				t.Errorf("%d messages (%v), want %d", len(out.Messages), err, want)
			}
		})
	}
}

// TestAttackUncountedValue: of the two values of an attribute only the one of its type
// counts towards the message's size, so only that one is kept and received.
func TestAttackUncountedValue(t *testing.T) {
	b := newTestServer(t, nil)
	large := strings.Repeat("x", 3<<20)
	_, err := b.server.SendMessage(t.Context(), &sqsserver.SendMessageInput{QueueUrl: b.url, SendMessageEntry: sqsserver.SendMessageEntry{
		MessageBody: "x", MessageAttributes: []sqsserver.MessageAttribute{
			{Name: "b", DataType: "Binary", BinaryValue: []byte("b"), StringValue: large},
			{Name: "s", DataType: "String", StringValue: "s", BinaryValue: []byte(large)},
		}}})
	if err != nil {
		t.Fatal(err)
	}
	out, err := b.server.ReceiveMessage(t.Context(), &sqsserver.ReceiveMessageInput{QueueUrl: b.url, MessageAttributeNames: []string{"All"}})
	if err != nil || len(out.Messages) != 1 {
		t.Fatalf("%d messages, %v", len(out.Messages), err)
	}
	for _, a := range out.Messages[0].MessageAttributes {
		if len(a.StringValue)+len(a.BinaryValue) != 1 {
			t.Errorf("attribute %s has %d and %d bytes, want one in all", a.Name, len(a.StringValue), len(a.BinaryValue))
		}
	}
}

// TestAttackUnboundedAttributes: a queue keeps only a limited length of a text that a client
// chose, and no error quotes such a text in full.
func TestAttackUnboundedAttributes(t *testing.T) {
	b := newTestServer(t, nil)
	large := strings.Repeat(" ", 3<<20)
	for name, value := range map[string]string{
		"KmsMasterKeyId":     "alias/" + large,
		"RedriveAllowPolicy": `{"redrivePermission":"allowAll"` + large + `}`,
		"Policy":             `{"Statement":[]` + large + `}`,
		"RedrivePolicy":      `{"deadLetterTargetArn":"arn:` + large + `:sqs:us-east-1:000000000000:q","maxReceiveCount":1}`,
		large:                "1",
		"VisibilityTimeout":  large + "1",
	} {
		w := httptest.NewRecorder()
		b.server.ServeHTTP(w, request("POST", "SetQueueAttributes", `{"QueueUrl":"q","Attributes":{`+quoted(name)+`:`+quoted(value)+`}}`, nil))
		if w.Code != 400 || w.Body.Len() > 8<<10 {
			t.Errorf("%.30s: status %d with %d bytes: %.200s", name, w.Code, w.Body.Len(), w.Body)
		}
	}
}
