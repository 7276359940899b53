package sending

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestSenderRetriesFailedEntriesAlone: only the entries of a batch that were not accepted are sent
// again, later and later, and each message is in the queue once.
func TestSenderRetriesFailedEntriesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Skip: 8, Limit: 3}) // 9 and 10, and 9 again
		s, p := newSender(t, q, reprise.SenderConfig{})
		if _, err := s.Send(t.Context(), outgoing(kit.Numbered(10)...)...); err != nil {
			t.Fatal(err)
		}
		want := [][]string{kit.Numbered(10), {"9", "10"}, {"9"}}
		if diff := cmp.Diff(want, p.requests()); diff != "" {
			t.Fatal(diff)
		}
		if n := len(q.Messages()); n != 10 {
			t.Errorf("%d messages in the queue, want 10", n)
		}
		times := p.sentAt()
		for i, least := range []time.Duration{50 * time.Millisecond, 100 * time.Millisecond} {
			if wait := times[i+1].Sub(times[i]); wait < least || wait > 2*least {
				t.Errorf("tried again after %v, want %v to %v", wait, least, 2*least)
			}
		}
		kit.CloseSender(t, s)
	})
}

// TestSenderOutlastsTrouble: the sender retries through throttles, failures of the service and lost
// connections, in one request after the other, and logs them from time to time.
func TestSenderOutlastsTrouble(t *testing.T) {
	for _, kind := range []sqsserver.FaultKind{sqsserver.FaultThrottle, sqsserver.FaultServerError, sqsserver.FaultDropConnection} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				q.Fault(sqsserver.Fault{Kind: kind})
				start := time.Now()
				chances := make(chan int, 1)
				time.AfterFunc(10*time.Minute, func() {
					chances <- q.Server().Faults(q.Name())[0].Chances
					q.Fault()
				})
				var log strings.Builder
				s, p := newSender(t, q, reprise.SenderConfig{Logger: slog.New(slog.NewTextHandler(&log, nil))})
				if _, err := s.Send(context.Background(), outgoing(kit.Numbered(10)...)...); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took < 10*time.Minute || took > 10*time.Minute+5*time.Second {
					t.Errorf("sent after %v, want within 5 s of the trouble's end at 10 min", took)
				}
				n := len(p.requests())
				if n < 120 || n > 250 {
					t.Errorf("%d requests in 10 min, want one every 2.5 to 5 s", n)
				}
				if refused := <-chances; refused != n-1 {
					t.Errorf("SQS refused %d requests of %d: the SDK must not retry by itself", refused, n)
				}
				if n := strings.Count(log.String(), "sending failed; trying again"); n < 15 || n > 20 {
					t.Errorf("%d complaints in 10 min, want two a minute", n)
				}
				if len(q.Messages()) != 10 {
					t.Errorf("%d messages in the queue, want 10", len(q.Messages()))
				}
				kit.CloseSender(t, s)
			})
		})
	}
}

// TestSenderGivesUpAfterItsTries: a message that keeps failing gets the error of its last permitted
// request; the others of its batch are sent.
func TestSenderGivesUpAfterItsTries(t *testing.T) {
	for kind, test := range map[sqsserver.FaultKind]struct {
		skip   int // chances that succeed
		failed []bool
	}{
		sqsserver.FaultFailEntry:      {2, []bool{false, false, true}},
		sqsserver.FaultThrottle:       {0, []bool{true, true, true}},
		sqsserver.FaultDropConnection: {0, []bool{true, true, true}},
	} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				q.Fault(sqsserver.Fault{Kind: kind, Skip: test.skip})
				s, p := newSender(t, q, reprise.SenderConfig{Tries: 4})
				sent, err := s.Send(context.Background(), outgoing(kit.Numbered(3)...)...)
				if err == nil || len(p.requests()) != 4 {
					t.Errorf("error %v after %d requests, want one after 4", err, len(p.requests()))
				}
				for i, failed := range test.failed {
					if (sent[i].Err != nil) != failed {
						t.Errorf("message %d: error %v, want one: %t", i+1, sent[i].Err, failed)
					}
				}
				if unconfirmed := kind == sqsserver.FaultDropConnection; errors.Is(err, reprise.ErrUnconfirmed) != unconfirmed {
					t.Errorf("error %v, want an ErrUnconfirmed: %t", err, unconfirmed)
				}
				kit.CloseSender(t, s)
			})
		})
	}
}

