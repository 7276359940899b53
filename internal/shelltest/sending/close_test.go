package sending

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestSenderCloses: Close sends all accepted messages, accepts no more, and turns away callers that
// wait for room.
func TestSenderCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultSlowReply, Delay: time.Second})
		s, _ := newSender(t, q, reprise.SenderConfig{Linger: time.Hour, MaxWaiting: 25})
		var a answers
		for range 25 {
			if err := s.Submit(t.Context(), reprise.Outgoing{Body: "taken"}, a.add); err != nil {
				t.Fatal(err)
			}
		}
		var turnedAway sync.WaitGroup
		turnedAway.Go(func() {
			if err := s.Submit(t.Context(), reprise.Outgoing{Body: "outside"}, a.add); !errors.Is(err, reprise.ErrSenderClosed) {
				t.Errorf("a Submit that waited for room: %v", err)
			}
		})
		turnedAway.Go(func() {
			if _, err := s.Send(t.Context(), outgoing("outside", "outside")...); !errors.Is(err, reprise.ErrSenderClosed) {
				t.Errorf("a Send that waited for room: %v", err)
			}
		})
		synctest.Wait()
		var second sync.WaitGroup
		second.Go(func() {
			time.Sleep(time.Millisecond)
			kit.CloseSender(t, s)
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			if _, err := s.Close(ctx); err != nil {
				t.Errorf("close of a closed sender: %v", err)
			}
		})
		kit.CloseSender(t, s)
		second.Wait()
		turnedAway.Wait()
		if n := len(a.all()); n != 25 || len(q.Messages()) != 25 {
			t.Errorf("%d answers, %d messages in the queue; want 25", n, len(q.Messages()))
		}
		if _, err := s.Send(t.Context(), outgoing("late")...); !errors.Is(err, reprise.ErrSenderClosed) {
			t.Errorf("sent after Close: %v", err)
		}
		if err := s.Submit(t.Context(), reprise.Outgoing{Body: "late"}, a.add); !errors.Is(err, reprise.ErrSenderClosed) {
			t.Errorf("submitted after Close: %v", err)
		}
		if err := s.Flush(t.Context()); err != nil {
			t.Errorf("flushed after Close: %v", err)
		}
	})
}

// TestSenderSaysWhatCloseLeft: when Close's context ends, Close returns all messages that are left,
// and each caller gets its own result too.
func TestSenderSaysWhatCloseLeft(t *testing.T) {
	for name, fault := range map[string]sqsserver.Fault{
		"in backoff":   {Kind: sqsserver.FaultThrottle},
		"in a request": {Kind: sqsserver.FaultSlowReply, Delay: time.Minute},
	} {
		for _, attributes := range []map[string]string{nil, {"FifoQueue": "true"}} {
			t.Run(fmt.Sprint(name, " ", attributes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					q := reprisetest.NewQueue(t, attributes)
					q.Fault(fault)
					s, _ := newSender(t, q, reprise.SenderConfig{Requests: 1})
					messages := outgoing(kit.Numbered(15)...)
					if attributes != nil {
						messages = grouped("g", kit.Numbered(15)...) // one under way, the rest behind it
					}
					var a answers
					for _, m := range messages[:12] {
						if err := s.Submit(t.Context(), m, a.add); err != nil {
							t.Fatal(err)
						}
					}
					var sending sync.WaitGroup
					sending.Go(func() {
						sent, err := s.Send(t.Context(), messages[12:]...)
						if len(sent) != 3 || !errors.Is(err, reprise.ErrSenderClosed) {
							t.Errorf("%v, %v; want the sender's end", sent, err)
						}
					})
					time.Sleep(10 * time.Second)
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
					defer cancel()
					start := time.Now()
					unsent, err := s.Close(ctx)
					if took := time.Since(start); took != 5*time.Second || !errors.Is(err, reprise.ErrSenderClosed) {
						t.Errorf("close: %v after %v", err, took)
					}
					sending.Wait()
					left := make(map[string]bool)
					for _, u := range unsent {
						left[u.Message.Body] = true
						if !errors.Is(u.Err, reprise.ErrSenderClosed) {
							t.Errorf("message %s: %v", u.Message.Body, u.Err)
						}
						if inQueue := slices.Contains(queued(q), u.Message.Body); inQueue && !errors.Is(u.Err, reprise.ErrUnconfirmed) {
							t.Errorf("message %s is in the queue, and its error does not say that it may be: %v", u.Message.Body, u.Err)
						}
					}
					if told := a.all(); len(left) != 15 || len(unsent) != 15 || len(told) != 12 {
						t.Errorf("%d of 15 messages given back, %d of 12 told", len(unsent), len(told))
					}
				})
			})
		}
	}
}

