package repriselambda_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/middleware"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestRefusedEntryIsHiddenAlone: of a batch of visibility changes SQS refuses two.
func TestRefusedEntryIsHiddenAlone(t *testing.T) {
	inModes(t, modes, func(t *testing.T, in mode) {
		q := reprisetest.NewQueue(t, nil)
		q.Send("fail 1", "fail 2", "fail 3", "ok")
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Action: "ChangeMessageVisibilityBatch", Limit: 2})
		m := in.newMapping(t, q, does, repriselambda.Config{Retry: every40})
		if diff := cmp.Diff([]string{"fail 1", "fail 2", "fail 3"}, m.invoke()); diff != "" {
			t.Errorf("failed (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]time.Duration{"fail 1": 40 * time.Second, "fail 2": 40 * time.Second, "fail 3": 40 * time.Second}, waits(q, time.Now())); diff != "" {
			t.Errorf("hidden for (-want +got):\n%s", diff)
		}
		if got := m.client.calls(); got.Hidden != 5 {
			t.Errorf("%d entries were sent, want 3 and the 2 refused again: %+v", got.Hidden, got)
		}
	})
}

// TestRefusedDeadLetterComesAgain: what is given up and taken by nobody is not
// deleted.
func TestRefusedDeadLetterComesAgain(t *testing.T) {
	inModes(t, modes, func(t *testing.T, in mode) {
		q := reprisetest.NewQueue(t, nil)
		q.Send("permanent", "ok")
		m := in.newMapping(t, q, does, repriselambda.Config{DeadLetterURL: "https://sqs.us-east-1.amazonaws.com/000000000000/absent"})
		if diff := cmp.Diff([]string{"permanent"}, m.invoke()); diff != "" {
			t.Errorf("failed (-want +got):\n%s", diff)
		}
		if wait := waits(q, time.Now())["permanent"]; wait < 11*time.Hour+59*time.Minute {
			t.Errorf("hidden for %v, want 12 h", wait)
		}
	})
}

// TestDeadLettersThatCannotBeSentInTime are not deleted either.
func TestDeadLettersThatCannotBeSentInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(10)
		dead.Fault(sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "SendMessageBatch"})
		q.Send("permanent", "ok")
		m := newMapping(t, q, does, repriselambda.Config{})
		began := time.Now()
		if diff := cmp.Diff([]string{"permanent"}, m.invoke()); diff != "" {
			t.Errorf("failed (-want +got):\n%s", diff)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("the function spent %v on it", took)
		}
		dead.Fault()
		time.Sleep(visibility)
		if diff := cmp.Diff([]string{}, m.invoke()); diff != "" || len(dead.Messages()) != 1 {
			t.Errorf("failed the second time (-want +got):\n%s, %d dead letters", diff, len(dead.Messages()))
		}
	})
}

