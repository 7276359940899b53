package settling

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
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

// shortLived are the attributes of a queue that keeps messages for six hours.
func shortLived(fifo bool) map[string]string {
	attributes := map[string]string{"MessageRetentionPeriod": "21600"}
	if fifo {
		attributes["FifoQueue"] = "true"
	}
	return attributes
}

// denySends is a client that may not send to q.
func denySends(q *reprisetest.Queue) *kit.Spy {
	s := &kit.Spy{Client: q.Direct()}
	s.Send = func(ctx context.Context, in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
		if *in.QueueUrl == q.URL() {
			return nil, &smithy.GenericAPIError{Code: "AccessDenied", Message: "not for you"}
		}
		return s.Client.SendMessageBatch(ctx, in)
	}
	return s
}

// TestWaitBeyondRetentionIsDeadLettered: if no copy can replace a message whose wait would end
// after its queue has dropped it, or shortly before, it is dead-lettered now, with a reason of its
// own. Shorter waits are carried out.
func TestWaitBeyondRetentionIsDeadLettered(t *testing.T) {
	for _, test := range []struct {
		name   string
		fifo   bool
		via    reprise.Via
		denied bool
		wait   time.Duration
		letter bool
	}{
		{"on a FIFO queue", true, reprise.ViaAuto, false, 8 * time.Hour, true},
		{"by visibility only", false, reprise.ViaVisibility, false, 8 * time.Hour, true},
		{"copies are denied", false, reprise.ViaAuto, true, 8 * time.Hour, true},
		{"too late for anybody to receive it", true, reprise.ViaAuto, false, 5*time.Hour + 50*time.Minute, true},
		{"in time on a FIFO queue", true, reprise.ViaAuto, false, 5 * time.Hour, false},
		{"in time by visibility only", false, reprise.ViaVisibility, false, 5 * time.Hour, false},
		{"a tenth of the retention before its end", false, reprise.ViaVisibility, false, 5*time.Hour + 22*time.Minute, false},
		{"a copy can be sent", false, reprise.ViaAuto, false, 8 * time.Hour, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, shortLived(test.fifo))
				dead := q.NewDeadLetterQueue(100)
				client := reprise.Client(q.Direct())
				if test.denied {
					client = denySends(q)
				}
				began := time.Now()
				var j kit.Journal
				q.ConsumeWith(client, j.Handler(func(_ context.Context, m *reprise.Message) error {
					if m.Body == "m01" && m.Attempt == 1 {
						return reprise.RetryAfter(test.wait, kit.ErrUnavailable)
					}
					return nil
				}), reprise.Config{Via: test.via})
				m := sqsserver.SendMessageEntry{MessageBody: "m01"}
				if test.fifo {
					m.MessageGroupId, m.MessageDeduplicationId = "m", "m01"
				}
				q.SendMessage(m)
				q.WaitEmpty(24 * time.Hour)
				letters := dead.Messages()
				if !test.letter {
					runs := j.Of("m01")
					if len(runs) != 2 || len(letters) != 0 || time.Since(began) < test.wait {
						t.Errorf("%d runs, %d dead letters after %v: want a second run in time", len(runs), len(letters), time.Since(began))
					}
					return
				}
				if len(letters) != 1 || time.Since(began) > time.Minute {
					t.Fatalf("%d dead letters after %v, want one at once", len(letters), time.Since(began))
				}
				s := kit.StoryOf(t, letters[0])
				if s.Reason != "retention" || s.Attempts != 1 || !strings.HasSuffix(s.Error, kit.ErrUnavailable.Error()) {
					t.Errorf("story %+v", s)
				}
			})
		})
	}
}

// TestLastChanceIsAnHour: the last chance to receive a message is an hour at most, however long a
// queue keeps its messages.
func TestLastChanceIsAnHour(t *testing.T) {
	for wait, letters := range map[time.Duration]int{94*time.Hour + 58*time.Minute: 0, 95*time.Hour + 2*time.Minute: 1} {
		t.Run(wait.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, map[string]string{"MessageRetentionPeriod": "345600"}) // four days
				dead := q.NewDeadLetterQueue(100)
				q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
					if m.Attempt == 1 {
						return reprise.RetryAfter(wait, kit.ErrUnavailable)
					}
					return nil
				}), reprise.Config{Via: reprise.ViaVisibility})
				q.Send("order")
				time.Sleep(time.Minute)
				if n := len(dead.Messages()); n != letters {
					t.Errorf("%d dead letters, want %d", n, letters)
				}
				q.WaitEmpty(96 * time.Hour)
			})
		})
	}
}

