package sending

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// With a linger of an hour, every unnecessary wait shows.

// TestSenderDoesNotLingerInVain: a message does not linger when its request is full by size, while
// a caller waits for room, when it is sent again, or after it has waited behind its group during a
// flush.
func TestSenderDoesNotLingerInVain(t *testing.T) {
	for name, test := range map[string]struct {
		cfg      reprise.SenderConfig
		fault    sqsserver.Fault
		fifo     bool
		messages []reprise.Outgoing
		flush    bool
		limit    time.Duration
	}{
		"full by size":       {messages: outgoing(strings.Repeat("x", 1<<20))},
		"room is wanted":     {cfg: reprise.SenderConfig{MaxWaiting: 5}, messages: outgoing(kit.Numbered(15)...)},
		"sent again":         {fault: sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Limit: 1}, messages: outgoing(kit.Numbered(10)...), limit: 100 * time.Millisecond},
		"behind its group":   {fifo: true, messages: grouped("g", kit.Numbered(5)...), flush: true},
		"outside of a flush": {cfg: reprise.SenderConfig{MaxWaiting: 5}, messages: outgoing(kit.Numbered(12)...), flush: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var attributes map[string]string
				if test.fifo {
					attributes = map[string]string{"FifoQueue": "true"}
				}
				q := reprisetest.NewQueue(t, attributes)
				if test.fault.Kind != "" {
					q.Fault(test.fault)
				}
				test.cfg.Linger = time.Hour
				s, _ := newSender(t, q, test.cfg)
				start := time.Now()
				var sending sync.WaitGroup
				sending.Go(func() {
					if _, err := s.Send(t.Context(), test.messages...); err != nil {
						t.Error(err)
					}
				})
				synctest.Wait()
				if test.flush {
					if err := s.Flush(t.Context()); err != nil {
						t.Error(err)
					}
				}
				if name == "room is wanted" { // the last five are alone, and may linger
					if diff := cmp.Diff(kit.Numbered(10), queued(q)); diff != "" {
						t.Error(diff)
					}
					kit.CloseSender(t, s)
				}
				sending.Wait()
				if took := time.Since(start); took > test.limit {
					t.Errorf("sent after %v, want at most %v", took, test.limit)
				}
				kit.CloseSender(t, s)
			})
		})
	}
}

// failEntries returns a reply that refuses the entries whose body is in bodies, for a passing
// reason, and confirms the others.
func failEntries(in *sqs.SendMessageBatchInput, fails func(body string) bool) *sqs.SendMessageBatchOutput {
	out := &sqs.SendMessageBatchOutput{}
	for _, e := range in.Entries {
		if fails(*e.MessageBody) {
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id, Code: aws.String("InternalError")})
		} else {
			out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id, MessageId: aws.String("id")})
		}
	}
	return out
}

// TestSenderBackoffIsEachMessagesOwn: a message that has failed often does not delay one that has
// failed once.
func TestSenderBackoffIsEachMessagesOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tried := make(chan time.Time, 100)
		once := true
		s := senderThrough(t, sendFunc(func(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
			return failEntries(in, func(body string) bool {
				if body == "often" {
					tried <- time.Now()
					return true
				}
				defer func() { once = false }()
				return once
			}), nil
		}), ordersURL, reprise.SenderConfig{Requests: 1})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		var a answers
		if err := s.Submit(ctx, reprise.Outgoing{Body: "often"}, a.add); err != nil {
			t.Fatal(err)
		}
		for range 12 { // its wait is 2.5 to 5 s by now
			<-tried
		}
		start := time.Now()
		if _, err := s.Send(t.Context(), reprise.Outgoing{Body: "once"}); err != nil || time.Since(start) > 120*time.Millisecond {
			t.Errorf("%v after %v, want within the linger and 100 ms", err, time.Since(start))
		}
		if err := s.Flush(t.Context()); err != nil || len(a.all()) != 1 {
			t.Errorf("flush: %v, %d answers", err, len(a.all()))
		}
		kit.CloseSender(t, s)
	})
}

// TestSenderForgetsWhoHasGone: a message whose Send has returned during a request that then fails
// is not sent again, and its group goes on.
func TestSenderForgetsWhoHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var requested []string
		s := senderThrough(t, sendFunc(func(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
			requested = append(requested, *in.Entries[0].MessageBody)
			time.Sleep(10 * time.Second)
			return failEntries(in, func(body string) bool { return body == "1" }), nil
		}), ordersURL+".fifo", reprise.SenderConfig{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		sent, err := s.Send(ctx, grouped("g", "1")...)
		if !errors.Is(err, reprise.ErrUnconfirmed) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if _, err := s.Send(t.Context(), grouped("g", "2")...); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"1", "2"}, requested); diff != "" {
			t.Error("requests:", diff)
		}
		if !errors.Is(sent[0].Err, reprise.ErrUnconfirmed) || len(sent) != 1 {
			t.Errorf("the results have changed since: %v", sent)
		}
		kit.CloseSender(t, s)
	})
}

