package repriselambda_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// functionTimeout is that of the functions under test, visibility what Lambda
// recommends for it.
const (
	functionTimeout = 60 * time.Second
	visibility      = 6 * functionTimeout
)

// mapping does what an event source mapping with ReportBatchItemFailures does.
type mapping struct {
	t        *testing.T
	queue    *reprisetest.Queue
	client   *metered
	function function
}

type function func(context.Context, repriselambda.Event) (repriselambda.Response, error)

// mode is a way to run a handler in a function.
type mode struct {
	name string
	make func(reprise.HandlerFunc, repriselambda.Config) (function, error)
}

var (
	messages = mode{"messages", func(h reprise.HandlerFunc, cfg repriselambda.Config) (function, error) {
		return repriselambda.SQS(h, cfg)
	}}
	batchesOfOne = mode{"batches of one", func(h reprise.HandlerFunc, cfg repriselambda.Config) (function, error) {
		return repriselambda.SQSBatch(inTurn(h), repriselambda.BatchConfig{Size: 1, Config: cfg})
	}}
	batches = mode{"batches", func(h reprise.HandlerFunc, cfg repriselambda.Config) (function, error) {
		return repriselambda.SQSBatch(inTurn(h), repriselambda.BatchConfig{Config: cfg})
	}}

	// each are those in which a message has a call of the handler to itself.
	each  = []mode{messages, batchesOfOne}
	modes = []mode{messages, batchesOfOne, batches}
)

// inTurn is a handler of batches that runs h for each message, up to the first of a
// group that fails. It says that all went well with what is behind that.
func inTurn(h reprise.HandlerFunc) reprise.BatchHandlerFunc {
	return func(ctx context.Context, ms []*reprise.Message) []error {
		errs := make([]error, len(ms))
		stopped := make(map[string]bool)
		for i, m := range ms {
			if !stopped[m.GroupID] {
				errs[i] = h(reprise.MessageContext(ctx, m), m)
				stopped[m.GroupID] = m.GroupID != "" && errs[i] != nil
			}
		}
		return errs
	}
}

// inModes runs a test in a bubble for each of the modes.
func inModes(t *testing.T, modes []mode, test func(t *testing.T, in mode)) {
	for _, in := range modes {
		t.Run(in.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, in) })
		})
	}
}

// newMapping maps q to a function that runs h for each message.
func newMapping(t *testing.T, q *reprisetest.Queue, h reprise.HandlerFunc, cfg repriselambda.Config) *mapping {
	t.Helper()
	return messages.newMapping(t, q, h, cfg)
}

// newBatchMapping maps q to a function that runs h for batches.
func newBatchMapping(t *testing.T, q *reprisetest.Queue, h reprise.BatchHandlerFunc, cfg repriselambda.BatchConfig) *mapping {
	t.Helper()
	in := mode{make: func(_ reprise.HandlerFunc, common repriselambda.Config) (function, error) {
		cfg.Config = common
		return repriselambda.SQSBatch(h, cfg)
	}}
	return in.newMapping(t, q, nil, cfg.Config)
}

// newMapping maps q to a function. The client of cfg defaults to the real one.
func (in mode) newMapping(t *testing.T, q *reprisetest.Queue, h reprise.HandlerFunc, cfg repriselambda.Config) *mapping {
	t.Helper()
	if cfg.Client == nil {
		cfg.Client = q.Client()
	}
	client := &metered{Client: cfg.Client, t: t}
	cfg.Client = client
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	f, err := in.make(h, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &mapping{t, q, client, f}
}

// event receives up to n messages, as Lambda's pollers do, and makes an event of
// them.
func (m *mapping) event(n int) repriselambda.Event {
	m.t.Helper()
	ctx := sqsserver.WithoutFaults(context.Background())
	event := repriselambda.Event{Records: []repriselambda.Record{}} // an empty list, if the queue has nothing
	for len(event.Records) < n {
		url := m.queue.URL()
		out, err := m.queue.Direct().ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl:                    &url,
			MaxNumberOfMessages:         int32(min(10, n-len(event.Records))),
			VisibilityTimeout:           int32(visibility / time.Second),
			MessageAttributeNames:       []string{"All"},
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		})
		if err != nil {
			m.t.Fatal(err)
		}
		if len(out.Messages) == 0 {
			break
		}
		for _, received := range out.Messages {
			event.Records = append(event.Records, recordOf(received, m.queue.ARN()))
		}
	}
	text, err := json.Marshal(event)
	if err != nil {
		m.t.Fatal(err)
	}
	var read repriselambda.Event
	if err := json.Unmarshal(text, &read); err != nil {
		m.t.Fatal(err)
	}
	return read
}

