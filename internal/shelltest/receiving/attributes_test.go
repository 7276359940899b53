package receiving

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// keeping are the attributes of a queue that keeps messages for so long.
func keeping(d time.Duration, fifo bool) map[string]string {
	attributes := map[string]string{"MessageRetentionPeriod": strconv.Itoa(int(d / time.Second))}
	if fifo {
		attributes["FifoQueue"] = "true"
	}
	return attributes
}

// unreadable is a fault of so many reads of the attributes; 0: of all.
func unreadable(reads int) sqsserver.Fault {
	return sqsserver.Fault{Kind: sqsserver.FaultServerError, Action: "GetQueueAttributes", Limit: reads}
}

// waitOnce is a handler that asks for a wait at the first attempt.
func waitOnce(wait time.Duration) func(context.Context, *reprise.Message) error {
	return func(_ context.Context, m *reprise.Message) error {
		if m.Attempt == 1 {
			return reprise.RetryAfter(wait, kit.ErrUnavailable)
		}
		return nil
	}
}

// TestFailedReadLosesNoWait: while the queue's retention is not known because its attributes could
// not be read, no wait outlasts it: not after one failed read, nor if none ever succeeds.
func TestFailedReadLosesNoWait(t *testing.T) {
	const wait = 30 * time.Hour
	for _, retention := range []time.Duration{time.Hour, 4 * time.Hour} {
		for _, failed := range []int{1, 40, 0} {
			t.Run(fmt.Sprintf("%v, %d reads fail", retention, failed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					q := reprisetest.NewQueue(t, keeping(retention, false))
					q.Fault(unreadable(failed))
					var j kit.Journal
					q.Consume(j.Handler(waitOnce(wait)), reprise.Config{})
					q.Send("order")
					began := time.Now()
					q.WaitEmpty(wait + time.Hour)
					runs := j.All()
					if len(runs) != 2 {
						t.Fatalf("%d runs after %v, want 2: the message is lost", len(runs), time.Since(began))
					}
					if waited := runs[1].Started.Sub(runs[0].Started); waited < wait || waited > wait+time.Minute || runs[1].Attempt != 2 {
						t.Errorf("attempt %d after %v, want the second after %v", runs[1].Attempt, waited, wait)
					}
				})
			})
		}
	}
}

// TestDrawnReadsLoseNoWait: the same with settings that are drawn: retentions from minutes to days,
// waits shorter and longer than they, several processes, which are replaced now and then, and reads
// that fail at each of their starts.
func TestDrawnReadsLoseNoWait(t *testing.T) {
	for seed := range uint64(race.Fewer(200, 8)) {
		random := rand.New(rand.NewPCG(seed, 1))
		drawn := func(from, to time.Duration) time.Duration {
			return time.Duration(float64(from) * math.Pow(float64(to)/float64(from), random.Float64())).Round(time.Second)
		}
		var (
			retention = drawn(10*time.Minute, 14*24*time.Hour)
			wait      = drawn(time.Minute, 5*24*time.Hour)
			failed    = []int{1, 1 + random.IntN(5), 1 + random.IntN(100), 0}[random.IntN(4)]
			processes = 1 + random.IntN(3)
			restarts  = random.IntN(4)
			via       = []reprise.Via{reprise.ViaAuto, reprise.ViaRequeue}[random.IntN(2)]
		)
		t.Run(fmt.Sprintf("%d: retention %v, wait %v, %d reads fail, %d processes replaced %d times, via %v", seed, retention, wait, failed, processes, restarts, via), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, keeping(retention, false))
				var j kit.Journal
				start := func() (fleet []*reprisetest.Consumer) {
					q.Fault(unreadable(failed))
					for range processes {
						fleet = append(fleet, q.Consume(j.Handler(waitOnce(wait)), reprise.Config{Via: via, Retry: retry.Policy{MaxAge: -1}}))
					}
					return fleet
				}
				bodies := kit.Numbered(5)
				q.Send(bodies...)
				for range restarts {
					fleet := start()
					time.Sleep(wait / time.Duration(restarts+1))
					for _, c := range fleet {
						if random.IntN(2) == 0 {
							c.Crash()
						} else {
							c.Stop()
						}
					}
				}
				start()
				q.WaitEmpty(wait + time.Hour)
				for _, body := range bodies {
					runs := j.Of(body)
					if len(runs) != 2 || runs[1].Attempt != 2 {
						t.Fatalf("%s was run %d times, want twice: %+v", body, len(runs), runs)
					}
					if waited := runs[1].Started.Sub(runs[0].Started); waited < wait-wait/100 || waited > wait+2*time.Minute {
						t.Errorf("the second attempt at %s came after %v, want %v", body, waited, wait)
					}
				}
			})
		})
	}
}