// TestMalformedEvents run nothing and fail as a whole, with an error that says what
// is wrong: then all of their messages come again.
func TestMalformedEvents(t *testing.T) {
	const good = `{"messageId":"1","receiptHandle":"h","body":"ok","eventSourceARN":"arn:aws:sqs:us-east-1:000000000000:q"}`
	for name, c := range map[string]struct{ records, want string }{
		"no id":          {good + `,{"receiptHandle":"h","body":"ok"}`, "record 1 has no messageId"},
		"a null id":      {`{"messageId":null,"receiptHandle":"h"}`, "record 0 has no messageId"},
		"no handle":      {`{"messageId":"7","body":"ok"}`, "message 7, has no receiptHandle"},
		"no source":      {`{"messageId":"1","receiptHandle":"h"}`, `eventSourceARN ""`},
		"another source": {`{"messageId":"1","receiptHandle":"h","eventSourceARN":"arn:aws:kinesis:us-east-1:000000000000:stream/s"}`, "not the ARN of a queue"},
		"two sources":    {good + `,{"messageId":"2","receiptHandle":"i","eventSourceARN":"arn:aws:sqs:us-east-1:000000000000:p"}`, "the messages of one queue"},
	} {
		t.Run(name, func(t *testing.T) {
			q := reprisetest.NewQueue(t, nil)
			m := newMapping(t, q, func(context.Context, *reprise.Message) error {
				t.Error("a handler ran")
				return nil
			}, repriselambda.Config{})
			var event repriselambda.Event
			if err := json.Unmarshal([]byte(`{"Records":[`+c.records+`]}`), &event); err != nil {
				t.Fatal(err)
			}
			_, err := m.function(context.Background(), event)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v, want one that says %s", err, c.want)
			}
			if diff := cmp.Diff(calls{}, m.client.calls()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// crowded is a client of a queue that had its quota of messages in flight when its
// attributes were read.
type crowded struct{ reprise.Client }

func (c crowded) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, o ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	out, err := c.Client.GetQueueAttributes(ctx, in, o...)
	if err == nil {
		out.Attributes["ApproximateNumberOfMessagesNotVisible"] = "120000"
	}
	return out, err
}

// TestCountsOfTheColdStartDoNotMatter: for hours what fails would be sent as copies,
// because there once was a crowd.
func TestCountsOfTheColdStartDoNotMatter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Send("fail")
		m := newMapping(t, q, does, repriselambda.Config{Client: crowded{q.Client()}, Retry: every40})
		if diff := cmp.Diff([]string{"fail"}, m.invoke()); diff != "" {
			t.Errorf("failed (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(calls{Attributes: 1, Visibilities: 1, Hidden: 1}, m.client.calls()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// TestOutageHoldsNothing: when all fails for want of something, all is hidden by its
// policy, and the invocation ends.
func TestOutageHoldsNothing(t *testing.T) {
	inModes(t, modes, func(t *testing.T, in mode) {
		q := reprisetest.NewQueue(t, nil)
		for range 50 {
			q.Send("down")
		}
		m := in.newMapping(t, q, func(context.Context, *reprise.Message) error { return context.DeadlineExceeded }, repriselambda.Config{Retry: every40})
		began := time.Now()
		if failed := m.invokeWith(m.event(50)); len(failed) != 50 || time.Since(began) > time.Second {
			t.Errorf("%d messages failed in %v, want 50 at once", len(failed), time.Since(began))
		}
		if diff := cmp.Diff(map[string]time.Duration{"down": 40 * time.Second}, waits(q, time.Now())); diff != "" {
			t.Errorf("hidden for (-want +got):\n%s", diff)
		}
	})
}

// TestDoubtfulRecords: messages that share a receipt handle are not taken for each
// other, and one that is there twice runs once and is named once.
func TestDoubtfulRecords(t *testing.T) {
	inModes(t, modes, func(t *testing.T, in mode) {
		q := reprisetest.NewQueue(t, nil)
		ran := 0
		m := in.newMapping(t, q, func(ctx context.Context, m *reprise.Message) error {
			ran++
			return does(ctx, m)
		}, repriselambda.Config{Client: agreeable{}, Concurrency: 1})
		record := func(id, body string) repriselambda.Record {
			return repriselambda.Record{MessageID: id, ReceiptHandle: "the same", Body: body, EventSourceARN: q.ARN()}
		}
		response, err := m.function(context.Background(), repriselambda.Event{Records: []repriselambda.Record{record("1", "fail"), record("2", "ok"), record("1", "fail")}})
		want := repriselambda.Response{BatchItemFailures: []repriselambda.BatchItemFailure{{ItemIdentifier: "1"}}}
		if diff := cmp.Diff(want, response); diff != "" || err != nil || ran != 2 {
			t.Errorf("replied (-want +got):\n%s, %v; %d handlers ran, want 2", diff, err, ran)
		}
	})
}

// onceModes are those in which idempotency wraps the handler. Each has a store of its
// own.
func onceModes() []mode {
	store := func() idempotency.Store { return idempotency.NewMemory(idempotency.MemoryConfig{}) }
	return []mode{
		{"messages", func(h reprise.HandlerFunc, cfg repriselambda.Config) (function, error) {
			return repriselambda.SQS(middleware.Must(idempotency.New(store(), idempotency.Config{}))(h), cfg)
		}},
		{"batches", func(h reprise.HandlerFunc, cfg repriselambda.Config) (function, error) {
			once, err := idempotency.NewBatch(store(), idempotency.Config{})
			if err != nil {
				return nil, err
			}
			return repriselambda.SQSBatch(once(inTurn(h)), repriselambda.BatchConfig{Config: cfg})
		}},
	}
}

// TestLostReply: the messages of a function whose reply does not arrive come again, and
// idempotency keeps their effects from being there twice.
func TestLostReply(t *testing.T) {
	inModes(t, onceModes(), func(t *testing.T, in mode) {
		q := reprisetest.NewQueue(t, nil)
		q.Send("ok 1", "fail", "ok 2")
		var effects []string
		m := in.newMapping(t, q, func(ctx context.Context, m *reprise.Message) error {
			effects = append(effects, m.Body)
			return does(ctx, m)
		}, repriselambda.Config{Concurrency: 1, Retry: every40})
		response, err := m.function(context.Background(), m.event(10))
		if err != nil || len(response.BatchItemFailures) != 1 || len(q.Messages()) != 3 {
			t.Fatalf("replied %+v, %v", response, err)
		}
		time.Sleep(visibility)
		if diff := cmp.Diff([]string{"fail"}, m.invoke()); diff != "" {
			t.Errorf("failed (-want +got):\n%s", diff)
		}
		slices.Sort(effects)
		if diff := cmp.Diff([]string{"fail", "fail", "ok 1", "ok 2"}, effects); diff != "" || len(q.Messages()) != 1 {
			t.Errorf("effects (-want +got):\n%s; %d messages left, want the one that fails", diff, len(q.Messages()))
		}
	})
}

// TestDeliveredTwiceAtOnce: of two invocations with the same messages one works on them,
// and the other finds them in progress.
func TestDeliveredTwiceAtOnce(t *testing.T) {
	inModes(t, onceModes(), func(t *testing.T, in mode) {
		q := reprisetest.NewQueue(t, nil)
		q.Send("ok 1", "ok 2")
		var effects atomic.Int32
		m := in.newMapping(t, q, func(context.Context, *reprise.Message) error {
			effects.Add(1)
			time.Sleep(time.Second)
			return nil
		}, repriselambda.Config{})
		event := m.event(10)
		failed := make(chan int)
		for wait := range 2 {
			go func() {
				time.Sleep(time.Duration(wait) * time.Millisecond)
				response, err := m.function(context.Background(), event)
				if err != nil {
					t.Error(err)
				}
				failed <- len(response.BatchItemFailures)
			}()
		}
		if second, first := <-failed, <-failed; first != 0 || second != 2 || effects.Load() != 2 {
			t.Errorf("%d and %d messages failed, and there were %d effects; want none, 2 and 2", first, second, effects.Load())
		}
	})
}

// TestContextOfTheInvocation reaches the handlers.
func TestContextOfTheInvocation(t *testing.T) {
	inModes(t, modes, func(t *testing.T, in mode) {
		type key struct{}
		q := reprisetest.NewQueue(t, nil)
		q.Send("ok")
		var got any
		m := in.newMapping(t, q, func(ctx context.Context, _ *reprise.Message) error {
			got = ctx.Value(key{})
			return nil
		}, repriselambda.Config{})
		if _, err := m.function(context.WithValue(context.Background(), key{}, "request 7"), m.event(10)); err != nil {
			t.Fatal(err)
		}
		if got != "request 7" {
			t.Errorf("the handler's context has %v", got)
		}
	})
}

// TestEventsWithoutRecords are errors that say what came, without any of its values, and what was
// expected; an empty list of Records is a success without a call. The events come as Lambda's
// runtime passes them on.
func TestEventsWithoutRecords(t *testing.T) {
	q := reprisetest.NewQueue(t, nil)
	m := newMapping(t, q, does, repriselambda.Config{})
	retries, err := repriselambda.RetryHandler(repriselambda.RetryConfig{Client: m.client, Lambda: (&service{t: t}).client()})
	if err != nil {
		t.Fatal(err)
	}
	const none = `the event has no Records: invoke the function by an SQS event source mapping, or test it with {"Records":[...]}`
	long := strings.Repeat("k", 100)
	for _, test := range []struct {
		event string
		want  []string // of the error; nil: none
	}{
		{`{"Records":[]}`, nil},
		{`{"records":[]}`, nil}, // the JSON of Go's standard library
		{`{"Records":null}`, []string{none, `this one is an object with "Records"`}},
		{`{"foo":"hunter2"}`, []string{none, `this one is an object with "foo"`}},
		{`{"key1":"hunter2","key3":"hunter2","key2":"hunter2"}`, []string{none, `"key1", "key2", "key3"`}}, // the console's hello-world
		{`{"source":"aws.events","detail-type":"Scheduled Event","detail":{"password":"hunter2"}}`, []string{none, `"detail", "detail-type", "source"`}},
		{`{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1}`, []string{none, `"g", "h" and 2 more`}},
		{`{"` + long + `":1}`, []string{none, `"` + long[:40] + `..."`}},
		{`{"a\nb":1}`, []string{none, `"a\nb"`}},
		{`{}`, []string{none, "an object without members"}},
		{` null `, []string{none, "null"}},
		{`[{"Records":[]}]`, []string{none, "a list"}},
		{`"hunter2"`, []string{none, "a string"}},
		{`31337`, []string{none, "a number"}},
		{`true`, []string{none, "true or false"}},
		{`{"Records":"hunter2"}`, []string{"reading the event of an SQS event source mapping", "Records"}},
	} {
		for name, function := range map[string]func(context.Context, repriselambda.Event) (repriselambda.Response, error){"SQS": m.function, "RetryHandler": retries} {
			text, err := invokeJSON(function, test.event)
			if test.want == nil {
				if err != nil || text != `{"batchItemFailures":[]}` {
					t.Errorf("%s: %s: %s, %v", name, test.event, text, err)
				}
				continue
			}
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %s: error %v does not say %q", name, test.event, err, want)
				}
			}
			if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "31337") || len(err.Error()) > 600) {
				t.Errorf("%s: %s: error %v shows values", name, test.event, err)
			}
		}
	}
	if _, err := m.function(context.Background(), repriselambda.Event{}); err == nil || !strings.Contains(err.Error(), "the event has no Records") {
		t.Errorf("an Event that a program made: error %v", err)
	}
	if got := m.client.calls(); got != (calls{}) {
		t.Errorf("calls %+v", got)
	}
}

// invokeJSON is what Lambda's runtime does with a function.
func invokeJSON(function func(context.Context, repriselambda.Event) (repriselambda.Response, error), text string) (string, error) {
	var event repriselambda.Event
	if err := json.Unmarshal([]byte(text), &event); err != nil {
		return "", err
	}
	response, err := function(context.Background(), event)
	if err != nil {
		return "", err
	}
	reply, err := json.Marshal(response)
	return string(reply), err
}

// unreadable is a client without sqs:GetQueueAttributes.
type unreadable struct{ reprise.Client }

func (unreadable) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return nil, &smithy.GenericAPIError{Code: "AccessDenied", Message: "not permitted"}
}

