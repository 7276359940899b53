package emulator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/sqsserver"
)

const (
	testQueue = "arn:aws:sqs:us-east-1:000000000000:failed"
	testDead  = "arn:aws:sqs:us-east-1:000000000000:dead"
)

// world is a Lambda whose functions are this test's, and what comes out of it.
type world struct {
	*Lambda
	mu       sync.Mutex
	start    time.Time
	invokes  []time.Duration // since start
	sent     []sent
	troubles []string
	said     []string // what is no trouble
}

type sent struct {
	at         time.Duration
	queue      string
	body       string
	attributes []sqsserver.MessageAttribute
}

// newWorld returns a world with the function f, whose n-th invoke is answered by
// function, and a queue whose n-th message is answered by send.
func newWorld(t *testing.T, f Function, scale float64, function func(n int) (Result, error), send func(n int) error) *world {
	t.Helper()
	f.Name, f.Command, f.Dir = "f", []string{"none"}, "."
	w := &world{start: time.Now()}
	other := Function{Name: "g", Command: []string{"none"}, Dir: "."}
	l, err := New(Config{
		Functions: []Function{f, other}, TimeScale: scale,
		Send: func(_ context.Context, queue, body string, attributes []sqsserver.MessageAttribute) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.sent = append(w.sent, sent{time.Since(w.start), queue, body, attributes})
			if send == nil {
				return nil
			}
			return send(len(w.sent))
		},
		Log: func(line Line) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if line.Source == SourceTrouble {
				w.troubles = append(w.troubles, line.Text)
			} else {
				w.said = append(w.said, line.Text)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.Lambda = l
	l.events.invoke = func(_ context.Context, _ string, inv *invocation) (Result, error) {
		w.mu.Lock()
		w.invokes = append(w.invokes, time.Since(w.start))
		n := len(w.invokes)
		w.mu.Unlock()
		result, err := function(n)
		result.RequestID = inv.id
		return result, err
	}
	return w
}

// accept is an invoke with payload.
func (w *world) accept(t *testing.T, payload string) {
	t.Helper()
	inv, err := newInvocation(w.cfg.functionARN("f"), []byte(payload), maxAsyncPayload)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.events.accept("f", inv); err != nil {
		t.Fatal(err)
	}
}

func failing(int) (Result, error) {
	return Result{FunctionError: unhandled, Payload: []byte(`{"errorMessage":"no"}`)}, nil
}

func throttling(int) (Result, error) {
	return Result{}, &Error{Status: http.StatusTooManyRequests, Code: "TooManyRequestsException", Message: "Rate Exceeded."}
}

func succeeding(int) (Result, error) { return Result{Payload: []byte(`"done"`)}, nil }

// TestEventTimes: when an event is invoked, and what its end looks like.
func TestEventTimes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		async    AsyncConfig
		scale    float64
		function func(int) (Result, error)
		invokes  []time.Duration
		end      string // the condition and count of the record; "": none is sent
		endAt    time.Duration
	}{
		{"fails", AsyncConfig{OnFailure: testQueue}, 1, failing, []time.Duration{0, time.Minute, 3 * time.Minute}, "RetriesExhausted 3", 3 * time.Minute},
		{"fails, scaled", AsyncConfig{OnFailure: testQueue}, 60, failing, []time.Duration{0, time.Second, 3 * time.Second}, "RetriesExhausted 3", 3 * time.Second},
		{"fails, no retries", AsyncConfig{OnFailure: testQueue, MaxRetryAttempts: new(0)}, 1, failing, []time.Duration{0}, "RetriesExhausted 1", 0},
		{"fails, soon too old", AsyncConfig{OnFailure: testQueue, MaxEventAge: 90 * time.Second}, 1, failing, []time.Duration{0, time.Minute}, "EventAgeExceeded 2", time.Minute},
		{"succeeds, unasked", AsyncConfig{OnFailure: testQueue}, 1, succeeding, []time.Duration{0}, "", 0},
		{"succeeds", AsyncConfig{OnSuccess: testQueue}, 1, succeeding, []time.Duration{0}, "Success 1", 0},
		{"succeeds at last", AsyncConfig{OnSuccess: testQueue, OnFailure: testDead}, 1, func(n int) (Result, error) {
			if n < 3 {
				return failing(n)
			}
			return succeeding(n)
		}, []time.Duration{0, time.Minute, 3 * time.Minute}, "Success 3", 3 * time.Minute},
		{"throttled", AsyncConfig{OnFailure: testQueue, MaxEventAge: time.Minute}, 1, throttling,
			[]time.Duration{0, 1 * time.Second, 3 * time.Second, 7 * time.Second, 15 * time.Second, 31 * time.Second}, "EventAgeExceeded 0", 31 * time.Second},
		{"throttled, then fails", AsyncConfig{OnFailure: testQueue, MaxRetryAttempts: new(1)}, 1, func(n int) (Result, error) {
			if n == 3 || n == 5 {
				return failing(n)
			}
			return throttling(n)
		}, []time.Duration{0, 1 * time.Second, 3 * time.Second, 63 * time.Second, 64 * time.Second}, "RetriesExhausted 2", 64 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Function{Async: test.async}, test.scale, test.function, nil)
				w.accept(t, `{"n":1}`)
				w.events.wait()
				if diff := cmp.Diff(test.invokes, w.invokes); diff != "" {
					t.Errorf("the invokes (-want +got):\n%s", diff)
				}
				if test.end == "" {
					if len(w.sent) != 0 {
						t.Errorf("sent %+v", w.sent)
					}
				} else if len(w.sent) != 1 {
					t.Errorf("sent %+v, want one record", w.sent)
				} else {
					var r struct {
						RequestContext requestContext
						RequestPayload json.RawMessage
					}
					if err := json.Unmarshal([]byte(w.sent[0].body), &r); err != nil {
						t.Fatal(err)
					}
					end := fmt.Sprint(r.RequestContext.Condition, " ", r.RequestContext.ApproximateInvokeCount)
					if end != test.end || w.sent[0].at != test.endAt || w.sent[0].queue != testQueue || string(r.RequestPayload) != `{"n":1}` || len(w.sent[0].attributes) != 0 {
						t.Errorf("sent %+v, want %s at %v", w.sent[0], test.end, test.endAt)
					}
				}
				if len(w.troubles) != 0 {
					t.Errorf("troubles: %q", w.troubles)
				}
				if err := w.Close(t.Context()); err != nil {
					t.Errorf("Close = %v", err)
				}
			})
		})
	}
}