// TestGroupGoesOnWhereItsHeadCannotWait: a head whose wait would exceed the retention is given up
// at once, so that the messages behind it do not wait for nothing.
func TestGroupGoesOnWhereItsHeadCannotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, shortLived(true))
		dead := q.NewDeadLetterQueue(100)
		kit.Groups(q, "a", 2)
		time.Sleep(2 * time.Hour)
		var j kit.Journal
		q.Consume(j.Handler(func(_ context.Context, m *reprise.Message) error {
			if m.Body == "a01" {
				return reprise.RetryAfter(5*time.Hour, kit.ErrUnavailable)
			}
			return nil
		}), reprise.Config{})
		q.WaitEmpty(24 * time.Hour)
		if letters := dead.Messages(); len(letters) != 1 || letters[0].Body != "a01" || len(j.Of("a02")) != 1 {
			t.Errorf("dead letters %+v, runs %v", letters, j.Bodies())
		}
	})
}

// expirations collects the calls of Observer.Expiring.
type expirations struct {
	mu     sync.Mutex
	events []reprise.Expiring
	when   []time.Time
}

func (e *expirations) observe(_ context.Context, x reprise.Expiring) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.events = append(e.events, x)
	e.when = append(e.when, time.Now())
}

// TestExpiryIsAnnounced: without a dead-letter queue a message that must wait beyond its retention
// is lost. The observer, the counts and the health announce it before it happens.
func TestExpiryIsAnnounced(t *testing.T) {
	for _, fifo := range []bool{true, false} {
		t.Run(map[bool]string{true: "FIFO", false: "by visibility only"}[fifo], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, shortLived(fifo))
				sent := time.Now()
				m := sqsserver.SendMessageEntry{MessageBody: "m01"}
				if fifo {
					m.MessageGroupId, m.MessageDeduplicationId = "m", "m01"
				}
				q.SendMessage(m)
				time.Sleep(time.Hour)
				var told expirations
				c := q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
					return reprise.RetryAfter(8*time.Hour, kit.ErrUnavailable)
				}), reprise.Config{Via: map[bool]reprise.Via{true: reprise.ViaAuto, false: reprise.ViaVisibility}[fifo], Observer: reprise.Observer{Expiring: told.observe}})
				time.Sleep(time.Minute)
				s := c.Status()
				if s.Health != reprise.HealthDegraded || !strings.Contains(s.Problem, "left to expire") || s.Counts.Expiring != 1 {
					t.Errorf("status %+v, want the expiry announced", s)
				}
				told.mu.Lock()
				if len(told.events) != 1 || told.events[0].Message.Body != "m01" || told.events[0].Outcome != reprise.OutcomeRetry || told.events[0].At.Sub(sent).Round(time.Second) != 6*time.Hour {
					t.Errorf("announced %+v, want m01 at %v", told.events, sent.Add(6*time.Hour))
				}
				told.mu.Unlock()
				time.Sleep(6 * time.Hour)
				if s := c.Status(); s.Health != reprise.HealthOK {
					t.Errorf("when it has been dropped: %v, %s", s.Health, s.Problem)
				}
			})
		})
	}
}

// TestExpiriesDoNotAddUp: the health counts the messages that are left to expire, not those that
// have been dropped.
func TestExpiriesDoNotAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, shortLived(false))
		c := q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			return reprise.RetryAfter(8*time.Hour, kit.ErrUnavailable)
		}), reprise.Config{Via: reprise.ViaVisibility})
		for range 3 {
			q.Send("order")
			time.Sleep(time.Minute)
			if s := c.Status(); s.Health != reprise.HealthDegraded || !strings.HasPrefix(s.Problem, "1 message") {
				t.Errorf("health %v, %q; want one message left to expire", s.Health, s.Problem)
			}
			q.WaitEmpty(7 * time.Hour)
		}
		if n := c.Status().Counts.Expiring; n != 3 {
			t.Errorf("%d expiries were announced in all, want 3", n)
		}
	})
}