// TestWithoutPermissionToReadAttributes the function works by the policy alone, asks
// once, and says so once.
func TestWithoutPermissionToReadAttributes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewQueue(nil)
		var log bytes.Buffer
		var findings []string
		m := newMapping(t, q, does, repriselambda.Config{
			Client:        unreadable{q.Client()},
			Retry:         every40,
			DeadLetterURL: dead.URL(),
			Logger:        slog.New(slog.NewTextHandler(&log, nil)),
			Observer:      reprise.Observer{Finding: func(_ context.Context, f plan.Finding) { findings = append(findings, f.Code) }},
		})
		for range 3 {
			q.Send("fail", "permanent", "ok")
			if diff := cmp.Diff([]string{"fail"}, m.invoke()); diff != "" {
				t.Errorf("failed (-want +got):\n%s", diff)
			}
		}
		if n := len(dead.Messages()); n != 3 {
			t.Errorf("%d dead letters, want 3", n)
		}
		if diff := cmp.Diff(calls{Attributes: 1, Visibilities: 3, Hidden: 3, Sends: 3}, m.client.calls()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"attributes-unreadable"}, findings); diff != "" {
			t.Errorf("findings (-want +got):\n%s", diff)
		}
		if lines := strings.Count(log.String(), "permit sqs:GetQueueAttributes"); lines != 1 {
			t.Errorf("logged:\n%s", &log)
		}
	})
}