// TestNoConcurrency: with nothing to run in, an event is given up at once.
func TestNoConcurrency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Function{Concurrency: -1, Async: AsyncConfig{OnFailure: testQueue}}, 1, nil, nil)
		w.events.invoke = w.Lambda.invoke // which throttles
		w.accept(t, `{}`)
		w.events.wait()
		const want = `"condition":"ZeroReservedConcurrency","approximateInvokeCount":0},"requestPayload":{}}`
		if len(w.sent) != 1 || w.sent[0].at != 0 || !strings.HasSuffix(w.sent[0].body, want) {
			t.Errorf("sent %+v, want at once a record that ends with %s", w.sent, want)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
}

// TestEventsLost: what Close cuts off and what a removed function leaves behind is
// said, event by event and in sum.
func TestEventsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Function{}, 1, failing, nil)
		w.accept(t, `{"n":1}`)
		w.accept(t, `{"n":2}`)
		synctest.Wait()
		err := w.Close(t.Context())
		if err == nil || !strings.Contains(err.Error(), "asynchronous events that had not ended are lost: 2 of f") {
			t.Errorf("Close = %v, want the events counted", err)
		}
		slices.Sort(w.troubles)
		want := "the asynchronous event is lost: the local Lambda was stopped while it waited to be invoked again; its payload begins "
		w.expectTroubles(t, []string{want + `{"n":1}`, want + `{"n":2}`})
		inv, err := newInvocation("arn", nil, maxAsyncPayload)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.events.accept("f", inv); !errors.Is(err, errClosing) {
			t.Errorf("an event after Close: %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Function{}, 1, failing, nil)
		w.accept(t, `{}`)
		synctest.Wait()
		if err := w.Remove("f"); err != nil {
			t.Fatal(err)
		}
		w.events.wait()
		w.expectTroubles(t, []string{"the asynchronous event is lost: its function has been removed"})
		if err := w.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "1 of f") {
			t.Errorf("Close = %v", err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Function{Async: AsyncConfig{OnFailure: testQueue, MaxRetryAttempts: new(0)}}, 1, failing, func(int) error { return errors.New("connection refused") })
		w.accept(t, `{}`)
		synctest.Wait()
		if err := w.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "1 of f") {
			t.Errorf("Close = %v", err)
		}
		w.expectTroubles(t, []string{"the asynchronous event is lost: the local Lambda was stopped before " + testQueue + " took it: connection refused"})
	})
}