// TestFailedReadWithoutCopies: where no copy can carry a wait on, a message whose retention is not
// known is hidden for minutes only, and when the retention is learnt it is dead-lettered with its story or,
// without a dead-letter queue, its expiry is announced.
func TestFailedReadWithoutCopies(t *testing.T) {
	for _, tt := range []struct {
		fifo, dead bool
	}{{false, true}, {true, true}, {false, false}, {true, false}} {
		t.Run(fmt.Sprintf("fifo %t, dead-letter queue %t", tt.fifo, tt.dead), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, keeping(time.Hour, tt.fifo))
				var dead *reprisetest.Queue
				if tt.dead {
					dead = q.NewDeadLetterQueue(100)
				}
				q.Fault(unreadable(1))
				announced := 0
				c := q.Consume(reprise.HandlerFunc(waitOnce(30*time.Hour)), reprise.Config{
					Via:      reprise.ViaVisibility,
					Observer: reprise.Observer{Expiring: func(context.Context, reprise.Expiring) { announced++ }},
				})
				message := sqsserver.SendMessageEntry{MessageBody: "order"}
				if tt.fifo {
					message.MessageGroupId, message.MessageDeduplicationId = "g", "1"
				}
				q.SendMessage(message)
				time.Sleep(30 * time.Minute)
				s := c.Status()
				if tt.dead {
					letters := dead.Messages()
					if len(letters) != 1 {
						t.Fatalf("%d dead letters, status %+v: want the message there", len(letters), s)
					}
					if story := kit.StoryOf(t, letters[0]); story.Reason != "retention" {
						t.Errorf("story %+v, want the reason retention", story)
					}
					return
				}
				if announced != 1 || s.Counts.Expiring != 1 || s.Health != reprise.HealthDegraded || !strings.Contains(s.Problem, "left to expire") {
					t.Errorf("%d expiries announced, status %+v: want one, and a degraded health", announced, s)
				}
			})
		})
	}
}

// TestRetentionUnknownForGood: without the permission to read the attributes, and without copies,
// long waits are carried out whole, since most queues keep messages for days; but they may be
// lost, which the health and the log say.
func TestRetentionUnknownForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		watch := &kit.Spy{Client: q.Direct()}
		watch.Attributes = func(context.Context, *sqs.GetQueueAttributesInput) (*sqs.GetQueueAttributesOutput, error) {
			return nil, &smithy.GenericAPIError{Code: "AccessDenied", Message: "not for you"}
		}
		var j kit.Journal
		c := q.ConsumeWith(watch, j.Handler(waitOnce(2*time.Hour)), reprise.Config{Via: reprise.ViaVisibility})
		q.Send("order")
		time.Sleep(time.Hour)
		if s := c.Status(); s.Health != reprise.HealthDegraded || !strings.Contains(s.Problem, "retention is not known") {
			t.Errorf("status %+v, want a degraded health that says the retention is not known", s)
		}
		time.Sleep(time.Hour + time.Minute)
		if runs := j.All(); len(runs) != 2 || runs[1].Receives != 2 {
			t.Errorf("runs %+v, want the second at the second receive", runs)
		}
		if s := c.Status(); s.Health != reprise.HealthOK {
			t.Errorf("status %+v, want no problem once nothing waits", s)
		}
	})
}

