package operating

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestJSON: a body that decodes reaches the function; one that does not is a permanent error with
// the reason.
func TestJSON(t *testing.T) {
	type order struct {
		ID    string `json:"id"`
		Items int    `json:"items"`
	}
	var got order
	h := reprise.JSON(func(_ context.Context, o order) error {
		got = o
		return nil
	})
	if err := h.Handle(t.Context(), &reprise.Message{Body: `{"id":"ø-1","items":3}`}); err != nil || got != (order{"ø-1", 3}) {
		t.Errorf("got %+v, %v", got, err)
	}
	err := h.Handle(t.Context(), &reprise.Message{Body: `{"id":7}`})
	if err == nil || !strings.Contains(err.Error(), "decoding the body as") {
		t.Fatalf("error %v", err)
	}
	d := retry.Policy{}.Decide(retry.Failure{N: 1, Err: err})
	if d.Action != retry.ActionDeadLetter || d.Reason != retry.ReasonPermanent {
		t.Errorf("decision %+v, want a dead letter", d)
	}
}

// reasonOf returns the reason for which a policy gives up or retries after err.
func reasonOf(err error) retry.Reason {
	return retry.Policy{}.Decide(retry.Failure{N: 1, Err: err}).Reason
}

// TestJSONMessage: the function gets the value and its message, and the context of that message,
// whatever middleware surrounds the handler.
func TestJSONMessage(t *testing.T) {
	sent := &reprise.Message{ID: "m-1", GroupID: "red", Attempt: 3, Body: `"ship"`}
	opened := *sent // as middleware would, that opens an envelope
	opened.Body = `"it"`
	inner := reprise.JSONMessage(func(ctx context.Context, v string, m *reprise.Message) error {
		if v != "it" || m != &opened || reprise.MessageFrom(ctx) != &opened {
			t.Errorf("got %q of %p, from the context %p: want the opened one, %p", v, m, reprise.MessageFrom(ctx), &opened)
		}
		return kit.ErrUnavailable
	})
	outer := reprise.JSON(func(ctx context.Context, v string) error {
		if m := reprise.MessageFrom(ctx); v != "ship" || m != sent {
			t.Errorf("got %q, from the context %+v, want what was sent", v, m)
		}
		return inner.Handle(ctx, &opened)
	})
	if err := outer.Handle(t.Context(), sent); !errors.Is(err, kit.ErrUnavailable) {
		t.Errorf("returned %v", err)
	}
	if err := inner.Handle(t.Context(), &reprise.Message{Body: "no JSON"}); reasonOf(err) != retry.ReasonPermanent {
		t.Errorf("what does not decode: %v", err)
	}
	if m := reprise.MessageFrom(t.Context()); m != nil {
		t.Errorf("outside of a handler there is a message: %+v", m)
	}
}

// TestMessageFromAHandlersContext: the context of a handler, and contexts derived from it, give the
// very message of the handler, with its attempt, also when an observer has replaced the context.
func TestMessageFromAHandlersContext(t *testing.T) {
	type key struct{}
	for name, cfg := range map[string]reprise.Config{
		"plain":   {},
		"timeout": {HandlerTimeout: time.Minute},
		"observer": {Observer: reprise.Observer{Starting: func(ctx context.Context, m *reprise.Message) (context.Context, string) {
			return context.WithValue(ctx, key{}, m.ID), ""
		}}},
	} {
		cfg.Retry = retry.Policy{Backoff: retry.Constant(time.Second)}
		check := func(t *testing.T, ctx context.Context, m *reprise.Message) error {
			derived, cancel := context.WithTimeout(ctx, time.Hour)
			defer cancel()
			if reprise.MessageFrom(ctx) != m || reprise.MessageFrom(derived) != m {
				t.Errorf("attempt %d: the message of the context is %p, want %p", m.Attempt, reprise.MessageFrom(ctx), m)
			}
			if m.Attempt == 1 {
				return kit.ErrUnavailable
			}
			return nil
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				q.Consume(reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error { return check(t, ctx, m) }), cfg)
				q.Send(kit.Numbered(20)...)
				q.WaitEmpty(time.Minute)
			})
		})
		t.Run(name+", in batches", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				q.ConsumeBatch(reprise.BatchHandlerFunc(func(ctx context.Context, ms []*reprise.Message) []error {
					if m := reprise.MessageFrom(ctx); m != nil {
						t.Errorf("the batch's context is of %s", m.ID)
					}
					errs := make([]error, len(ms))
					for i, m := range ms {
						errs[i] = check(t, reprise.MessageContext(ctx, m), m)
					}
					return errs
				}), reprise.BatchConfig{Config: cfg})
				q.Send(kit.Numbered(20)...)
				q.WaitEmpty(time.Minute)
			})
		})
	}
}

