package receiving

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestIdleStop: an idle consumer stops at once if the endpoint announces that it makes the messages
// of a cancelled receive visible again. Otherwise it waits until its long poll ends or only the
// grace is left, and reports it.
func TestIdleStop(t *testing.T) {
	keeping := func(t *testing.T) *reprisetest.Queue {
		server := sqsserver.New(sqsserver.Config{KeepUnwritten: true, Logger: slog.New(slog.DiscardHandler)})
		t.Cleanup(func() { _ = server.Close() })
		return reprisetest.NewQueueOn(t, server, nil)
	}
	ours := func(t *testing.T) *reprisetest.Queue { return reprisetest.NewQueue(t, nil) }
	sdk := func(q *reprisetest.Queue) reprise.Client { return q.Client() }
	for _, tt := range []struct {
		name   string
		queue  func(*testing.T) *reprisetest.Queue
		client func(*reprisetest.Queue) reprise.Client
		cfg    reprise.Config
		after  time.Duration // the time since the beginning of the poll
		most   time.Duration // that the stop takes
		least  time.Duration
		waits  bool
		cut    bool // the poll was
	}{
		{"our server", ours, sdk, reprise.Config{}, 5 * time.Second, time.Second, 0, false, false},
		{"our server, in the first poll", ours, sdk, reprise.Config{}, 0, time.Second, 0, false, false},
		{"our server, in the third", ours, sdk, reprise.Config{}, 45 * time.Second, time.Second, 0, false, false},
		{"one that does not say so", keeping, sdk, reprise.Config{}, 5 * time.Second, 15 * time.Second, 15 * time.Second, true, false},
		{"one that cannot say so", ours, func(q *reprisetest.Queue) reprise.Client { return q.Direct() }, reprise.Config{}, 5 * time.Second, 15 * time.Second, 15 * time.Second, true, false},
		{"until the grace", keeping, sdk, reprise.Config{StopBudget: 10 * time.Second}, 5 * time.Second, 8 * time.Second, 7 * time.Second, true, true},
		{"a short poll", keeping, sdk, reprise.Config{LongPoll: 3 * time.Second}, 5 * time.Second, time.Second, time.Second, true, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := tt.queue(t)
				var log bytes.Buffer
				var failed atomic.Int64
				tt.cfg.Observer.Call = func(_ context.Context, e reprise.Call) {
					if e.Err != nil {
						failed.Add(1)
					}
				}
				tt.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
				c := q.ConsumeWith(tt.client(q), reprise.HandlerFunc(kit.Succeed), tt.cfg)
				time.Sleep(tt.after)
				synctest.Wait() // the poll has begun
				report := c.Stop()
				if err := c.Err(); err != nil {
					t.Errorf("stopped with %v", err)
				}
				if report.Took < tt.least || report.Took > tt.most {
					t.Errorf("the stop took %v, want %v to %v", report.Took, tt.least, tt.most)
				}
				if failures := failed.Load(); (failures > 0) != tt.cut {
					t.Errorf("%d calls are said to have failed, want any: %v", failures, tt.cut)
				}
				if report.Stranded != tt.cut {
					t.Errorf("stranded: %v, want %v", report.Stranded, tt.cut)
				}
				if said := strings.Contains(log.String(), "level=INFO msg=\"stopping: waiting for the outstanding long poll"); said != tt.waits {
					t.Errorf("said that it waits: %v, want %v:\n%s", said, tt.waits, &log)
				}
			})
		})
	}
}

// TestCancelledPollLosesNothing: a message that arrives while an idle consumer stops at once is
// done or is back in the queue.
func TestCancelledPollLosesNothing(t *testing.T) {
	for ms := range 21 {
		after := time.Duration(90+ms) * time.Millisecond // about when the poll is cancelled
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				var done atomic.Int64
				c := q.ConsumeWith(q.Client(), reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
					done.Add(1)
					return nil
				}), reprise.Config{})
				time.Sleep(5 * time.Second)
				go func() {
					time.Sleep(after)
					q.Send("late")
				}()
				report := c.Stop()
				time.Sleep(time.Second)
				left := q.Messages()
				if int(done.Load())+len(left) != 1 {
					t.Fatalf("%d done, %d left, want one of both", done.Load(), len(left))
				}
				for _, m := range left {
					if m.State == sqsserver.InFlight {
						t.Errorf("%+v is hidden, after %v", m, report)
					}
				}
			})
		})
	}
}

// TestLongPollIsAsked: receives ask for the configured long poll, and an idle consumer with a short
// one receives no more often.
func TestLongPollIsAsked(t *testing.T) {
	for _, tt := range []struct {
		set  time.Duration
		want int32
	}{{0, 20}, {time.Second, 1}, {7 * time.Second, 7}, {20 * time.Second, 20}} {
		t.Run(tt.set.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				var receives atomic.Int32
				watch := &kit.Spy{Client: q.Direct()}
				watch.Receive = func(ctx context.Context, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
					if receives.Add(1); in.WaitTimeSeconds != tt.want {
						t.Errorf("a receive waits %d s, want %d", in.WaitTimeSeconds, tt.want)
					}
					return watch.Client.ReceiveMessage(ctx, in)
				}
				q.ConsumeWith(watch, reprise.HandlerFunc(kit.Succeed), reprise.Config{LongPoll: tt.set})
				time.Sleep(time.Hour - time.Millisecond)
				if n, want := receives.Load(), (3599+tt.want)/tt.want; n != want {
					t.Errorf("%d receives in an hour, want %d", n, want)
				}
			})
		})
	}
}