// TestExpiryOfKeptMessagesIsAnnounced: a message that is given up without a
// dead-letter queue is hidden again and again; the last time is announced, hours
// before it is dropped.
func TestExpiryOfKeptMessagesIsAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, map[string]string{"MessageRetentionPeriod": "172800"})
		sent := time.Now()
		q.Send("bad")
		var told expirations
		c := q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			return reprise.Permanent(kit.ErrUnavailable)
		}), reprise.Config{Observer: reprise.Observer{Expiring: told.observe}})
		q.WaitEmpty(72 * time.Hour)
		told.mu.Lock()
		defer told.mu.Unlock()
		if len(told.events) != 1 || told.events[0].Outcome != reprise.OutcomeKeep {
			t.Fatalf("announced %+v, want one kept message", told.events)
		}
		at := sent.Add(48 * time.Hour)
		if ahead := at.Sub(told.when[0]); ahead < time.Hour || ahead > 13*time.Hour {
			t.Errorf("announced %v ahead", ahead)
		}
		if n := c.Status().Counts; n.Kept < 4 || n.Expiring != 1 {
			t.Errorf("counts %+v", n)
		}
	})
}

// TestShortWaitsNearRetentionAreDeadLettered: a message that fails near the end of its retention is
// not held for another attempt that could come too late.
func TestShortWaitsNearRetentionAreDeadLettered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, shortLived(true))
		dead := q.NewDeadLetterQueue(100)
		kit.Groups(q, "a", 2)
		time.Sleep(5*time.Hour + 45*time.Minute)
		var j kit.Journal
		q.Consume(j.Handler(kit.FailFirst("a01", 5)), reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(5 * time.Second)}})
		q.WaitEmpty(time.Minute)
		if letters := dead.Messages(); len(letters) != 1 || letters[0].Body != "a01" || len(j.Of("a02")) != 1 {
			t.Errorf("dead letters %+v, runs %v", letters, j.Bodies())
		}
	})
}

// TestExpiryByTheServersClock: this machine's clock is three hours behind SQS's, by which a message
// is dropped. The announced time is the one that this machine's clock will show when SQS drops the
// message, and it is not announced or dead-lettered sooner.
func TestExpiryByTheServersClock(t *testing.T) {
	const ahead = 3 * time.Hour
	for _, test := range []struct {
		name  string
		lives bool // to be run again in time
		wait  time.Duration
	}{
		{"in time", true, 5 * time.Hour},
		{"too late", false, 7 * time.Hour},
	} {
		for _, letters := range []bool{true, false} {
			t.Run(test.name+map[bool]string{true: ", with a dead-letter queue", false: ""}[letters], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					q := reprisetest.NewQueue(t, shortLived(false))
					var dead *reprisetest.Queue
					if letters {
						dead = q.NewDeadLetterQueue(100)
					}
					if err := q.Server().Advance(ahead); err != nil {
						t.Fatal(err)
					}
					sent := time.Now()
					var told expirations
					var j kit.Journal
					c := q.ConsumeWith(q.Client(), j.Handler(func(_ context.Context, m *reprise.Message) error {
						if m.Attempt == 1 {
							return reprise.RetryAfter(test.wait, kit.ErrUnavailable)
						}
						return nil
					}), reprise.Config{Via: reprise.ViaVisibility, Observer: reprise.Observer{Expiring: told.observe}})
					q.Send("order")
					time.Sleep(time.Minute)
					told.mu.Lock()
					events := told.events
					told.mu.Unlock()
					switch {
					case test.lives || letters:
						if len(events) != 0 {
							t.Errorf("announced %+v, want nothing", events)
						}
					case len(events) != 1:
						t.Errorf("announced %+v, want the message", events)
					default:
						if apart := events[0].At.Sub(sent.Add(6 * time.Hour)).Abs(); apart > 5*time.Second {
							t.Errorf("it is announced for %v, %v from when it is dropped by this machine's clock", events[0].At, apart)
						}
					}
					if letters && !test.lives {
						if got := dead.Messages(); len(got) != 1 || kit.StoryOf(t, got[0]).Reason != "retention" {
							t.Errorf("dead letters %+v, want the message, at once", got)
						}
					}
					q.WaitEmpty(8 * time.Hour)
					if n := len(j.All()); test.lives != (n == 2) {
						t.Errorf("%d runs, counts %+v", n, c.Status().Counts)
					}
				})
			})
		}
	}
}

