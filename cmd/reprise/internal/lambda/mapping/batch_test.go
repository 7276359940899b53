package mapping_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/emulator"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/mapping"
	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestPartialBatch holds the mapping to Lambda's rules for what a function answers, see
// https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html: what
// succeeded is deleted, what failed keeps the visibility timeout of its receive.
func TestPartialBatch(t *testing.T) {
	all, none, some := []string{"a", "b", "c"}, []string(nil), []string{"b"}
	for _, test := range []struct {
		name   string
		blind  bool // without ReportBatchItemFailures
		reply  string
		crash  bool
		failed []string
	}{
		{name: "empty list", reply: `{"batchItemFailures":[]}`, failed: none},
		{name: "null list", reply: `{"batchItemFailures":null}`, failed: none},
		{name: "empty object", reply: `{}`, failed: none},
		{name: "object without the list", reply: `{"statusCode":200}`, failed: none},
		{name: "null", reply: `null`, failed: none},
		{name: "no reply", reply: ``, failed: none},
		{name: "empty string", reply: `""`, failed: none},
		{name: "empty array", reply: `[]`, failed: none},
		{name: "listed", reply: `{"batchItemFailures":[{"itemIdentifier":"ID(b)"}]}`, failed: some},
		{name: "listed twice", reply: `{"batchItemFailures":[{"itemIdentifier":"ID(b)"},{"itemIdentifier":"ID(b)"}]}`, failed: some},
		{name: "all listed", reply: `{"batchItemFailures":[{"itemIdentifier":"ID(a)"},{"itemIdentifier":"ID(b)"},{"itemIdentifier":"ID(c)"}]}`, failed: all},
		{name: "function error", crash: true, reply: `{"batchItemFailures":[]}`, failed: all},
		{name: "invalid JSON", reply: `{"batchItemFailures":`, failed: all},
		{name: "not JSON", reply: `done`, failed: all},
		{name: "empty id", reply: `{"batchItemFailures":[{"itemIdentifier":""}]}`, failed: all},
		{name: "null id", reply: `{"batchItemFailures":[{"itemIdentifier":null}]}`, failed: all},
		{name: "id is a number", reply: `{"batchItemFailures":[{"itemIdentifier":123}]}`, failed: all},
		{name: "wrong key", reply: `{"batchItemFailures":[{"foo":"notvalid"}]}`, failed: all},
		{name: "wrong key, null", reply: `{"batchItemFailures":[{"foo":null}]}`, failed: all},
		{name: "key in another case", reply: `{"batchItemFailures":[{"ItemIdentifier":"ID(b)"}]}`, failed: all},
		{name: "unknown id", reply: `{"batchItemFailures":[{"itemIdentifier":"ID(b)"},{"itemIdentifier":"059f36b4-87a3-44ab-83d2-661975830a7d"}]}`, failed: all},
		{name: "list of ids", reply: `{"batchItemFailures":["ID(b)"]}`, failed: all},
		{name: "no list", reply: `{"batchItemFailures":"ID(b)"}`, failed: all},
		{name: "another value", reply: `true`, failed: all},
		{name: "blind success", blind: true, reply: `{"batchItemFailures":[{"itemIdentifier":"ID(b)"}]}`, failed: none},
		{name: "blind, not JSON", blind: true, reply: `done`, failed: none},
		{name: "blind function error", blind: true, crash: true, failed: all},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, nil)
				ids := q.Send("a", "b", "c")
				reply := strings.NewReplacer("ID(a)", ids[0], "ID(b)", ids[1], "ID(c)", ids[2]).Replace(test.reply)
				f := &function{answer: func(n int, _ repriselambda.Event) (emulator.Result, error) {
					if n > 1 {
						return emulator.Result{}, nil
					}
					time.Sleep(time.Second)
					result := emulator.Result{Payload: []byte(reply)}
					if test.crash {
						result.FunctionError = "Unhandled"
					}
					return result, nil
				}}
				begin := time.Now()
				start(t, q, f, mapping.Config{ReportBatchItemFailures: !test.blind})
				time.Sleep(2 * time.Second)
				var failed []string
				for _, m := range q.Messages() {
					failed = append(failed, m.Body)
					check(t, "the message is due", m.Due.Sub(begin), visibility)
				}
				check(t, "failed", failed, test.failed)
				q.WaitEmpty(visibility)
				if len(test.failed) > 0 {
					check(t, "the failed come again", f.bodies(), [][]string{all, test.failed})
				}
			})
		})
	}
}