// TestAttributesAreReadLater if SQS is busy at first.
func TestAttributesAreReadLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(10)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "GetQueueAttributes", Limit: 3}) // the SDK's attempts
		m := newMapping(t, q, does, repriselambda.Config{})
		q.Send("ok")
		m.invoke()
		q.Send("permanent")
		if diff := cmp.Diff([]string{}, m.invoke()); diff != "" || len(dead.Messages()) != 1 {
			t.Errorf("failed (-want +got):\n%s, %d dead letters", diff, len(dead.Messages()))
		}
		if got := m.client.calls().Attributes; got != 3 {
			t.Errorf("attributes were asked for %d times, want once in vain and once for each queue", got)
		}
	})
}

// TestAttributesAreReadAgain: about every ten minutes, since an operator may change the queue; what was
// read before holds while SQS does not answer.
func TestAttributesAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		m := newMapping(t, q, does, repriselambda.Config{})
		invoke := func(body string) {
			q.Send(body)
			m.invoke()
		}
		invoke("ok")
		dead := q.NewDeadLetterQueue(10)
		invoke("ok")
		if got := m.client.calls().Attributes; got != 1 {
			t.Errorf("attributes were asked for %d times at first, want once", got)
		}
		time.Sleep(11 * time.Minute)
		invoke("permanent")
		if len(dead.Messages()) != 1 {
			t.Errorf("%d dead letters, want one: the queue has a dead-letter queue by now", len(dead.Messages()))
		}
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "GetQueueAttributes"})
		time.Sleep(11 * time.Minute)
		invoke("permanent")
		if len(dead.Messages()) != 2 {
			t.Errorf("%d dead letters, want two: what was read before still holds", len(dead.Messages()))
		}
	})
}

