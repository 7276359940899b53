package emulator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// givenUp is what is said of an event that failed once.
const givenUp = "Lambda stops retrying the asynchronous event: RetriesExhausted after 1 invoke"

// TestDelivery: who gets what of an event that failed, and what is said if he does not.
func TestDelivery(t *testing.T) {
	t.Parallel()
	refusedNow := &sqsserver.Error{Code: "AWS.SimpleQueueService.NonExistentQueue", Message: "The specified queue does not exist."}
	for _, test := range []struct {
		name     string
		async    AsyncConfig
		payload  string
		send     func(int) error
		queues   []string
		at       time.Duration // of the last message
		said     string        // of the end, besides troubles
		troubles []string
	}{
		{
			name: "both", async: AsyncConfig{OnFailure: testQueue, DeadLetter: testDead}, queues: []string{testDead, testQueue},
			said: givenUp + "; its record goes to " + testQueue + "; it goes to " + testDead,
		},
		{name: "dead letter", async: AsyncConfig{DeadLetter: testDead}, queues: []string{testDead}, said: givenUp + "; it goes to " + testDead},
		{name: "nobody", troubles: []string{givenUp + "; it is dropped"}},
		{
			name: "refused", async: AsyncConfig{OnFailure: testQueue}, send: func(int) error { return fmt.Errorf("sending: %w", refusedNow) },
			queues: []string{testQueue}, troubles: []string{"DestinationDeliveryFailures: nothing was delivered to " + testQueue + ": sending: AWS.SimpleQueueService.NonExistentQueue"},
		},
		{
			name: "dead letter refused", async: AsyncConfig{DeadLetter: testDead}, send: func(int) error { return refusedNow },
			queues: []string{testDead}, troubles: []string{"DeadLetterErrors: nothing was delivered to " + testDead},
		},
		{
			name: "unavailable", async: AsyncConfig{OnFailure: testQueue}, send: func(n int) error {
				if n < 4 {
					return errors.New("connection refused")
				}
				return nil
			},
			queues: []string{testQueue, testQueue, testQueue, testQueue}, at: 7 * time.Second,
		},
		{
			name: "throttled", async: AsyncConfig{OnFailure: testQueue}, send: func(n int) error {
				if n == 1 {
					return &sqsserver.Error{Code: "RequestThrottled", Message: "The request was denied due to request throttling."}
				}
				return nil
			},
			queues: []string{testQueue, testQueue}, at: time.Second,
		},
		{
			name: "record too large", async: AsyncConfig{OnFailure: testQueue}, payload: `"` + strings.Repeat("x", 1<<20-2) + `"`,
			troubles: []string{"DestinationDeliveryFailures: nothing was delivered to " + testQueue + ": the record has 1048984 bytes, of which 1048576 are the request's and 21 the response's, and the limit is 1048576"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				test.async.MaxRetryAttempts = new(0)
				w := newWorld(t, Function{Async: test.async}, 1, failing, test.send)
				w.accept(t, test.payload)
				w.events.wait()
				var queues []string
				var last time.Duration
				for _, s := range w.sent {
					queues = append(queues, s.queue)
					last = s.at
					if s.queue == testDead && (s.body != "{}" || len(s.attributes) != 3) {
						t.Errorf("the dead letter is %+v", s)
					}
				}
				if !slices.Equal(queues, test.queues) || last != test.at {
					t.Errorf("sent to %v, the last at %v; want %v, at %v", queues, last, test.queues, test.at)
				}
				w.expectTroubles(t, test.troubles)
				if test.said != "" && !slices.Contains(w.said, test.said) {
					t.Errorf("%q is said, want %q", w.said, test.said)
				}
				if err := w.Close(t.Context()); err != nil {
					t.Errorf("Close = %v", err)
				}
			})
		})
	}
}

// TestDeadLetterAfterThrottles: the last thing that happened is what is told.
func TestDeadLetterAfterThrottles(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		function func(n int) (Result, error)
		want     string
	}{
		{func(n int) (Result, error) {
			if n == 1 {
				return throttling(n)
			}
			return failing(n)
		}, "200 no"},
		{func(n int) (Result, error) {
			if n == 1 {
				return failing(n)
			}
			return throttling(n)
		}, "429 Rate Exceeded."},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, Function{Async: AsyncConfig{DeadLetter: testDead, MaxRetryAttempts: new(1)}}, 1, test.function, nil)
			w.accept(t, `{}`)
			w.events.wait()
			if len(w.sent) != 1 {
				t.Fatalf("sent %+v, want a dead letter", w.sent)
			}
			if a := w.sent[0].attributes; a[0].StringValue+" "+a[1].StringValue != test.want {
				t.Errorf("the dead letter says %+v, want %s", a, test.want)
			}
			if err := w.Close(t.Context()); err != nil {
				t.Errorf("Close = %v", err)
			}
		})
	}
}

// expectTroubles compares beginnings.
func (w *world) expectTroubles(t *testing.T, want []string) {
	t.Helper()
	if len(w.troubles) != len(want) {
		t.Fatalf("troubles %q, want %q", w.troubles, want)
	}
	for i := range want {
		if !strings.HasPrefix(w.troubles[i], want[i]) {
			t.Errorf("trouble %q, want %q", w.troubles[i], want[i])
		}
	}
}

// TestFunctionDestination: the record is the event of another asynchronous invoke,
// which is retried by that function's own settings.
func TestFunctionDestination(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Function{Async: AsyncConfig{OnFailure: "arn:aws:lambda:us-east-1:000000000000:function:g", MaxRetryAttempts: new(0)}}, 1, failing, nil)
		var names, payloads []string
		inner := w.events.invoke
		w.events.invoke = func(ctx context.Context, name string, inv *invocation) (Result, error) {
			w.mu.Lock()
			names, payloads = append(names, name), append(payloads, string(inv.payload))
			w.mu.Unlock()
			if name == "g" {
				return succeeding(0)
			}
			return inner(ctx, name, inv)
		}
		w.accept(t, `{"n":1}`)
		w.events.wait()
		if !slices.Equal(names, []string{"f", "g"}) || !strings.Contains(payloads[1], `"condition":"RetriesExhausted"`) {
			t.Errorf("invoked %v with %v", names, payloads)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
}
