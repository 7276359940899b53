package settling

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// TestExponentialBackoffByVisibility runs 1, 2, 4 ... 32768 seconds of backoff, 18 hours in all,
// and compares every attempt with the policy: no attempt is early, and none is late by more than a
// second and the call.
func TestExponentialBackoffByVisibility(t *testing.T) {
	for _, jitter := range []retry.Jitter{retry.None, retry.Full} {
		t.Run(jitter.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				policy := retry.Policy{Backoff: retry.Exponential{Base: time.Second}, Jitter: jitter, MaxAttempts: 20, MaxAge: 24 * time.Hour}
				var j kit.Journal
				q.ConsumeWith(q.Client(), j.Handler(func(_ context.Context, m *reprise.Message) error {
					if m.Attempt <= 16 {
						return kit.ErrUnavailable
					}
					return nil
				}), reprise.Config{Retry: policy})
				id := q.Send("order")[0]
				q.WaitEmpty(25 * time.Hour)

				runs := j.All()
				if len(runs) != 17 {
					t.Fatalf("%d attempts, want 17", len(runs))
				}
				for n := 1; n < len(runs); n++ {
					if runs[n].Attempt != n+1 {
						t.Errorf("run %d was called attempt %d", n+1, runs[n].Attempt)
					}
					want := policy.Wait(id, n)
					if jitter == retry.None && want != time.Second<<(n-1) {
						t.Fatalf("the policy's wait %d is %v", n, want)
					}
					waited := runs[n].Started.Sub(runs[n-1].Started)
					if waited < want {
						t.Errorf("attempt %d came %v early: after %v instead of %v", n+1, want-waited, waited, want)
					}
					if late := waited - want; late >= time.Second+300*time.Millisecond {
						t.Errorf("attempt %d came %v late: after %v instead of %v", n+1, late, waited, want)
					}
				}
			})
		})
	}
}

// TestTwelveHoursCountFromTheReceive: the 12 hours for which SQS hides a message count from its
// receive. A handler that ran for 40 minutes before it failed leaves 11 h 20 min. SQS would refuse
// a longer request, and then only the lease's minute would be left.
func TestTwelveHoursCountFromTheReceive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var j kit.Journal
		c := q.Consume(j.Handler(func(context.Context, *reprise.Message) error {
			time.Sleep(40 * time.Minute)
			if len(j.All()) == 1 {
				return kit.ErrUnavailable
			}
			return nil
		}), reprise.Config{
			Retry: retry.Policy{Backoff: retry.Constant(12 * time.Hour), Jitter: retry.None},
		})
		q.Send("order")
		q.WaitEmpty(26 * time.Hour)

		runs := j.All()
		if len(runs) != 2 {
			t.Fatalf("%d attempts, want 2", len(runs))
		}
		// The wait takes two receives, since 40 minutes are more than may be cut.
		failed := runs[0].Started.Add(40 * time.Minute)
		if got := runs[1].Started.Sub(failed); got < 12*time.Hour || got > 12*time.Hour+2*time.Second {
			t.Errorf("the second attempt came %v after the first failed, want 12h", got)
		}
		if n := c.Status().Counts.Lost; n != 0 {
			t.Errorf("SQS refused %d settlements", n)
		}
	})
}

// TestSlowPollIsNoFailure: SQS answers a long poll after its 20 s, and the reply takes a few
// seconds more to arrive.
func TestSlowPollIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		far := &kit.Spy{Client: q.Direct()}
		far.Receive = func(ctx context.Context, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
			out, err := far.Client.ReceiveMessage(ctx, in)
			time.Sleep(5 * time.Second)
			return out, errors.Join(err, ctx.Err())
		}
		c := q.ConsumeWith(far, reprise.HandlerFunc(kit.Succeed), reprise.Config{})
		time.Sleep(10 * time.Minute)
		if s := c.Status(); s.Health != reprise.HealthOK {
			t.Errorf("status %+v, want it healthy", s)
		}
	})
}