// TestBadConfig is refused at the cold start, all of it in one error.
func TestBadConfig(t *testing.T) {
	bad := repriselambda.Config{Concurrency: -1, DeadLetterURL: "arn:aws:sqs:us-east-1:000000000000:dead"}
	_, err := repriselambda.SQS(nil, bad)
	_, batchErr := repriselambda.SQSBatch(nil, repriselambda.BatchConfig{Size: -1, Config: bad})
	bad = repriselambda.Config{Client: agreeable{}, Concurrency: 11}
	_, manyErr := repriselambda.SQSBatch(inTurn(does), repriselambda.BatchConfig{Config: bad})
	for _, c := range []struct {
		err   error
		parts []string
	}{
		{err, []string{"repriselambda.SQS:", "client is nil", "handler is nil", "Config.Concurrency is -1", "Config.DeadLetterURL"}},
		{batchErr, []string{"repriselambda.SQSBatch:", "client is nil", "handler is nil", "Config.Concurrency is -1", "Config.DeadLetterURL", "BatchConfig.Size is -1"}},
		{manyErr, []string{"Config.Concurrency is 11 and BatchConfig.Size 10000: lower one"}},
	} {
		for _, part := range c.parts {
			if c.err == nil || !strings.Contains(c.err.Error(), part) {
				t.Errorf("the error %v does not say %q", c.err, part)
			}
		}
	}
}

// TestObserverThatPanics at each event keeps no invocation waiting for decisions that were made.
func TestObserverThatPanics(t *testing.T) {
	inModes(t, modes, func(t *testing.T, in mode) {
		q := reprisetest.NewQueue(t, nil)
		m := in.newMapping(t, q, does, repriselambda.Config{Retry: every40, Observer: reprise.Observer{
			Attempt: func(context.Context, reprise.Attempt) { panic("attempt") },
			Settled: func(context.Context, reprise.Settled) { panic("settled") },
		}})
		q.Send("ok 1", "fail 2")
		began := time.Now()
		if failed := m.invoke(); len(failed) != 1 || failed[0] != "fail 2" {
			t.Errorf("failed: %v", failed)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the invocation took %v", took)
		}
	})
}

// TestHeldByTheMapping: while the function is throttled Lambda keeps a batch and tries again, for as long as
// the queue's visibility timeout, and SQS counts its 12 hours from the receive. A message is hidden for nearly as
// long as that permits all the same, and the others of its batch for as long as they are to wait.
func TestHeldByTheMapping(t *testing.T) {
	for _, timeout := range []string{"360", "43200", "denied"} {
		inModes(t, modes, func(t *testing.T, in mode) {
			q := reprisetest.NewQueue(t, map[string]string{"VisibilityTimeout": "360"})
			cfg := repriselambda.Config{Retry: every40}
			least := 12*time.Hour - visibility
			switch timeout {
			case "denied":
				least = 12*time.Hour - 90*time.Minute
				cfg.Client, cfg.Via = unreadable{q.Client()}, reprise.ViaVisibility
			case "43200": // so long a timeout leaves nothing of the 12 hours
				least = 6 * time.Hour
				q.SetAttributes(map[string]string{"VisibilityTimeout": timeout})
			}
			m := in.newMapping(t, q, func(_ context.Context, m *reprise.Message) error {
				wait, _ := time.ParseDuration(m.Body)
				return reprise.RetryAfter(wait, errors.New("as told"))
			}, cfg)
			q.Send("12h", "1h")
			m.event(10)
			time.Sleep(visibility + time.Second)
			event := m.event(10)
			time.Sleep(visibility - 10*time.Second) // since then the function is throttled
			began := time.Now()
			m.invokeWith(event)
			if got := waits(q, began); got["1h"] != time.Hour || got["12h"] < least {
				t.Errorf("hidden for %v, want 1h, and %v or more", got, least)
			}
		})
	}
}
