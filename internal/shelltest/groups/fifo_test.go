package groups

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestFIFOOrderSurvivesFailures: groups run at the same time, and each keeps its order through
// failures, refused settlements, lost leases, panics and a restart. A run counts when it succeeds:
// messages must succeed in order.
func TestFIFOOrderSurvivesFailures(t *testing.T) {
	for name, faults := range map[string][]sqsserver.Fault{
		"no faults":        nil,
		"entries fail":     {{Kind: sqsserver.FaultFailEntry, Every: 3}},
		"leases are lost":  {{Kind: sqsserver.FaultLoseLease, Every: 7, Limit: 20}},
		"requests fail":    {{Kind: sqsserver.FaultServerError, Every: 4}},
		"replies are lost": {{Kind: sqsserver.FaultLoseReply, Action: "DeleteMessageBatch", Every: 5}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, kit.FIFOQueue)
				q.Fault(faults...)
				var mu sync.Mutex
				succeeded := make(map[string][]string)
				running := make(map[string]int)
				peak, tries := 0, 0
				h := reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
					mu.Lock()
					running[m.GroupID]++
					if running[m.GroupID] > 1 {
						t.Errorf("two messages of group %s run at once", m.GroupID)
					}
					peak = max(peak, len(running))
					tries++
					try := tries
					mu.Unlock()
					time.Sleep(50 * time.Millisecond)
					mu.Lock()
					defer mu.Unlock()
					if running[m.GroupID]--; running[m.GroupID] == 0 {
						delete(running, m.GroupID)
					}
					switch {
					case try%11 == 0:
						panic("burst")
					case try%5 == 0:
						return kit.ErrUnavailable
					}
					succeeded[m.GroupID] = append(succeeded[m.GroupID], m.Body)
					return nil
				})
				cfg := reprise.Config{Lease: 10 * time.Second, Retry: retry.Policy{Backoff: retry.Exponential{Base: time.Second}, MaxAttempts: -1}}
				c := q.Consume(h, cfg)
				kit.Groups(q, "abc", 20)
				time.Sleep(2 * time.Second)
				c.Stop()
				q.Consume(h, cfg)
				q.WaitEmpty(24 * time.Hour)

				for g, bodies := range succeeded {
					// A message whose delete was refused may succeed again, at once or before any other: never
					// after a later one.
					once := slices.Compact(slices.Clone(bodies))
					if !slices.IsSorted(once) || len(once) != 20 {
						t.Errorf("group %s succeeded as %v", g, bodies)
					}
				}
				if peak < 2 {
					t.Error("groups did not run side by side")
				}
			})
		})
	}
}

// TestFIFOSiblingsCostNoAttempts: messages behind a failing one are received with it again and
// again; when their turn comes it is their first run.
func TestFIFOSiblingsCostNoAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, kit.FIFOQueue)
		var j kit.Journal
		q.Consume(j.Handler(func(_ context.Context, m *reprise.Message) error {
			if m.Body == "a01" && m.Attempt < 8 {
				return kit.ErrUnavailable
			}
			return nil
		}), reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(time.Minute), MaxAttempts: 9}})
		kit.Groups(q, "a", 5)
		q.WaitEmpty(time.Hour)
		for _, body := range []string{"a02", "a03", "a04", "a05"} {
			runs := j.Of(body)
			if len(runs) != 1 || runs[0].Attempt != 1 {
				t.Errorf("%s ran as %+v, want one first attempt", body, runs)
			}
		}
		if runs := j.Of("a01"); len(runs) != 8 {
			t.Errorf("a01 ran %d times, want 8", len(runs))
		}
	})
}

// TestFIFOSiblingsCostNoAttemptsElsewhere: the messages behind a failing head have been received by
// a process that has ended. The next process knows only how often they were received, and the time
// since then, into which as many attempts would fit.
func TestFIFOSiblingsCostNoAttemptsElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, kit.FIFOQueue)
		cfg := reprise.Config{Retry: kit.EveryMinute(4), FIFO: reprise.FIFOBlock}
		kit.Groups(q, "a", 2)
		gone := q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return kit.ErrUnavailable }), cfg)
		time.Sleep(2*time.Minute + 30*time.Second)
		gone.Stop()
		var j kit.Journal
		q.Consume(j.Handler(func(context.Context, *reprise.Message) error { return nil }), cfg)
		q.WaitEmpty(time.Hour)
		runs := j.Of("a02")
		if len(runs) != 1 || runs[0].Receives < 3 {
			t.Fatalf("a02 ran as %+v, want one run after receives for nothing: the test shows nothing", runs)
		}
		if runs[0].Attempt != 1 {
			t.Errorf("a02 ran as attempt %d, want 1: it has never run", runs[0].Attempt)
		}
	})
}

// TestFIFOOrderIsOfSequenceNumbers: a message that arrives before its turn, because a proxy changes
// the order or receives overtake each other, waits for its turn.
func TestFIFOOrderIsOfSequenceNumbers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, kit.FIFOQueue)
		kit.Groups(q, "a", 10)
		shuffles := &kit.Spy{Client: q.Direct()}
		shuffles.Receive = func(ctx context.Context, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
			out, err := shuffles.Client.ReceiveMessage(ctx, in)
			if err == nil && len(out.Messages) > 2 {
				slices.Reverse(out.Messages[1:])
				for _, m := range out.Messages { // numbers of as many digits as they need
					m.Attributes["SequenceNumber"] = strings.TrimLeft(strings.TrimPrefix(*m.Body, "a"), "0")
				}
			}
			return out, err
		}
		var j kit.Journal
		q.ConsumeWith(shuffles, j.Handler(kit.Succeed), reprise.Config{Concurrency: 1})
		q.WaitEmpty(time.Hour)
		if got := j.Bodies(); len(got) != 10 || !slices.IsSorted(got) {
			t.Errorf("runs %v, want all ten in their order", got)
		}
	})
}