// TestSenderEndsWithItsCallersContext: the error says why sending failed, and
// whether SQS may have the message.
func TestSenderEndsWithItsCallersContext(t *testing.T) {
	for kind, unconfirmed := range map[sqsserver.FaultKind]bool{
		sqsserver.FaultThrottle:       false,
		sqsserver.FaultFailEntry:      false,
		sqsserver.FaultServerError:    true,
		sqsserver.FaultDropConnection: true,
		sqsserver.FaultLoseReply:      true,
	} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				q.Fault(sqsserver.Fault{Kind: kind})
				s, p := newSender(t, q, reprise.SenderConfig{})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var a answers
				if err := s.Submit(ctx, reprise.Outgoing{Body: "submitted"}, a.add); err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				_, err := s.Send(ctx, reprise.Outgoing{Body: "sent"})
				if took := time.Since(start); took != time.Minute {
					t.Errorf("Send returned after %v", took)
				}
				time.Sleep(6 * time.Second)
				told := a.all()
				if len(told) != 1 {
					t.Fatalf("told %v, want one answer", told)
				}
				for _, err := range []error{err, told[0].Err} {
					if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, reprise.ErrUnconfirmed) != unconfirmed || !strings.Contains(err.Error(), "requests, the last of which: ") {
						t.Errorf("error %v; unconfirmed should be %v", err, unconfirmed)
					}
				}
				n := len(p.requests())
				time.Sleep(time.Hour)
				if more := len(p.requests()) - n; more != 0 {
					t.Errorf("%d requests after the end of the context", more)
				}
				kit.CloseSender(t, s)
			})
		})
	}
}

// TestSenderReturnsAtOnceWhenItsContextEnds: Send returns from a request under way, whose message
// is unconfirmed, and from the linger, in which nothing has been sent.
func TestSenderReturnsAtOnceWhenItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultSlowReply, Delay: 10 * time.Second})
		s, p := newSender(t, q, reprise.SenderConfig{Linger: 5 * time.Second})
		for _, test := range []struct {
			limit       time.Duration
			unconfirmed bool
		}{{time.Second, false}, {6 * time.Second, true}} {
			ctx, cancel := context.WithTimeout(t.Context(), test.limit)
			start := time.Now()
			_, err := s.Send(ctx, reprise.Outgoing{Body: test.limit.String()})
			cancel()
			if time.Since(start) != test.limit || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, reprise.ErrUnconfirmed) != test.unconfirmed {
				t.Errorf("%v after %v; unconfirmed should be %v after %v", err, time.Since(start), test.unconfirmed, test.limit)
			}
		}
		cancelled, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("the order was withdrawn"))
		if _, err := s.Send(cancelled, reprise.Outgoing{Body: "never"}); err == nil || err.Error() != "the order was withdrawn" {
			t.Errorf("error %v, want the cause", err)
		}
		if err := s.Submit(cancelled, reprise.Outgoing{Body: "never"}, func(reprise.Sent) {}); err == nil || err.Error() != "the order was withdrawn" {
			t.Errorf("error %v, want the cause", err)
		}
		kit.CloseSender(t, s)
		if diff := cmp.Diff([][]string{{"6s"}}, p.requests()); diff != "" {
			t.Error(diff)
		}
	})
}

// TestSenderKeepsTheOrderOfAGroup: a message that fails delays those behind it in its group and no
// other group; batches have messages of different groups.
func TestSenderKeepsTheOrderOfAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, map[string]string{"FifoQueue": "true"})
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Limit: 1}) // the first of group 0
		s, p := newSender(t, q, reprise.SenderConfig{})
		var messages []reprise.Outgoing
		for _, body := range kit.Numbered(5) {
			for g := range 10 {
				messages = append(messages, grouped(fmt.Sprint(g), body)...)
			}
		}
		if _, err := s.Send(t.Context(), messages...); err != nil {
			t.Fatal(err)
		}
		order := make(map[string][]string)
		for _, m := range q.Messages() {
			order[m.Group] = append(order[m.Group], m.Body)
		}
		for group, bodies := range order {
			if diff := cmp.Diff(kit.Numbered(5), bodies); diff != "" {
				t.Error("group", group, diff)
			}
		}
		var sizes []int
		for _, batch := range p.requests() {
			sizes = append(sizes, len(batch))
		}
		if diff := cmp.Diff([]int{10, 9, 9, 9, 9, 1, 1, 1, 1, 1}, sizes); diff != "" {
			t.Error("sizes of the requests:", diff)
		}
		kit.CloseSender(t, s)
	})
}

// TestSenderDropsDuplicatesOnFIFO: on a FIFO queue a lost reply causes no duplicate.
func TestSenderDropsDuplicatesOnFIFO(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"})
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultLoseReply, Limit: 2})
		s, _ := newSender(t, q, reprise.SenderConfig{ContentDeduplication: true})
		messages := outgoing(kit.Numbered(3)...)
		for i := range messages {
			messages[i].GroupID = fmt.Sprint(i)
		}
		if _, err := s.Send(t.Context(), messages...); err != nil {
			t.Fatal(err)
		}
		if n := len(q.Messages()); n != 3 {
			t.Errorf("%d messages in the queue, want 3", n)
		}
		kit.CloseSender(t, s)
	})
}