// TestSenderPassesRoomOn: the turn of a message that stops waiting for room passes to the next, and
// so does the room of one that is withdrawn; each of these is then sent.
func TestSenderPassesRoomOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := senderThrough(t, sendFunc(func(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
			return failEntries(in, func(body string) bool { return body[0] == 'f' }), nil
		}), ordersURL, reprise.SenderConfig{MaxBytes: 1 << 20, Linger: -1})
		large := strings.Repeat("x", 1000<<10)
		start := time.Now()
		var sending sync.WaitGroup
		for _, test := range []struct {
			body   string
			submit bool
			limit  time.Duration // of its context
			took   time.Duration
			want   error
		}{
			{"f" + large, false, 20 * time.Second, 20 * time.Second, context.DeadlineExceeded}, // has room, and fails again and again
			{large, true, 5 * time.Second, 5 * time.Second, context.DeadlineExceeded},          // does not fit beside it
			{"small", false, time.Hour, 5 * time.Second, nil},                                  // would, and has to wait for its turn
			{large, false, time.Hour, 20 * time.Second, nil},
		} {
			sending.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), test.limit)
				defer cancel()
				send := func() error { _, err := s.Send(ctx, reprise.Outgoing{Body: test.body}); return err }
				if test.submit {
					send = func() error { return s.Submit(ctx, reprise.Outgoing{Body: test.body}, func(reprise.Sent) {}) }
				}
				if err := send(); !errors.Is(err, test.want) || time.Since(start) != test.took {
					t.Errorf("a message of %d bytes: %v after %v, want %v after %v", len(test.body), err, time.Since(start), test.want, test.took)
				}
			})
			synctest.Wait()
		}
		sending.Wait()
		kit.CloseSender(t, s)
	})
}

// TestSenderFlush: a flush sends the waiting messages at once and returns when they are answered;
// without any it returns at once.
func TestSenderFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultSlowReply, Delay: time.Second})
		s, p := newSender(t, q, reprise.SenderConfig{Linger: time.Hour})
		start := time.Now()
		if err := s.Flush(t.Context()); err != nil || time.Since(start) != 0 {
			t.Errorf("flush of nothing: %v after %v", err, time.Since(start))
		}
		var a answers
		for i := range 15 {
			if err := s.Submit(t.Context(), reprise.Outgoing{Body: fmt.Sprint(i)}, a.add); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if err := s.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("flush: %v, want the end of its context", err)
		}
		if err := s.Flush(t.Context()); err != nil || time.Since(start) != time.Second {
			t.Errorf("flush: %v after %v, want nil when the reply comes after 1 s", err, time.Since(start))
		}
		if n := len(a.all()); n != 15 || len(p.requests()) != 2 {
			t.Errorf("%d answers after %d requests, want 15 after 2", n, len(p.requests()))
		}
		// A message after a flush lingers again.
		if err := s.Submit(t.Context(), reprise.Outgoing{Body: "later"}, a.add); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := len(p.requests()); n != 2 {
			t.Errorf("%d requests, want 2: the last message lingers", n)
		}
		kit.CloseSender(t, s)
	})
}

// TestSenderFlushEndsWhenAllAreTold: Flush returns after the functions of the submitted messages
// have ended, however they end, and those whose calls had begun before.
func TestSenderFlushEndsWhenAllAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := newSender(t, reprisetest.NewQueue(t, nil), reprise.SenderConfig{Linger: -1})
		told := 0
		for i := range 3 {
			if err := s.Submit(t.Context(), reprise.Outgoing{Body: fmt.Sprint(i)}, func(reprise.Sent) {
				time.Sleep(time.Minute)
				told++
				switch i {
				case 0:
					panic("told")
				case 1:
					runtime.Goexit()
				}
			}); err != nil {
				t.Fatal(err)
			}
			if err := s.Flush(t.Context()); err != nil || told != i+1 {
				t.Errorf("flush: %v when %d were told, want %d", err, told, i+1)
			}
		}
		if err := s.Submit(t.Context(), reprise.Outgoing{Body: "slow"}, func(reprise.Sent) { time.Sleep(time.Minute); told++ }); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // it is answered, and being told
		start := time.Now()
		if err := s.Flush(t.Context()); err != nil || told != 4 || time.Since(start) != 59*time.Second {
			t.Errorf("flush: %v after %v, when %d were told, want 59s and 4", err, time.Since(start), told)
		}
		kit.CloseSender(t, s)
	})
}

