package settling

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	awsretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestLostRepliesDoNotMultiply: while many replies are lost, leases too, and processes are killed, a
// message has at most one copy more for each lost reply to a send of it and each crash, no message is taken for one
// that kills its process, and all are done when the policy says.
func TestLostRepliesDoNotMultiply(t *testing.T) {
	for name, lossy := range map[string]lossyFleet{
		"a sixth of all replies":                      {processes: 1, replies: .17},
		"a sixth of all replies, of three processes":  {processes: 3, replies: .17},
		"some replies and leases, and three crashes":  {processes: 1, replies: .05, leases: .05, crashes: 3},
		"a fiftieth of all replies, of six processes": {processes: 6, replies: .02},
	} {
		for seed := range uint64(race.Fewer(10, 1)) {
			t.Run(fmt.Sprint(name, "/", seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { lossy.run(t, seed) })
			})
		}
	}
}

// lossyFleet is a fleet whose requests to SQS are carried out, and often not answered.
type lossyFleet struct {
	processes, crashes int
	replies, leases    float64 // the share that is lost
}

const (
	lossyMessages = 20
	lossyFailures = 8 // of each message, before it succeeds
	lossyBackoff  = 20 * time.Minute
	lossyRun      = 200 * time.Second // of a handler, at most
	lossyCopies   = 10                // of a message, at most: their number does not grow
	lossyTurn     = 2 * time.Hour     // for which a message that was to run alone, and could not, waits at most
)

func (f lossyFleet) run(t *testing.T, seed uint64) {
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	server := sqsserver.New(sqsserver.Config{Seed: seed + 1, NoCooldown: true, Logger: quiet})
	t.Cleanup(func() { _ = server.Close() })
	q := reprisetest.NewQueueOn(t, server, nil)
	dead := q.NewDeadLetterQueue(1000)
	random := rand.New(rand.NewPCG(seed, 1))

	var mu sync.Mutex
	unanswered, runs := make(map[string]int), make(map[string]int) // by body: its sends, its runs
	watch := &kit.Spy{Client: q.Direct()}
	watch.Send = func(ctx context.Context, in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
		out, err := watch.Client.SendMessageBatch(ctx, in)
		mu.Lock()
		defer mu.Unlock()
		for _, e := range in.Entries {
			if err != nil {
				unanswered[*e.MessageBody]++
			}
		}
		return out, err
	}
	handler := reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		mu.Lock()
		took := time.Duration(random.Int64N(int64(lossyRun)))
		mu.Unlock()
		select {
		case <-time.After(took):
		case <-ctx.Done():
			return ctx.Err()
		}
		mu.Lock()
		defer mu.Unlock()
		if runs[m.Body]++; runs[m.Body] <= lossyFailures {
			return kit.ErrUnavailable
		}
		return nil
	})
	cfg := reprise.Config{
		Concurrency: 12,
		LongPoll:    5 * time.Second,
		Retry:       retry.Policy{Backoff: retry.Constant(lossyBackoff), Jitter: retry.None, MaxAttempts: 20},
		Logger:      quiet,
	}
	start := func() *reprisetest.Consumer { return q.ConsumeWith(watch, handler, cfg) }
	began, crashed := time.Now(), 0
	check := func() {
		mu.Lock()
		defer mu.Unlock()
		there := make(map[string]int)
		for _, m := range q.Messages() {
			there[m.Body]++
		}
		for body, n := range there {
			if n > min(1+unanswered[body]+crashed, lossyCopies) {
				t.Fatalf("after %v: %s is there %d times, after %d sends without a reply", time.Since(began), body, n, unanswered[body])
			}
		}
	}

	q.Fault(
		sqsserver.Fault{Kind: sqsserver.FaultLoseReply, Probability: f.replies},
		sqsserver.Fault{Kind: sqsserver.FaultLoseLease, Probability: max(f.leases, 1e-9)})
	for i := range lossyMessages {
		q.Send(fmt.Sprint("m", i))
	}
	var fleet []*reprisetest.Consumer
	for range f.processes {
		fleet = append(fleet, start())
	}
	const faulty = 6 * time.Hour
	for i := range 72 {
		time.Sleep(faulty / 72)
		check()
		if i < f.crashes*20 && i%20 == 10 {
			fleet[0].Crash()
			crashed++ // between the send of a copy and the delete of its original, at worst
			fleet[0] = start()
		}
	}
	q.Fault()
	for _, letter := range dead.Messages() {
		for _, a := range letter.Attributes {
			t.Errorf("dead letter %s: %s %s", letter.Body, a.Name, a.StringValue)
		}
	}
	const patience = time.Hour
	time.Sleep(lossyFailures*(lossyBackoff+lossyRun) + patience)
	for _, m := range q.Messages() {
		if !strings.Contains(fmt.Sprint(m.Attributes), `"alone":1`) {
			t.Errorf("%v after the faults %s is still there, and does not wait for its turn alone: %+v", time.Since(began)-faulty, m.Body, m)
		}
	}
	q.WaitEmpty(lossyTurn - patience)
}

// TestLostRepliesThatTheSDKRepeats: the SDK repeats a receive whose reply is lost, and the consumer sees
// only the reply that came. No message is taken for one that kills its process, and none is copied.
func TestLostRepliesThatTheSDKRepeats(t *testing.T) {
	for run := range 4 { // in one run of forty the losses are few
		t.Run(strconv.Itoa(run), testLostRepliesThatTheSDKRepeats)
	}
}

func testLostRepliesThatTheSDKRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.NewDeadLetterQueue(1000)
		watch := &kit.Spy{Client: q.Client(func(o *sqs.Options) {
			o.Retryer = awsretry.NewStandard(func(o *awsretry.StandardOptions) {
				o.MaxAttempts, o.RateLimiter = 20, ratelimit.None // it never gives up
				o.Backoff = awsretry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 100 * time.Millisecond, nil })
			})
		})}
		var copies atomic.Int32
		watch.Send = func(ctx context.Context, in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
			copies.Add(int32(len(in.Entries)))
			return watch.Client.SendMessageBatch(ctx, in)
		}
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultLoseReply, Action: "ReceiveMessage", Probability: .3})
		q.ConsumeWith(watch, reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return kit.ErrUnavailable }), reprise.Config{
			LongPoll: 5 * time.Second,
			Retry:    retry.Policy{Backoff: retry.Constant(5 * time.Minute), Jitter: retry.None, MaxAttempts: 30},
			Logger:   slog.New(slog.NewTextHandler(io.Discard, nil)),
		})
		for i := range 40 {
			q.Send(fmt.Sprint(i))
		}
		time.Sleep(2 * time.Hour)
		if n := copies.Load(); n > 0 {
			t.Errorf("%d copies were sent", n)
		}
	})
}