// TestIgnoredFailures: a mapping without ReportBatchItemFailures deletes what the function's reply
// names as failed, as Lambda does, and the log says so, which Lambda's does not.
func TestIgnoredFailures(t *testing.T) {
	for _, test := range []struct {
		reply string
		says  bool
	}{
		{`{"batchItemFailures":[{"itemIdentifier":"ID"}]}`, true},
		{`{"batchItemFailures":[]}`, false},
		{`null`, false},
		{`done`, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := newQueue(t, nil)
			id := q.Send("a")[0]
			f := &function{answer: func(int, repriselambda.Event) (emulator.Result, error) {
				return emulator.Result{Payload: []byte(strings.ReplaceAll(test.reply, "ID", id))}, nil
			}}
			var log bytes.Buffer
			stop := startLogging(t, q, f, mapping.Config{}, &log)
			time.Sleep(2 * time.Second)
			stop()
			check(t, "left", left(q), []string(nil))
			if said := strings.Contains(log.String(), "level=WARN"); said != test.says ||
				said && !strings.Contains(log.String(), "FunctionResponseTypes: [ReportBatchItemFailures]") {
				t.Errorf("after %s the log says %q", test.reply, &log)
			}
		})
	}
}

// TestVisibilityIsTheFunctions: a visibility that the function has chosen for a message
// that it reports is left alone.
func TestVisibilityIsTheFunctions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, nil)
		q.Send("a")
		f := &function{answer: func(_ int, e repriselambda.Event) (emulator.Result, error) {
			err := q.Server().ChangeMessageVisibility(context.Background(), &sqsserver.ChangeMessageVisibilityInput{
				QueueUrl: q.URL(), ReceiptHandle: e.Records[0].ReceiptHandle, VisibilityTimeout: sqsserver.Int(7),
			})
			if err != nil {
				t.Error(err)
			}
			return emulator.Result{Payload: fmt.Appendf(nil, `{"batchItemFailures":[{"itemIdentifier":%q}]}`, e.Records[0].MessageID)}, nil
		}}
		begin := time.Now()
		stop := start(t, q, f, mapping.Config{ReportBatchItemFailures: true})
		time.Sleep(22 * time.Second)
		stop()
		var got []time.Duration
		for _, at := range f.at {
			got = append(got, at.Sub(begin))
		}
		check(t, "invoked at", got, []time.Duration{0, 7 * time.Second, 14 * time.Second, 21 * time.Second})
	})
}

// TestWindow: a batch waits for more messages, from its first one on, and closes with
// its size, its window, or 6 MB.
func TestWindow(t *testing.T) {
	type moment struct {
		After    time.Duration
		Messages int
	}
	large := strings.Repeat("x", 1_000_000)
	for _, test := range []struct {
		name string
		cfg  mapping.Config
		send func(send func(body string, n int))
		want []moment
	}{
		{
			name: "window",
			cfg:  mapping.Config{BatchSize: 100, Window: 5 * time.Second},
			send: func(send func(string, int)) {
				time.Sleep(time.Minute) // the window does not begin before a message is there
				send("a", 15)
				time.Sleep(4 * time.Second)
				send("b", 1)
				time.Sleep(2 * time.Second)
				send("c", 1)
			},
			want: []moment{{65 * time.Second, 16}, {71 * time.Second, 1}},
		},
		{
			name: "size",
			cfg:  mapping.Config{BatchSize: 12, Window: 5 * time.Second},
			send: func(send func(string, int)) { send("a", 30) },
			want: []moment{{0, 12}, {0, 12}, {5 * time.Second, 6}},
		},
		{
			name: "6 MB",
			cfg:  mapping.Config{BatchSize: 100, Window: 5 * time.Second},
			send: func(send func(string, int)) { send(large, 8) },
			want: []moment{{0, 6}, {0, 2}},
		},
		{
			name: "6 MB of quotes",
			cfg:  mapping.Config{BatchSize: 10},
			send: func(send func(string, int)) { send(strings.Repeat(`"`, 1_000_000), 4) },
			want: []moment{{0, 3}, {0, 1}},
		},
		{
			name: "scaled",
			cfg:  mapping.Config{BatchSize: 100, Window: 5 * time.Minute, TimeScale: 60},
			send: func(send func(string, int)) { send("a", 3) },
			want: []moment{{5 * time.Second, 3}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, nil)
				f := &function{}
				begin := time.Now()
				send := func(body string, n int) {
					for range n {
						q.Send(body)
					}
				}
				if test.name == "scaled" || test.name == "window" {
					start(t, q, f, test.cfg)
					test.send(send)
				} else {
					test.send(send)
					start(t, q, f, test.cfg)
				}
				q.WaitEmpty(time.Hour)
				var got []moment
				for i, e := range f.events {
					got = append(got, moment{f.at[i].Sub(begin), len(e.Records)})
					if len(f.raw[i]) > 6<<20 {
						t.Errorf("event %d has %d bytes", i, len(f.raw[i]))
					}
				}
				check(t, "events", got, test.want)
			})
		})
	}
}

