package receiving

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
)

// TestReceivesThatFailBackOff: failures that an operator must fix are retried about twice a minute,
// others after longer and longer waits. The first failure after a successful receive is retried at
// once, however many there were before.
func TestReceivesThatFailBackOff(t *testing.T) {
	passing := errors.New("connection reset")
	denied := &smithy.GenericAPIError{Code: "AccessDenied", Message: "not for you"}
	ms, s := time.Millisecond, time.Second
	for _, test := range []struct {
		name        string
		err         error
		least, most []time.Duration // between the failures and the receives that follow
	}{
		{"passing", passing,
			[]time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 10 * s, 10 * s},
			[]time.Duration{200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 12800 * ms, 20 * s, 20 * s}},
		{"lasting", denied, []time.Duration{15 * s, 15 * s, 15 * s}, []time.Duration{30 * s, 30 * s, 30 * s}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				watch := &kit.Spy{Client: q.Direct()}
				var mu sync.Mutex
				var asked []time.Time
				failing := len(test.least)
				watch.Receive = func(ctx context.Context, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
					mu.Lock()
					asked = append(asked, time.Now())
					n := len(asked)
					mu.Unlock()
					if n <= failing || n == failing+2 { // once more after one that succeeds
						return nil, test.err
					}
					return watch.Client.ReceiveMessage(ctx, in)
				}
				q.ConsumeWith(watch, reprise.HandlerFunc(kit.Succeed), reprise.Config{})
				time.Sleep(10 * time.Minute)
				mu.Lock()
				defer mu.Unlock()
				waits := func(i int) time.Duration { return asked[i+1].Sub(asked[i]) }
				for i := range failing {
					if w := waits(i); w < test.least[i] || w > test.most[i] {
						t.Errorf("after %d failures in a row the next receive came after %v, want %v to %v", i+1, w, test.least[i], test.most[i])
					}
				}
				if w := waits(failing + 1); w < test.least[0] || w > test.most[0] {
					t.Errorf("after one failure behind a success the next receive came after %v, want %v to %v", w, test.least[0], test.most[0])
				}
			})
		})
	}
}

// TestPollersAreBounded: for an hour there are more messages than handlers, whose times vary, so
// that receives are full and find room in turns. There are no more pollers than there can be
// receives under way.
func TestPollersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const concurrency, prefetch = 40, 20
		q := reprisetest.NewQueue(t, nil)
		var mu sync.Mutex
		runs := 0
		c := q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			mu.Lock()
			runs++
			slow := runs/500%2 == 0
			mu.Unlock()
			if slow {
				time.Sleep(2 * time.Second)
			}
			time.Sleep(time.Second)
			return nil
		}), reprise.Config{Concurrency: concurrency, Prefetch: prefetch})
		most := 0
		for range race.Fewer(360, 40) {
			q.Send(kit.Numbered(300)...)
			time.Sleep(10 * time.Second)
			most = max(most, c.Status().Pollers)
		}
		if want := (concurrency + prefetch) / 10; most < 2 || most > want {
			t.Errorf("up to %d pollers, want several, and %d at most", most, want)
		}
	})
}

// generous is a server that returns more messages than were requested.
type generous struct{ reprise.Client }

func (g generous) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, opts ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	out, err := g.Client.ReceiveMessage(ctx, in, opts...)
	if err != nil || len(out.Messages) == 0 {
		return out, err
	}
	again := *in
	again.WaitTimeSeconds = 0
	more, err := g.Client.ReceiveMessage(ctx, &again, opts...)
	if err == nil {
		out.Messages = append(out.Messages, more.Messages...)
	}
	return out, err
}

// TestMoreMessagesThanAskedFor: all messages that a server returns are processed.
func TestMoreMessagesThanAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		for i := range 40 {
			q.Send(fmt.Sprint(i))
		}
		ctx, stop := context.WithCancel(t.Context())
		c, err := reprise.New(generous{q.Direct()}, q.URL(), reprise.HandlerFunc(kit.Succeed), reprise.Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		var run sync.WaitGroup
		run.Go(func() { err = c.Run(ctx) })
		q.WaitEmpty(time.Minute)
		stop()
		run.Wait()
		if n := c.Report().Counts; err != nil || n.Received != 40 || n.Deleted != 40 {
			t.Errorf("%d received, %d deleted, %v: want 40 of each", n.Received, n.Deleted, err)
		}
	})
}