// TestFIFODeadLetterLetsTheGroupGoOn: the group goes on after a dead letter, which keeps its group.
func TestFIFODeadLetterLetsTheGroupGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, kit.FIFOQueue)
		dead := q.NewDeadLetterQueue(100)
		var j kit.Journal
		q.Consume(j.Handler(func(_ context.Context, m *reprise.Message) error {
			if m.Body == "a02" {
				return reprise.Permanent(kit.ErrUnavailable)
			}
			return nil
		}), reprise.Config{})
		kit.Groups(q, "a", 4)
		q.WaitEmpty(time.Hour)
		if got := j.Bodies(); !slices.Equal(got, []string{"a01", "a02", "a03", "a04"}) {
			t.Errorf("order %v", got)
		}
		letters := dead.Messages()
		if len(letters) != 1 || letters[0].Body != "a02" || letters[0].Group != "a" {
			t.Fatalf("dead letters %+v, want a02 of group a", letters)
		}
		if s := kit.StoryOf(t, letters[0]); s.Reason != "permanent" {
			t.Errorf("story %+v", s)
		}
	})
}

// TestFIFODeadLettersOfOneDeduplicationID: SQS has accepted two messages with one deduplication id,
// more than five minutes apart. Given up together they are two dead letters: with that id SQS would
// accept one, and drop the other.
func TestFIFODeadLettersOfOneDeduplicationID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, kit.FIFOQueue)
		dead := q.NewDeadLetterQueue(100)
		for _, body := range []string{"a01", "a02"} {
			q.SendMessage(sqsserver.SendMessageEntry{MessageBody: body, MessageGroupId: "a", MessageDeduplicationId: "order"})
			time.Sleep(6 * time.Minute)
		}
		q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			return reprise.Permanent(kit.ErrUnavailable)
		}), reprise.Config{})
		q.WaitEmpty(time.Hour)
		if letters := dead.Messages(); len(letters) != 2 {
			t.Errorf("dead letters %+v, want both messages", letters)
		}
	})
}

// TestFIFOLostSibling: the server takes back a message that waits behind the one that runs. Those
// behind it must not run before it is received again.
func TestFIFOLostSibling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, kit.FIFOQueue)
		kit.Groups(q, "a", 4) // first, so that one receive brings them all
		watch := &kit.Spy{Client: q.Direct()}
		watch.Hide = func(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
			if watch.HideCount() == 1 { // the first heartbeat: SQS refuses it for a02
				q.Release(idOf(q, "a02"))
			}
			return watch.Client.ChangeMessageVisibilityBatch(ctx, in)
		}
		var j kit.Journal
		c := q.ConsumeWith(watch, j.Handler(func(_ context.Context, m *reprise.Message) error {
			if m.Body == "a01" {
				time.Sleep(10 * time.Second)
			}
			return nil
		}), reprise.Config{Lease: 10 * time.Second})
		q.WaitEmpty(time.Hour)
		if got := j.Bodies(); !slices.Equal(got, []string{"a01", "a02", "a03", "a04"}) {
			t.Errorf("order %v", got)
		}
		if n := c.Status().Counts; n.Lost != 1 || n.Released == 0 {
			t.Errorf("counts %+v, want a02 lost and what is behind it released", n)
		}
	})
}

// idOf returns the id of the message in q with this body.
func idOf(q *reprisetest.Queue, body string) string {
	for _, m := range q.Messages() {
		if m.Body == body {
			return m.ID
		}
	}
	return ""
}

// TestFIFOBacklogOfFewGroups: SQS returns messages of one group while it has some, so that a
// receive brings one message to run and nine that wait behind it. These leave room for other
// groups: all workers have work, and groups whose messages take an hour each, or whose key is
// paused, delay no other group.
func TestFIFOBacklogOfFewGroups(t *testing.T) {
	const names = "abcdefghijklmnopqrst"
	for _, tt := range []struct {
		name    string
		slow    string // groups
		paused  string
		running int
	}{
		{name: "as many groups as workers", slow: names[:10], running: 10},
		{name: "more groups than workers", slow: names, running: 10},
		{name: "some slow groups", slow: names[:8], running: 8},
		{name: "some groups whose key is paused", paused: names[:8]},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, kit.FIFOQueue)
				var j kit.Journal
				c := q.Consume(j.Handler(func(_ context.Context, m *reprise.Message) error {
					if strings.Contains(tt.slow, m.GroupID) {
						time.Sleep(time.Hour)
					}
					return nil
				}), reprise.Config{StopBudget: 2 * time.Hour, Outage: reprise.Outage{Key: func(m *reprise.Message) string {
					if strings.Contains(tt.paused, m.GroupID) {
						return "paused"
					}
					return ""
				}}})
				if err := c.PauseKey("paused"); err != nil {
					t.Fatal(err)
				}
				kit.Groups(q, tt.slow+tt.paused, 20)
				time.Sleep(time.Minute)
				s := c.Status()
				if s.Running != tt.running {
					t.Errorf("%d of 10 workers run, want %d", s.Running, tt.running)
				}
				if s.Processing > 10*20 {
					t.Errorf("%d messages are held, want ten at most for each of 20 places", s.Processing)
				}
				if len(tt.slow) >= 10 {
					return
				}
				kit.Groups(q, "z", 20)
				time.Sleep(time.Minute)
				if n := len(slices.DeleteFunc(j.Bodies(), func(body string) bool { return body[0] != 'z' })); n != 20 {
					t.Errorf("%d of another group's 20 messages were handled within a minute", n)
				}
			})
		})
	}
}