// TestWindowLongerThanVisibility: a message that comes again while its batch waits for
// more is in the event once, with the receipt handle that counts.
func TestWindowLongerThanVisibility(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, nil)
		f := &function{}
		q.Send("a", "b")
		stop := start(t, q, f, mapping.Config{Window: visibility + 15*time.Second})
		time.Sleep(time.Minute)
		stop()
		check(t, "events", f.bodies(), [][]string{{"a", "b"}})
		check(t, "receives", f.events[0].Records[0].Attributes["ApproximateReceiveCount"], "2")
		check(t, "messages left", left(q), []string(nil))
	})
}

// TestTooMuchForAnEvent: what one receive brings and one event cannot carry goes with the
// next one only while it is still the mapping's: not when it is visible again, and not
// when the mapping ends.
func TestTooMuchForAnEvent(t *testing.T) {
	for _, test := range []struct {
		name  string
		takes time.Duration // the first event
		stop  time.Duration // after so long; 0: when all is done
		want  []int         // messages of each event
		left  int
	}{
		{"in time", 10 * time.Second, 0, []int{6, 2}, 0},
		{"visible again", visibility + 5*time.Second, 0, []int{6, 6, 2}, 0},
		{"stopped", 10 * time.Second, 5 * time.Second, []int{6}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, nil)
				for range 8 {
					q.Send(strings.Repeat("x", 1_000_000))
				}
				f := &function{answer: func(n int, _ repriselambda.Event) (emulator.Result, error) {
					if n == 1 {
						time.Sleep(test.takes)
					}
					return emulator.Result{}, nil
				}}
				stop := start(t, q, f, mapping.Config{})
				time.Sleep(cmp.Or(test.stop, time.Minute))
				stop()
				var got []int
				for i := range f.events {
					got = append(got, len(f.events[i].Records))
				}
				check(t, "messages of each event", got, test.want)
				visible := 0
				for _, m := range q.Messages() {
					if m.State == sqsserver.Visible {
						visible++
					}
				}
				check(t, "messages left", visible, test.left)
			})
		})
	}
}

// TestDeleteOfAQueueGone: what cannot be deleted for good is not tried again, and keeps
// no mapping from ending.
func TestDeleteOfAQueueGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, nil)
		for range 30 {
			q.Send("x")
		}
		f := &function{answer: func(int, repriselambda.Event) (emulator.Result, error) {
			err := q.Server().DeleteQueue(context.Background(), &sqsserver.DeleteQueueInput{QueueUrl: q.URL()})
			return emulator.Result{}, err
		}}
		stop := start(t, q, f, mapping.Config{BatchSize: 30, Window: time.Second})
		time.Sleep(1500 * time.Millisecond)
		begin := time.Now()
		stop()
		check(t, "the mapping ended after", time.Since(begin), time.Duration(0))
	})
}

// TestDelete: a delete that fails is tried again; what cannot be deleted comes again.
func TestDelete(t *testing.T) {
	for _, test := range []struct {
		name   string
		fault  sqsserver.Fault
		events int
	}{
		{"entries fail", sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Action: "DeleteMessageBatch", Limit: 15}, 1},
		{"throttled", sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "DeleteMessageBatch", Limit: 4}, 1},
		{"reply lost", sqsserver.Fault{Kind: sqsserver.FaultLoseReply, Action: "DeleteMessageBatch", Limit: 4}, 1},
		{"for long", sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "DeleteMessageBatch", Limit: 10}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newQueue(t, nil)
				q.Send("a", "b", "c", "d")
				q.Fault(test.fault)
				f := &function{}
				start(t, q, f, mapping.Config{})
				time.Sleep(2 * visibility)
				q.WaitEmpty(0)
				check(t, "events", len(f.events), test.events)
			})
		})
	}
}

// TestLateSuccess: a success after another receive has begun deletes what it can, and
// on a FIFO queue, which takes no expired receipt, nothing.
func TestLateSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQueue(t, map[string]string{"FifoQueue": "true"})
		q.Send("a")
		f := &function{}
		f.answer = func(_ int, e repriselambda.Event) (emulator.Result, error) {
			if e.Records[0].Attributes["ApproximateReceiveCount"] == "1" {
				time.Sleep(visibility + 5*time.Second)
			} else {
				time.Sleep(10 * time.Second)
			}
			return emulator.Result{}, nil
		}
		start(t, q, f, mapping.Config{})
		time.Sleep(visibility + 7*time.Second)
		check(t, "messages left", left(q), []string{"a in flight"})
		q.WaitEmpty(time.Minute)
		check(t, "events", f.bodies(), [][]string{{"a"}, {"a"}})
	})
}
