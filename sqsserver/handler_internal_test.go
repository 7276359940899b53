package sqsserver

import (
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// TestReceiveAllocations: over HTTP, to receive ten messages takes no more allocations
// than to receive one.
func TestReceiveAllocations(t *testing.T) {
	s := New(Config{})
	t.Cleanup(func() { s.Close() })
	created, err := s.CreateQueue(t.Context(), &CreateQueueInput{QueueName: "q"})
	if err != nil {
		t.Fatal(err)
	}
	const runs = 100
	for range (runs + 1) * (1 + 10) {
		if _, err := s.SendMessage(t.Context(), &SendMessageInput{QueueUrl: created.QueueUrl, SendMessageEntry: SendMessageEntry{MessageBody: "body"}}); err != nil {
			t.Fatal(err)
		}
	}
	allocations := func(n int) float64 {
		text := `{"QueueUrl":"` + created.QueueUrl + `","MaxNumberOfMessages":` + strconv.Itoa(n) + `,"VisibilityTimeout":600,"MessageSystemAttributeNames":["All"]}`
		body := strings.NewReader(text)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, created.QueueUrl, io.NopCloser(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header["X-Amz-Target"] = []string{"AmazonSQS.ReceiveMessage"}
		w := &reply{header: make(http.Header)}
		return testing.AllocsPerRun(runs, func() {
			body.Reset(text)
			w.messages = 0
			s.ServeHTTP(w, r)
			if w.messages != n {
				t.Fatalf("received %d messages, want %d", w.messages, n)
			}
		})
	}
	const chance = 5 // with the race detector a sync.Pool forgets some at random
	if one, ten := allocations(1), allocations(10); ten > one+chance {
		t.Errorf("%v allocations for one message, %v for ten", one, ten)
	}
}

// reply counts the messages of a reply.
type reply struct {
	header   http.Header
	messages int
}

func (r *reply) Header() http.Header { return r.header }
func (r *reply) WriteHeader(int)     {}
func (r *reply) Write(p []byte) (int, error) {
	r.messages += strings.Count(string(p), `"ReceiptHandle"`)
	return len(p), nil
}

// TestReceivedMessagesAreNew: a message has no field of a message that was received in the
// same place before.
func TestReceivedMessagesAreNew(t *testing.T) {
	one := engine.Delivery{Receives: 3, Message: engine.Message{Payload: &content{
		body: body{text: "a", quoted: true}, bodyMD5: digestBody([]byte("a")), sender: "somebody", traceHeader: "Root=1",
		attributes: []MessageAttribute{{Name: "n", DataType: "String", StringValue: "v"}}, attributesMD5: MD5{1},
	}}}
	other := engine.Delivery{Message: engine.Message{Payload: new(content)}}
	var q queue
	var handles handleTexts
	var got, want message
	q.message(&got, &one, &handles, allSystemAttributes, []string{"All"})
	if got.MessageAttributes == nil || got.Attributes == (SystemAttributes{}) {
		t.Fatalf("received %+v, without attributes", got)
	}
	q.message(&got, &other, &handles, 0, nil)
	q.message(&want, &other, &handles, 0, nil)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("received %+v, want %+v", got, want)
	}
}
