package mapping_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/emulator"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/mapping"
	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// visibility is that of the queues under test.
const visibility = 30 * time.Second

// function is a function under test: what it was invoked with, and what it answers.
type function struct {
	t      *testing.T
	answer func(n int, e repriselambda.Event) (emulator.Result, error) // to the nth event, from 1

	mu     sync.Mutex
	events []repriselambda.Event
	raw    [][]byte
	at     []time.Time
}

func (f *function) invoke(ctx context.Context, raw []byte) (emulator.Result, error) {
	var e repriselambda.Event
	if err := json.Unmarshal(raw, &e); err != nil {
		f.t.Errorf("the event %s is no event: %v", raw, err)
	}
	f.mu.Lock()
	f.events, f.raw, f.at = append(f.events, e), append(f.raw, raw), append(f.at, time.Now())
	n := len(f.events)
	f.mu.Unlock()
	if f.answer == nil {
		return emulator.Result{}, nil
	}
	result, err := f.answer(n, e)
	if ctx.Err() != nil { // nobody would wait for the answer
		return emulator.Result{}, ctx.Err()
	}
	return result, err
}

// bodies are those of each event so far.
func (f *function) bodies() [][]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all [][]string
	for _, e := range f.events {
		all = append(all, bodiesOf(e))
	}
	return all
}

func bodiesOf(e repriselambda.Event) []string {
	var bodies []string
	for _, r := range e.Records {
		bodies = append(bodies, r.Body)
	}
	return bodies
}

func newQueue(t *testing.T, attributes map[string]string) *reprisetest.Queue {
	all := map[string]string{"VisibilityTimeout": "30"}
	for name, value := range attributes {
		all[name] = value
	}
	return reprisetest.NewQueue(t, all)
}

// start maps q to f until the test ends, or until the function returned is called. That
// one waits for the mapping's end.
func start(t *testing.T, q *reprisetest.Queue, f *function, cfg mapping.Config) (stop func()) {
	t.Helper()
	return startLogging(t, q, f, cfg, t.Output())
}

// startLogging is start, and the log goes to w.
func startLogging(t *testing.T, q *reprisetest.Queue, f *function, cfg mapping.Config, w io.Writer) (stop func()) {
	t.Helper()
	f.t = t
	cfg.Queue, cfg.Function = q.ARN(), "work"
	cfg.Logger = slog.New(slog.NewTextHandler(w, nil))
	m, err := mapping.New(q.Server(), f.invoke, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); m.Run(ctx) }()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return stop
}

// left are the bodies of the messages that the queue still has, with their states.
func left(q *reprisetest.Queue) []string {
	var all []string
	for _, m := range q.Messages() {
		all = append(all, fmt.Sprintf("%s %s", m.Body, m.State))
	}
	slices.Sort(all)
	return all
}

func check(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// throttled is what the Invoke API answers over the limit.
var throttled = &emulator.Error{Status: 429, Code: "TooManyRequestsException", Message: "Rate Exceeded."}

// TestAtOnce: without a window an event has what there is, ten messages at most.
func TestAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, nil)
		f := &function{}
		for i := range 12 {
			q.Send(fmt.Sprint(i))
		}
		start(t, q, f, mapping.Config{})
		q.WaitEmpty(time.Second)
		var sizes []int
		for _, bodies := range f.bodies() {
			sizes = append(sizes, len(bodies))
		}
		slices.Sort(sizes) // the two run at once
		check(t, "messages of each event", sizes, []int{2, 10})
		q.Send("late")
		q.WaitEmpty(time.Nanosecond)
	})
}

// TestThrottled: an event that finds no room is sent again with its messages in flight.
func TestThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, nil)
		f := &function{answer: func(n int, _ repriselambda.Event) (emulator.Result, error) {
			if n <= 5 {
				return emulator.Result{}, throttled
			}
			return emulator.Result{}, nil
		}}
		q.Send("a")
		start(t, q, f, mapping.Config{})
		q.WaitEmpty(visibility)
		for i, e := range f.events {
			check(t, "receives", e.Records[0].Attributes["ApproximateReceiveCount"], "1")
			if i == 0 {
				continue
			}
			wait := 100 * time.Millisecond << (i - 1)
			check(t, fmt.Sprintf("wait before try %d", i+1), f.at[i].Sub(f.at[i-1]), wait)
		}
		check(t, "tries", len(f.events), 6)
	})
}