// TestWaitOfTwelveHoursIsOneWait: SQS hides a message for a few seconds less than twelve hours. The
// message is not received and hidden again for the rest.
func TestWaitOfTwelveHoursIsOneWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var j kit.Journal
		c := q.Consume(j.Handler(func(_ context.Context, m *reprise.Message) error {
			return kit.FailBut(m.Attempt == 2, kit.ErrUnavailable)
		}), reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(12 * time.Hour), Jitter: retry.None}})
		q.Send("order")
		q.WaitEmpty(24 * time.Hour)
		runs := j.All()
		if len(runs) != 2 || runs[1].Receives != 2 || c.Status().Counts.Parked != 0 {
			t.Fatalf("runs %+v, counts %+v; want two of two receives, and nothing parked", runs, c.Status().Counts)
		}
		if waited := runs[1].Started.Sub(runs[0].Started); waited < 12*time.Hour-time.Minute {
			t.Errorf("waited %v, want twelve hours but for a minute at most", waited)
		}
	})
}

// TestWaitsBeyondTwelveHours: SQS hides a message for 12 hours at most, so a longer wait takes
// several receives. They do not count as attempts, however many there are, and together they last
// as long as the wait, less at most a hundredth.
func TestWaitsBeyondTwelveHours(t *testing.T) {
	for _, wait := range []time.Duration{24 * time.Hour, 40 * time.Hour, 96 * time.Hour} {
		t.Run(wait.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, map[string]string{"MessageRetentionPeriod": "1209600"})
				dead := q.NewDeadLetterQueue(100)
				var j kit.Journal
				q.Consume(j.Handler(func(_ context.Context, m *reprise.Message) error {
					if m.Receives == 1 {
						return reprise.RetryAfter(wait, kit.ErrUnavailable)
					}
					return nil
				}), reprise.Config{Retry: retry.Policy{MaxAge: -1, MaxAttempts: 2}})
				q.Send("order")
				q.WaitEmpty(wait + time.Hour)
				runs := j.All()
				if len(runs) != 2 || runs[1].Attempt != 2 || len(dead.Messages()) != 0 {
					t.Fatalf("runs %+v and %d dead letters, want two attempts and none", runs, len(dead.Messages()))
				}
				if waited := runs[1].Started.Sub(runs[0].Started); waited < wait-wait/100 {
					t.Errorf("ran again after %v, want %v", waited, wait)
				}
			})
		})
	}
}

// TestNothingRunsBeforeItsTime: SQS's clock and ours differ. A message that is received a little
// early waits here; one that is received much too early is hidden again. Neither runs before its
// time.
func TestNothingRunsBeforeItsTime(t *testing.T) {
	const wait = time.Minute
	for _, tt := range []struct {
		early time.Duration
		hides int
	}{{1900 * time.Millisecond, 1}, {2500 * time.Millisecond, 2}, {40 * time.Second, 2}} {
		t.Run(tt.early.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				watch := &kit.Spy{Client: q.Direct()}
				var j kit.Journal
				q.ConsumeWith(watch, j.Handler(func(_ context.Context, m *reprise.Message) error {
					if m.Attempt == 1 {
						return kit.ErrUnavailable
					}
					return nil
				}), reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(wait), Jitter: retry.None}})
				id := q.Send("order")[0]
				time.Sleep(wait - tt.early)
				q.Release(id)
				q.WaitEmpty(2 * time.Minute)
				runs := j.All()
				if len(runs) != 2 || runs[1].Attempt != 2 || runs[1].Receives < 2 {
					t.Fatalf("runs %+v, want two attempts", runs)
				}
				if waited := runs[1].Started.Sub(runs[0].Started); waited < wait || waited > wait+2*time.Second {
					t.Errorf("ran again after %v, want %v", waited, wait)
				}
				if n := watch.HideCount(); n != tt.hides {
					t.Errorf("%d visibility requests, want %d", n, tt.hides)
				}
			})
		})
	}
}