// TestSenderSaysWhatFailedWhileItCloses: Close returns each message that fails from then on, also those whose
// callers give up first: one in a request, one in backoff.
func TestSenderSaysWhatFailedWhileItCloses(t *testing.T) {
	for _, fault := range []sqsserver.Fault{{Kind: sqsserver.FaultSlowReply, Delay: 10 * time.Second}, {Kind: sqsserver.FaultThrottle}} {
		synctest.Test(t, func(t *testing.T) {
			q := reprisetest.NewQueue(t, nil)
			q.Fault(fault)
			s, _ := newSender(t, q, reprise.SenderConfig{})
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			var sent []reprise.Sent
			var sending sync.WaitGroup
			sending.Go(func() { sent, _ = s.Send(ctx, outgoing("order")...) })
			time.Sleep(time.Second)
			unsent, err := s.Close(t.Context())
			sending.Wait()
			if len(unsent) != 1 || err == nil || !errors.Is(unsent[0].Err, context.DeadlineExceeded) || unsent[0].Err.Error() != sent[0].Err.Error() {
				t.Errorf("%s: Close returns %v, %v; the caller was told %v", fault.Kind, unsent, err, sent)
			}
		})
	}
}

// TestSenderToldFunctionsDoNoHarm: a function that panics, ends its goroutine or submits the next
// message when there is no room delays no other result.
func TestSenderToldFunctionsDoNoHarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		s, _ := newSender(t, q, reprise.SenderConfig{MaxWaiting: 10, Requests: 1, Logger: slog.New(slog.DiscardHandler)})
		var a answers
		bad := []func(){
			func() { panic("no") },
			runtime.Goexit,
			func() {
				if err := s.Submit(t.Context(), reprise.Outgoing{Body: "next"}, a.add); err != nil {
					t.Error(err)
				}
			},
		}
		const messages = 300
		for i := range messages {
			err := s.Submit(t.Context(), reprise.Outgoing{Body: fmt.Sprint(i)}, func(sent reprise.Sent) {
				a.add(sent)
				bad[i%len(bad)]()
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		time.Sleep(time.Minute)
		if n, want := len(a.all()), messages+messages/3; n != want || len(q.Messages()) != want {
			t.Errorf("%d answers, %d messages in the queue; want %d", n, len(q.Messages()), want)
		}
		kit.CloseSender(t, s)
	})
}

// TestSenderTellsInItsOwnGoroutines: Close returns the messages that were not sent, even if
// functions that get their results panic or do not return.
func TestSenderTellsInItsOwnGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := senderThrough(t, sendFunc(func(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
			return nil, errors.New("no connection")
		}), reprisetest.NewQueue(t, nil).URL(), reprise.SenderConfig{Linger: -1})
		if err := s.Submit(t.Context(), reprise.Outgoing{Body: "x"}, func(reprise.Sent) { runtime.Goexit() }); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // it is in backoff
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		returned := false
		var closing sync.WaitGroup
		closing.Go(func() {
			unsent, err := s.Close(ctx)
			returned = len(unsent) == 1 && err != nil
		})
		closing.Wait()
		if !returned {
			t.Error("Close did not return the message that was not sent")
		}
	})
}

// TestSenderSurvivesItsClient: if a client panics, ends its goroutine or leaves an entry out of its
// reply, the request counts as failed.
func TestSenderSurvivesItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		replies := []func(*sqs.SendMessageBatchOutput) *sqs.SendMessageBatchOutput{
			func(*sqs.SendMessageBatchOutput) *sqs.SendMessageBatchOutput { panic("no") },
			func(*sqs.SendMessageBatchOutput) *sqs.SendMessageBatchOutput { runtime.Goexit(); return nil },
			func(*sqs.SendMessageBatchOutput) *sqs.SendMessageBatchOutput { return nil },
			func(out *sqs.SendMessageBatchOutput) *sqs.SendMessageBatchOutput {
				out.Successful = out.Successful[:1]
				out.Successful[0].Id = aws.String("7")
				return out
			},
		}
		n := 0
		s := senderThrough(t, sendFunc(func(ctx context.Context, in *sqs.SendMessageBatchInput, opts ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
			out, err := q.Client().SendMessageBatch(ctx, in, opts...)
			if n++; n <= len(replies) {
				return replies[n-1](out), err
			}
			return out, err
		}), q.URL(), reprise.SenderConfig{})
		if _, err := s.Send(t.Context(), outgoing("1", "2")...); err != nil || n != len(replies)+1 {
			t.Errorf("%v after %d requests", err, n)
		}
		kit.CloseSender(t, s)
	})
}

// sendFunc is a SenderClient.
type sendFunc func(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)

func (f sendFunc) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, opts ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	return f(ctx, in, opts...)
}

// TestSenderKeepsNoGoroutineWhileIdle: the sender's goroutines end with its last message, not only
// with Close.
func TestSenderKeepsNoGoroutineWhileIdle(t *testing.T) {
	q := reprisetest.NewQueue(t, nil)
	before := runtime.NumGoroutine()
	s, _ := newSender(t, q, reprise.SenderConfig{})
	for range 20 {
		if _, err := s.Send(t.Context(), outgoing(kit.Numbered(200)...)...); err != nil {
			t.Fatal(err)
		}
	}
	for runtime.NumGoroutine() > before { // until the test's own limit: the last is on its way out
		runtime.Gosched()
	}
	kit.CloseSender(t, s)
}