// TestThrottledAfterALongPoll: the wait for a message does not count as time in flight, even if it is longer than the
// visibility timeout.
func TestThrottledAfterALongPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, map[string]string{"VisibilityTimeout": "10"})
		f := &function{answer: func(n int, _ repriselambda.Event) (emulator.Result, error) {
			if n == 1 {
				return emulator.Result{}, throttled
			}
			return emulator.Result{}, nil
		}}
		start(t, q, f, mapping.Config{})
		time.Sleep(15 * time.Second)
		q.Send("a")
		q.WaitEmpty(time.Minute)
		check(t, "receives", f.events[1].Records[0].Attributes["ApproximateReceiveCount"], "1")
		check(t, "wait before the second try", f.at[1].Sub(f.at[0]), 100*time.Millisecond)
	})
}

// TestThrottledTooLong: when its messages are no longer in flight, an event is dropped,
// and they come again by themselves.
func TestThrottledTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, nil)
		var dropped time.Duration // when the event of the first receive was sent last
		begin := time.Now()
		f := &function{answer: func(_ int, e repriselambda.Event) (emulator.Result, error) {
			if e.Records[0].Attributes["ApproximateReceiveCount"] == "1" {
				dropped = time.Since(begin)
				return emulator.Result{}, throttled
			}
			return emulator.Result{}, nil
		}}
		q.Send("a")
		stop := start(t, q, f, mapping.Config{})
		q.WaitEmpty(visibility + time.Second)
		time.Sleep(time.Minute)
		stop()
		if dropped < visibility-5*time.Second || dropped > visibility {
			t.Errorf("the event was sent until %v, not while its messages were in flight, for %v", dropped, visibility)
		}
	})
}

// TestThrottledWhileTheQueueChanges: an event is sent again for as long as its messages were received for, whatever the
// queue's visibility timeout is by then. Otherwise they would come again while their earlier event can still run.
func TestThrottledWhileTheQueueChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, nil)
		begin := time.Now()
		f := &function{answer: func(int, repriselambda.Event) (emulator.Result, error) {
			if time.Since(begin) < visibility+10*time.Second {
				return emulator.Result{}, throttled
			}
			return emulator.Result{}, nil
		}}
		q.Send("a")
		stop := start(t, q, f, mapping.Config{})
		time.Sleep(time.Second)
		q.SetAttributes(map[string]string{"VisibilityTimeout": "600"})
		time.Sleep(time.Minute)
		stop()
		runs := 0
		for _, at := range f.at {
			if at.Sub(begin) >= visibility+10*time.Second {
				runs++
			}
		}
		check(t, "runs", runs, 1)
	})
}

// TestStop: what runs is answered and settled; what no function has seen is visible at
// once.
func TestStop(t *testing.T) {
	for _, test := range []struct {
		name   string
		cfg    mapping.Config
		answer func(int, repriselambda.Event) (emulator.Result, error)
		left   []string
	}{
		{"running", mapping.Config{}, func(int, repriselambda.Event) (emulator.Result, error) {
			time.Sleep(10 * time.Second)
			return emulator.Result{}, nil
		}, nil},
		{"gathering", mapping.Config{BatchSize: 100, Window: time.Minute}, nil, []string{"a visible", "b visible"}},
		{"throttled", mapping.Config{}, func(int, repriselambda.Event) (emulator.Result, error) {
			return emulator.Result{}, throttled
		}, []string{"a visible", "b visible"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, nil)
				q.Send("a", "b")
				stop := start(t, q, &function{answer: test.answer}, test.cfg)
				time.Sleep(5 * time.Second)
				stop()
				check(t, "messages left", left(q), test.left)
			})
		})
	}
}