// TestJSONBatch: the function gets values with their messages, and its verdicts go to the right
// messages although some did not decode.
func TestJSONBatch(t *testing.T) {
	batch := func(bodies ...string) (ms []*reprise.Message) {
		for i, body := range bodies {
			ms = append(ms, &reprise.Message{ID: fmt.Sprint(i), Body: body})
		}
		return ms
	}
	later := reprise.RetryAfter(time.Minute, kit.ErrUnavailable)
	for name, tt := range map[string]struct {
		bodies  []string
		errs    []error
		got     string
		reasons []retry.Reason // 0: succeeds
	}{
		"all succeed":        {[]string{"1", "2"}, nil, "0=1 1=2", []retry.Reason{}},
		"one fails":          {[]string{"1", "2"}, []error{nil, later}, "0=1 1=2", []retry.Reason{0, retry.ReasonRetryAfter}},
		"one does not parse": {[]string{"1", "x", "3"}, nil, "0=1 2=3", []retry.Reason{0, retry.ReasonPermanent, 0}},
		"both":               {[]string{"x", "1", "x", "3"}, []error{later, nil}, "1=1 3=3", []retry.Reason{retry.ReasonPermanent, retry.ReasonRetryAfter, retry.ReasonPermanent, 0}},
		"none parses":        {[]string{"x", "y"}, nil, "", []retry.Reason{retry.ReasonPermanent, retry.ReasonPermanent}},
		"too few verdicts":   {[]string{"1", "x", "3"}, []error{later}, "0=1 2=3", []retry.Reason{retry.ReasonPolicy, retry.ReasonPermanent, retry.ReasonPolicy}},
		"too many verdicts":  {[]string{"1", "x", "3"}, []error{nil, nil, nil}, "0=1 2=3", []retry.Reason{retry.ReasonPolicy, retry.ReasonPermanent, retry.ReasonPolicy}},
		"no verdicts":        {[]string{"1"}, []error{}, "0=1", []retry.Reason{retry.ReasonPolicy}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			h := reprise.JSONBatch(func(_ context.Context, vs []int, ms []*reprise.Message) []error {
				for i, m := range ms {
					got = append(got, fmt.Sprintf("%s=%d", m.ID, vs[i]))
				}
				return tt.errs
			})
			reasons := []retry.Reason{}
			for _, err := range h.HandleBatch(t.Context(), batch(tt.bodies...)) {
				reason := retry.Reason(0)
				if err != nil {
					reason = reasonOf(err)
				}
				reasons = append(reasons, reason)
			}
			if all := strings.Join(got, " "); all != tt.got {
				t.Errorf("the function got %q, want %q", all, tt.got)
			}
			if diff := cmp.Diff(tt.reasons, reasons); diff != "" {
				t.Errorf("verdicts (-want +got):\n%s", diff)
			}
		})
	}
}

// TestJSONBatchStopsAGroup: messages of a FIFO group behind one that does not decode are not
// processed before that one is dead-lettered. The messages of a tenant of a fair queue have no
// order to keep.
func TestJSONBatchStopsAGroup(t *testing.T) {
	for _, fifo := range []bool{true, false} {
		t.Run(fmt.Sprintf("FIFO %v", fifo), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var attributes map[string]string
				if fifo {
					attributes = kit.FIFOQueue
				}
				q := reprisetest.NewQueue(t, attributes)
				dead := q.NewDeadLetterQueue(50)
				for i, body := range []string{`"a1"`, `"b1"`, `a2`, `"a3"`, `"b2"`, `"a4"`} {
					m := sqsserver.SendMessageEntry{MessageBody: body, MessageGroupId: strings.Trim(body, `"`)[:1]}
					if fifo {
						m.MessageDeduplicationId = fmt.Sprint(i)
					}
					q.SendMessage(m)
				}
				var runs []string
				q.ConsumeBatch(reprise.JSONBatch(func(_ context.Context, vs []string, ms []*reprise.Message) []error {
					for i, m := range ms {
						if !fifo && m.Attempt != 1 {
							t.Errorf("%s is attempted for the %d. time, want one attempt: a2 is no fault of its", vs[i], m.Attempt)
						}
					}
					if letters := len(dead.Messages()); fifo && letters == 0 && strings.Contains(fmt.Sprint(vs), "a3") {
						t.Errorf("%v runs before a2 is dead-lettered", vs)
					}
					runs = append(runs, vs...)
					return nil
				}), reprise.BatchConfig{})
				q.WaitEmpty(time.Minute)
				if letters := dead.Messages(); len(letters) != 1 || letters[0].Body != "a2" {
					t.Errorf("dead letters %+v, want a2", letters)
				}
				if len(runs) != 5 {
					t.Errorf("run as %v, want each of five once", runs)
				}
			})
		})
	}
}