// TestWaitsBeyondTheRetentionTakeFewCopies: a wait that is longer than any message of the queue can
// be hidden takes a copy at once, which carries the due time, and then one for each time that a
// copy comes near the end of its retention.
func TestWaitsBeyondTheRetentionTakeFewCopies(t *testing.T) {
	for i, tt := range []struct {
		retention string // in seconds
		receives  int    // the queue's limit; 0: none
		wait      time.Duration
		copies    int
	}{
		{"21600", 0, 4 * time.Hour, 0}, // six hours; a copy is sent an hour and a half before their end
		{"21600", 0, 5 * time.Hour, 2}, // which no copy is hidden for
		{"21600", 0, 8 * time.Hour, 2},
		{"21600", 0, 11 * time.Hour, 3},
		{"21600", 0, 30 * time.Hour, 7},                  //
		{"57600", 0, 30 * time.Hour, 3},                  // sixteen hours: hidden for twelve
		{"1209600", 0, 30 * time.Hour, 2},                // the longest; one before the last hide
		{"1209600", 0, 14*time.Hour + 14*time.Minute, 2}, //
		{"1209600", 0, 12*time.Hour + 14*time.Minute, 1}, // hidden once
		{"1209600", 0, 12*time.Hour + 16*time.Minute, 2}, //
		{"1209600", 0, 87262626262626, 2},                // a little more than twice twelve hours
		{"1209600", 0, 500 * time.Hour, 3},               //
		{"60", 0, 10 * time.Minute, 14},                  // the shortest
		{"60", 0, 44*time.Second + time.Millisecond, 0},  // until a quarter of it is left
		{"1209600", 1, time.Hour, 4},                     // nobody may receive a copy but to run it
		{"1209600", 2, 30 * time.Hour, 3},                // or to hide it once
		{"1209600", 3, 30 * time.Hour, 2},
		{"1209600", 3, 54 * time.Hour, 3},
		{"60", 1, 8 * time.Minute, 11},
	} {
		if i%race.Fewer(1, 4) != 0 {
			continue
		}
		t.Run(fmt.Sprintf("%v, %d receives, %ss", tt.wait, tt.receives, tt.retention), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, map[string]string{"MessageRetentionPeriod": tt.retention})
				if tt.receives > 0 {
					q.NewDeadLetterQueue(tt.receives)
				}
				client, received := &kit.Spy{Client: q.Direct()}, 0
				client.Receive = func(ctx context.Context, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
					out, err := client.Client.ReceiveMessage(ctx, in)
					if err == nil {
						received += len(out.Messages)
					}
					return out, err
				}
				var j kit.Journal
				began := time.Now()
				q.ConsumeWith(client, j.Handler(func(_ context.Context, m *reprise.Message) error {
					if m.Attempt == 1 {
						return reprise.RetryAfter(tt.wait, kit.ErrUnavailable)
					}
					if early := tt.wait - time.Since(began); early > 0 {
						t.Errorf("it runs %v early", early)
					} else if early < -time.Minute {
						t.Errorf("it runs %v late", -early)
					}
					return nil
				}), reprise.Config{Retry: retry.Policy{MaxAttempts: 2, MaxAge: -1}})
				q.Send("order")
				q.WaitEmpty(tt.wait + time.Hour)
				seconds, _ := strconv.Atoi(tt.retention)
				schedule := plan.NewSchedule(retry.Policy{Backoff: retry.Constant(tt.wait), Jitter: retry.None, MaxAttempts: 2, MaxAge: -1}, plan.Queue{MaxReceives: tt.receives, Retention: time.Duration(seconds) * time.Second}, plan.Settings{})
				if planned := schedule.Expected; planned.Copies != tt.copies || planned.Receives != received {
					t.Errorf("the plan counts %d copies and %d receives, want %d and %d", planned.Copies, planned.Receives, tt.copies, received)
				}
				if runs := j.Of("order"); len(runs) != 2 || len(client.Sends) != tt.copies {
					t.Errorf("%d runs, %d copies; want 2 and %d", len(runs), len(client.Sends), tt.copies)
				}
			})
		})
	}
}