// TestConcurrency: as many events run as may; a function that fails gets fewer, unless
// it reports failures one by one.
func TestConcurrency(t *testing.T) {
	ok := func(int, repriselambda.Event) (emulator.Result, error) { return emulator.Result{}, nil }
	fail := func(int, repriselambda.Event) (emulator.Result, error) {
		return emulator.Result{FunctionError: "Unhandled"}, nil
	}
	for _, test := range []struct {
		name   string
		cfg    mapping.Config
		answer func(int, repriselambda.Event) (emulator.Result, error)
		want   []int // events of each second
	}{
		{"default", mapping.Config{}, ok, []int{5, 5, 5, 5}},
		{"limited", mapping.Config{MaximumConcurrency: 2}, ok, []int{2, 2, 2, 2}},
		{"failing", mapping.Config{}, fail, []int{5, 1, 1, 1}},
		{"failing and reporting", mapping.Config{ReportBatchItemFailures: true}, fail, []int{5, 5, 5, 5}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, map[string]string{"VisibilityTimeout": "600"})
				for i := range 100 {
					q.Send(fmt.Sprint(i))
				}
				f := &function{answer: func(n int, e repriselambda.Event) (emulator.Result, error) {
					time.Sleep(time.Second)
					return test.answer(n, e)
				}}
				test.cfg.BatchSize = 1
				begin := time.Now()
				stop := start(t, q, f, test.cfg)
				time.Sleep(3500 * time.Millisecond)
				stop()
				got := make([]int, 4)
				for _, at := range f.at {
					got[int(at.Sub(begin)/time.Second)]++
				}
				check(t, "events of each second", got, test.want)
			})
		})
	}
}

// TestQueueGone: a queue that is deleted and created again is mapped again.
func TestQueueGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, nil)
		f := &function{}
		start(t, q, f, mapping.Config{})
		if err := q.Server().DeleteQueue(t.Context(), &sqsserver.DeleteQueueInput{QueueUrl: q.URL()}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if _, err := q.Server().CreateQueue(t.Context(), &sqsserver.CreateQueueInput{QueueName: q.Name()}); err != nil {
			t.Fatal(err)
		}
		q.Send("a")
		time.Sleep(2 * time.Second)
		check(t, "events", f.bodies(), [][]string{{"a"}})
	})
}

// TestRefused: what Lambda refuses is refused, all of it at once.
func TestRefused(t *testing.T) {
	standard, fifo := newQueue(t, nil), newQueue(t, map[string]string{"FifoQueue": "true"})
	for _, test := range []struct {
		queue *reprisetest.Queue
		cfg   mapping.Config
		want  []string
	}{
		{standard, mapping.Config{BatchSize: -1}, []string{"BatchSize is -1: for this queue it may be 1 to 10000"}},
		{standard, mapping.Config{BatchSize: 10_001, Window: time.Second}, []string{"BatchSize is 10001"}},
		{fifo, mapping.Config{BatchSize: 11}, []string{"BatchSize is 11: for this queue it may be 1 to 10"}},
		{standard, mapping.Config{BatchSize: 11}, []string{"Maximum batch window in seconds must be greater than 0 if maximum batch size is greater than 10"}},
		{standard, mapping.Config{Window: 301 * time.Second}, []string{"the batch window is 5m1s: it may be 0 to 5m0s"}},
		{fifo, mapping.Config{Window: time.Second}, []string{"a FIFO queue has none"}},
		{standard, mapping.Config{MaximumConcurrency: 1}, []string{"MaximumConcurrency is 1: it may be 2 to 1000"}},
		{standard, mapping.Config{MaximumConcurrency: 1001}, []string{"MaximumConcurrency is 1001"}},
		{standard, mapping.Config{TimeScale: -1}, []string{"TimeScale is -1"}},
		{standard, mapping.Config{TimeScale: math.NaN()}, []string{"TimeScale is NaN"}},
		{standard, mapping.Config{TimeScale: math.Inf(1)}, []string{"TimeScale is +Inf"}},
		{standard, mapping.Config{BatchSize: -1, Window: -1, Filters: []string{"no"}}, []string{"BatchSize", "window", "filter no"}},
	} {
		test.cfg.Queue = test.queue.ARN()
		_, err := mapping.New(test.queue.Server(), nil, test.cfg)
		for _, want := range test.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: the error is %v, want %q in it", test.cfg, err, want)
			}
		}
	}
	for arn, want := range map[string]string{
		"orders": "is not the ARN of a queue", "arn:aws:sqs:us-east-1:000000000000:none": "finding queue arn:aws:sqs:us-east-1:000000000000:none",
	} {
		_, err := mapping.New(standard.Server(), nil, mapping.Config{Queue: arn})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("queue %q: the error is %v, want %q in it", arn, err, want)
		}
	}
	_, err := mapping.New(standard.Server(), nil, mapping.Config{Queue: "arn:aws:sqs:us-east-1:000000000000:none"})
	if _, ok := errors.AsType[*sqsserver.Error](err); !ok {
		t.Errorf("a missing queue's error is %v, not the server's", err)
	}
}