func recordOf(received types.Message, arn string) repriselambda.Record {
	r := repriselambda.Record{
		MessageID:      *received.MessageId,
		ReceiptHandle:  *received.ReceiptHandle,
		Body:           *received.Body,
		Attributes:     received.Attributes,
		MD5OfBody:      *received.MD5OfBody,
		EventSourceARN: arn,
	}
	if received.MD5OfMessageAttributes != nil {
		r.MD5OfMessageAttributes = *received.MD5OfMessageAttributes
	}
	for name, a := range received.MessageAttributes {
		if r.MessageAttributes == nil {
			r.MessageAttributes = make(map[string]repriselambda.Attribute)
		}
		r.MessageAttributes[name] = repriselambda.Attribute{DataType: *a.DataType, StringValue: a.StringValue, BinaryValue: a.BinaryValue}
	}
	return r
}

// invoke receives up to ten messages and invokes the function with them. It returns
// the bodies of those that failed, in their order; nil if there was nothing to
// receive.
func (m *mapping) invoke() []string {
	m.t.Helper()
	event := m.event(10)
	if len(event.Records) == 0 {
		return nil
	}
	return m.invokeWith(event)
}

// invokeWith invokes the function with an event and deletes what it did not name.
func (m *mapping) invokeWith(event repriselambda.Event) []string {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), functionTimeout)
	defer cancel()
	response, err := m.function(ctx, event)
	if err != nil {
		m.t.Fatalf("the function failed: %v", err)
	}
	if ctx.Err() != nil {
		m.t.Fatal("the function's time was over before it replied")
	}
	text, err := json.Marshal(response)
	if err != nil {
		m.t.Fatal(err)
	}
	failed := failures(m.t, event, text)
	bodies := []string{}
	for _, r := range event.Records {
		if slices.Contains(failed, r.MessageID) {
			bodies = append(bodies, r.Body)
			continue
		}
		m.deleteRecord(r)
	}
	return bodies
}

// deleteRecord deletes a message, as Lambda does.
func (m *mapping) deleteRecord(r repriselambda.Record) {
	m.t.Helper()
	url := m.queue.URL()
	out, err := m.queue.Direct().DeleteMessageBatch(sqsserver.WithoutFaults(context.Background()), &sqs.DeleteMessageBatchInput{
		QueueUrl: &url, Entries: []types.DeleteMessageBatchRequestEntry{{Id: &r.MessageID, ReceiptHandle: &r.ReceiptHandle}},
	})
	if err != nil || len(out.Failed) > 0 {
		m.t.Fatalf("deleting %s: %v, %v", r.Body, out, err)
	}
}

// failures reads a reply by the rules of partial batches: what Lambda would take for
// the failure of the whole batch fails the test.
func failures(tb testing.TB, event repriselambda.Event, reply []byte) []string {
	tb.Helper()
	var members map[string][]map[string]*string
	if err := json.Unmarshal(reply, &members); err != nil {
		tb.Fatalf("the reply %s is not of the form that Lambda reads: %v", reply, err)
	}
	items, ok := members["batchItemFailures"]
	if !ok || items == nil || len(members) != 1 {
		tb.Fatalf("the reply %s has not batchItemFailures, and nothing else", reply)
	}
	ids := []string{}
	for _, item := range items {
		id := item["itemIdentifier"]
		switch {
		case id == nil || *id == "" || len(item) != 1:
			tb.Fatalf("the reply %s names a failure without an itemIdentifier", reply)
		case !slices.ContainsFunc(event.Records, func(r repriselambda.Record) bool { return r.MessageID == *id }):
			tb.Fatalf("the reply %s names %s, which is not in the batch", reply, *id)
		case slices.Contains(ids, *id):
			tb.Fatalf("the reply %s names %s twice", reply, *id)
		}
		ids = append(ids, *id)
	}
	return ids
}

// calls are what a function has asked of SQS.
type calls struct{ Visibilities, Hidden, Sends, Attributes int }

// metered counts the calls of a client. Those that are Lambda's business fail the
// test.
type metered struct {
	reprise.Client
	t *testing.T

	mu   sync.Mutex
	made calls
}

func (c *metered) count(f func(*calls)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.made)
}

func (c *metered) calls() calls {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made
}

func (c *metered) ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	c.t.Error("the function has received messages itself")
	return &sqs.ReceiveMessageOutput{}, nil
}

func (c *metered) DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	c.t.Error("the function has deleted messages itself")
	return &sqs.DeleteMessageBatchOutput{}, nil
}

func (c *metered) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, o ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	c.count(func(made *calls) { made.Visibilities++; made.Hidden += len(in.Entries) })
	return c.Client.ChangeMessageVisibilityBatch(ctx, in, o...)
}

func (c *metered) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, o ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	c.count(func(made *calls) { made.Sends++ })
	return c.Client.SendMessageBatch(ctx, in, o...)
}

func (c *metered) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, o ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	c.count(func(made *calls) { made.Attributes++ })
	return c.Client.GetQueueAttributes(ctx, in, o...)
}