// TestRedrivePolicySetLater: a RedrivePolicy that is set while the consumer runs is acted on:
// messages that were kept for want of a dead-letter queue go there, with their stories, and so do
// later ones.
func TestRedrivePolicySetLater(t *testing.T) {
	for _, fifo := range []bool{false, true} {
		t.Run(fmt.Sprintf("fifo %t", fifo), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, keeping(96*time.Hour, fifo))
				c := q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
					return reprise.Permanent(kit.ErrUnavailable)
				}), reprise.Config{})
				send := func(body string) {
					message := sqsserver.SendMessageEntry{MessageBody: body}
					if fifo {
						message.MessageGroupId, message.MessageDeduplicationId = body, body
					}
					q.SendMessage(message)
				}
				send("before")
				time.Sleep(10 * time.Second)
				if n := c.Status().Counts; n.Kept != 1 {
					t.Fatalf("counts %+v, want the message kept: there is no dead-letter queue", n)
				}
				dead := q.NewDeadLetterQueue(100)
				time.Sleep(time.Hour)
				send("after")
				time.Sleep(10 * time.Second)
				letters := dead.Messages()
				if len(letters) != 2 {
					t.Fatalf("%d dead letters, want both messages there: %+v", len(letters), c.Status())
				}
				for _, letter := range letters {
					if story := kit.StoryOf(t, letter); story.Reason != "permanent" || story.Attempts != 1 {
						t.Errorf("story %+v, want one attempt, which failed for good", story)
					}
				}
			})
		})
	}
}

// TestRetentionLoweredLater: SetQueueAttributes applies a new retention to the messages that are in
// the queue already, the hidden ones too. A wait that has become too long for it is carried on by
// a copy, and is not shortened.
func TestRetentionLoweredLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var j kit.Journal
		q.Consume(j.Handler(waitOnce(3*time.Hour)), reprise.Config{})
		q.Send("order")
		time.Sleep(10 * time.Second)
		q.SetAttributes(keeping(time.Hour, false))
		q.WaitEmpty(4 * time.Hour)
		runs := j.All()
		if len(runs) != 2 {
			t.Fatalf("%d runs, want 2: the message is lost", len(runs))
		}
		if waited := runs[1].Started.Sub(runs[0].Started); waited < 3*time.Hour {
			t.Errorf("the second attempt came after %v, want 3h at least", waited)
		}
	})
}

// TestRetentionRaisedLater: the remedy of an announced expiry is to raise the retention; the health
// says no longer that the message expires.
func TestRetentionRaisedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, keeping(time.Hour, false))
		var j kit.Journal
		c := q.Consume(j.Handler(waitOnce(2*time.Hour)), reprise.Config{Via: reprise.ViaVisibility})
		q.Send("order")
		time.Sleep(10 * time.Second)
		if s := c.Status(); s.Counts.Expiring != 1 || s.Health != reprise.HealthDegraded {
			t.Fatalf("status %+v, want the expiry announced", s)
		}
		q.SetAttributes(keeping(24*time.Hour, false))
		time.Sleep(20 * time.Minute)
		if s := c.Status(); s.Health != reprise.HealthOK {
			t.Errorf("status %+v, want no problem: the queue now keeps the message for long enough", s)
		}
		time.Sleep(100 * time.Minute)
		if runs := j.All(); len(runs) != 2 {
			t.Errorf("%d runs, want 2", len(runs))
		}
	})
}