// TestSenderLingersBesideFlush: messages that are submitted while a Flush waits for the callers'
// functions linger as usual.
func TestSenderLingersBesideFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newSender(t, reprisetest.NewQueue(t, nil), reprise.SenderConfig{Linger: 10 * time.Millisecond})
		if err := s.Submit(t.Context(), reprise.Outgoing{Body: "slow"}, func(reprise.Sent) { time.Sleep(time.Minute) }); err != nil {
			t.Fatal(err)
		}
		var flushing sync.WaitGroup
		flushing.Go(func() {
			if err := s.Flush(t.Context()); err != nil {
				t.Error(err)
			}
		})
		for i := range 9 {
			time.Sleep(time.Millisecond)
			if err := s.Submit(t.Context(), reprise.Outgoing{Body: fmt.Sprint(i)}, func(reprise.Sent) {}); err != nil {
				t.Fatal(err)
			}
		}
		flushing.Wait()
		if n := len(p.requests()); n != 2 {
			t.Errorf("%d requests, want 2: the slow one's, and one for all that came later", n)
		}
		kit.CloseSender(t, s)
	})
}

// TestFlushOutlastsNoWithdrawal: a Flush waits for a message that waits for room, and whose caller
// then gives up. The Flush ends with the other messages.
func TestFlushOutlastsNoWithdrawal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultSlowReply, Action: "SendMessageBatch", Delay: 5 * time.Second})
		s, _ := newSender(t, q, reprise.SenderConfig{MaxWaiting: 1})
		var got answers
		if err := s.Submit(t.Context(), outgoing("inside")[0], got.add); err != nil {
			t.Fatal(err)
		}
		ctx, giveUp := context.WithTimeout(t.Context(), time.Second)
		defer giveUp()
		go func() {
			if err := s.Submit(ctx, outgoing("outside")[0], got.add); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the message for which there was no room: %v, want that its time ended", err)
			}
		}()
		synctest.Wait()
		limit, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := s.Flush(limit); err != nil {
			t.Errorf("flush: %v, want it to end with the message that was sent", err)
		}
		if sent := got.all(); len(sent) != 1 || sent[0].Err != nil {
			t.Errorf("told %+v, want the message inside sent", sent)
		}
		kit.CloseSender(t, s)
	})
}

// TestSenderStatus: the status has the messages that wait, those that are blocked, and the results
// so far. A message that was never accepted does not count.
func TestSenderStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, map[string]string{"MaximumMessageSize": "1024"})
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultSlowReply, Delay: 10 * time.Second})
		s, p := newSender(t, q, reprise.SenderConfig{MaxWaiting: 4, Requests: 1})
		want := func(want reprise.SenderStatus) {
			t.Helper()
			synctest.Wait()
			if got := s.Status(); got != want {
				t.Errorf("status %+v, want %+v", got, want)
			}
		}
		want(reprise.SenderStatus{})

		send := func(ctx context.Context, bodies ...string) {
			go func() {
				_, _ = s.Send(ctx, outgoing(bodies...)...) // the status has its results
			}()
			synctest.Wait()
		}
		send(t.Context(), "taken", strings.Repeat("x", 1025), "") // the last is not taken in
		brief, leave := context.WithCancel(t.Context())
		send(brief, "leaves", "leaves", "leaves before it has room")
		want(reprise.SenderStatus{Waiting: 4, Blocked: 1, Requests: 1})
		leave()
		want(reprise.SenderStatus{Waiting: 4, Requests: 1, Failed: 2}) // in the request still
		time.Sleep(11 * time.Second)
		want(reprise.SenderStatus{Requests: 1, Sent: 1, Failed: 3})
		if n := len(p.requests()); n != 1 {
			t.Errorf("%d requests", n)
		}

		ended, end := context.WithCancel(t.Context())
		if err := s.Submit(ended, reprise.Outgoing{Body: "ends before its request"}, func(reprise.Sent) {}); err != nil {
			t.Fatal(err)
		}
		end()
		time.Sleep(time.Second)
		want(reprise.SenderStatus{Requests: 1, Sent: 1, Failed: 4})
		kit.CloseSender(t, s)
	})
}