// TestMaxReceivesChangedLater: an unset MaxAttempts follows the queue's maxReceiveCount.
func TestMaxReceivesChangedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(5)
		var j kit.Journal
		q.Consume(j.Handler(func(context.Context, *reprise.Message) error { return kit.ErrUnavailable }), reprise.Config{
			Retry: retry.Policy{Backoff: retry.Constant(time.Second)},
		})
		time.Sleep(time.Second)
		q.SetAttributes(map[string]string{"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":"2"}`, dead.ARN())})
		time.Sleep(15 * time.Minute)
		q.Send("order")
		q.WaitEmpty(time.Minute)
		letters := dead.Messages()
		if len(letters) != 1 || len(j.All()) != 2 {
			t.Fatalf("%d dead letters after %d runs, want one after 2", len(letters), len(j.All()))
		}
		if story := kit.StoryOf(t, letters[0]); story.Attempts != 2 {
			t.Errorf("story %+v, want 2 attempts", story)
		}
	})
}

// TestDeadLetterQueueReplaced: when the dead-letter queue refuses a letter, the attributes are read
// again soon: the RedrivePolicy may name another queue by now.
func TestDeadLetterQueueReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		gone := q.NewDeadLetterQueue(5)
		q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			return reprise.Permanent(kit.ErrUnavailable)
		}), reprise.Config{})
		time.Sleep(time.Second)
		dead := q.NewDeadLetterQueue(5)
		if err := q.Server().DeleteQueue(t.Context(), &sqsserver.DeleteQueueInput{QueueUrl: gone.URL()}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute) // the attributes were not read just before
		q.Send("order")
		time.Sleep(2 * time.Minute)
		if letters := dead.Messages(); len(letters) != 1 {
			t.Errorf("%d dead letters in the new queue, want the message there", len(letters))
		}
	})
}

// TestAttributesAreReadAgain: the attributes of the queue and its dead-letter queue are read about
// every ten minutes, by several consumers not at the same times; findings are told once; and a
// read that fails changes nothing.
func TestAttributesAreReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(3)
		watch := &kit.Spy{Client: q.Direct()}
		var reads atomic.Int64
		fails := new(atomic.Bool)
		watch.Attributes = func(ctx context.Context, in *sqs.GetQueueAttributesInput) (*sqs.GetQueueAttributesOutput, error) {
			reads.Add(1)
			if fails.Load() {
				return nil, &smithy.GenericAPIError{Code: "RequestThrottled", Message: "slow down", Fault: smithy.FaultClient}
			}
			return watch.Client.GetQueueAttributes(ctx, in)
		}
		var found []plan.Finding
		q.ConsumeWith(watch, reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			return reprise.Permanent(kit.ErrUnavailable)
		}), reprise.Config{Observer: reprise.Observer{Finding: func(_ context.Context, f plan.Finding) { found = append(found, f) }}})
		time.Sleep(time.Second)
		first := len(found)
		if n := reads.Load(); n != 2 {
			t.Errorf("%d reads at the start, want one of each queue", n)
		}
		time.Sleep(100 * time.Minute)
		if n := reads.Load(); n < 2+2*8 || n > 2+2*13 {
			t.Errorf("%d reads in 100 minutes, want one of each queue in about ten minutes", n)
		}
		if len(found) != first {
			t.Errorf("%d findings, then %d: %+v, want each once", first, len(found), found[first:])
		}
		fails.Store(true)
		time.Sleep(30 * time.Minute)
		q.Send("order")
		time.Sleep(10 * time.Second)
		if letters := dead.Messages(); len(letters) != 1 {
			t.Errorf("%d dead letters, want one: what was read before still holds", len(letters))
		}
		if more := len(found) - first; more != 1 {
			t.Errorf("%d more findings %+v, want one, that the attributes cannot be read", more, found[first:])
		}
	})
}

// TestDeadLetterQueueThrottled: a dead-letter queue whose attributes could not be read once is not
// one that is not known: what was read before holds, and no finding comes and goes.
func TestDeadLetterQueueThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(3)
		watch := &kit.Spy{Client: q.Direct()}
		var throttled atomic.Bool
		watch.Attributes = func(ctx context.Context, in *sqs.GetQueueAttributesInput) (*sqs.GetQueueAttributesOutput, error) {
			if throttled.Load() && *in.QueueUrl == dead.URL() {
				return nil, &smithy.GenericAPIError{Code: "RequestThrottled", Message: "slow down", Fault: smithy.FaultClient}
			}
			return watch.Client.GetQueueAttributes(ctx, in)
		}
		codes := make(map[string]int)
		q.ConsumeWith(watch, reprise.HandlerFunc(kit.Succeed), reprise.Config{Observer: reprise.Observer{
			Finding: func(_ context.Context, f plan.Finding) { codes[f.Code]++ },
		}})
		time.Sleep(time.Second)
		throttled.Store(true)
		time.Sleep(15 * time.Minute)
		throttled.Store(false)
		time.Sleep(15 * time.Minute)
		for code, n := range codes {
			if n > 1 || code == plan.CodeDeadLetterQueueUnknown {
				t.Errorf("finding %s came %d times, want none that comes of a throttled read", code, n)
			}
		}
	})
}

// TestChangedAttributesAreLogged: each attribute that a consumer acts on is named in one line of the log when it has
// changed, with its value and the one before, and no other is.
func TestChangedAttributesAreLogged(t *testing.T) {
	for name, tt := range map[string]struct{ attribute, value, want string }{
		"delay":      {"DelaySeconds", "90", `DelaySeconds="1m30s, was 0s"`},
		"retention":  {"MessageRetentionPeriod", "3600", `MessageRetentionPeriod="1h0m0s, was 96h0m0s"`},
		"visibility": {"VisibilityTimeout", "45", `VisibilityTimeout="45s, was 30s"`},
		"nothing":    {"ReceiveMessageWaitTimeSeconds", "5", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, map[string]string{"MessageRetentionPeriod": "345600", "VisibilityTimeout": "30"})
				log := kit.NewLogged(slog.LevelInfo)
				q.Consume(reprise.HandlerFunc(kit.Succeed), reprise.Config{Logger: slog.New(log)})
				time.Sleep(time.Minute)
				q.SetAttributes(map[string]string{tt.attribute: tt.value})
				time.Sleep(time.Hour)
				const line = `msg="the queue's attributes have changed" `
				if tt.want == "" {
					if n := log.Count(line); n != 0 {
						t.Errorf("%d lines of a change that is of no interest", n)
					}
				} else if n := log.Count(line + tt.want + "\n"); n != 1 || log.Count(line) != 1 {
					t.Errorf("%d of %d lines have %s alone, want one line:\n%s", n, log.Count(line), tt.want, log.String())
				}
			})
		})
	}
}

// TestAnotherDeadLetterQueueThrottled: what was read of a dead-letter queue does not stand for another that has
// taken its place, and whose attributes could not be read yet: the finding that it has too is told.
func TestAnotherDeadLetterQueueThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		short := map[string]string{"MessageRetentionPeriod": "86400"}
		q.NewDeadLetterQueue(3).SetAttributes(short)
		watch := &kit.Spy{Client: q.Direct()}
		var throttled atomic.Pointer[string] // the URL of the queue; nil: none
		watch.Attributes = func(ctx context.Context, in *sqs.GetQueueAttributesInput) (*sqs.GetQueueAttributesOutput, error) {
			if url := throttled.Load(); url != nil && *in.QueueUrl == *url {
				return nil, &smithy.GenericAPIError{Code: "RequestThrottled", Message: "slow down", Fault: smithy.FaultClient}
			}
			return watch.Client.GetQueueAttributes(ctx, in)
		}
		var mu sync.Mutex
		var told []time.Duration // since the start
		began := time.Now()
		q.ConsumeWith(watch, reprise.HandlerFunc(kit.Succeed), reprise.Config{Observer: reprise.Observer{
			Finding: func(_ context.Context, f plan.Finding) {
				mu.Lock()
				defer mu.Unlock()
				if f.Code == plan.CodeDeadLetterRetention {
					told = append(told, time.Since(began))
				}
			},
		}})
		time.Sleep(time.Second)
		other := q.NewDeadLetterQueue(3)
		other.SetAttributes(short)
		url := other.URL()
		throttled.Store(&url)
		time.Sleep(15 * time.Minute)
		mu.Lock()
		if len(told) != 1 {
			t.Errorf("the finding was told at %v, want it once of the first dead-letter queue", told)
		}
		mu.Unlock()
		throttled.Store(nil)
		time.Sleep(15 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if len(told) != 2 || told[1] < 15*time.Minute {
			t.Errorf("the finding was told at %v, want it once more when the attributes of the other can be read", told)
		}
	})
}

// TestStopWithoutAttributes: a message that is given up waits for the attributes, since they may
// name a dead-letter queue. A stop does not wait for them: the message is hidden for minutes, and
// the next consumer, which may know them, gives it up.
func TestStopWithoutAttributes(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("given up during the stop %t", late), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				dead := q.NewDeadLetterQueue(5)
				q.Fault(unreadable(0))
				takes := time.Duration(0)
				if late {
					takes = 12 * time.Second
				}
				h := reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
					time.Sleep(takes)
					return reprise.Permanent(kit.ErrUnavailable)
				})
				c := q.Consume(h, reprise.Config{LongPoll: time.Second})
				q.Send("order")
				time.Sleep(10 * time.Second)
				began := time.Now()
				r := c.Stop()
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("the stop took %v, want no wait for the attributes", took)
				}
				if len(r.Unsettled) != 0 || r.Counts.Kept != 1 {
					t.Errorf("report %+v, want the message settled", r)
				}
				q.Fault()
				takes = 0
				q.Consume(h, reprise.Config{})
				q.WaitEmpty(20 * time.Minute)
				if letters := dead.Messages(); len(letters) != 1 {
					t.Errorf("%d dead letters, want the message there", len(letters))
				}
			})
		})
	}
}
