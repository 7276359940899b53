package s3payload_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/s3payload"
	"github.com/reprise-sqs/reprise/envelope"
	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/middleware"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

var errWarehouse = errors.New("the warehouse is busy")

// shop is a queue with its dead-letter queue, and S3.
type shop struct {
	t       *testing.T
	q, dead *reprisetest.Queue
	store   *storage
	p       *s3payload.Payloads
	payload string
}

// newShop returns a shop with one order in its queue, whose payload is in S3. The test fails if an
// object is deleted while a message points to it.
func newShop(t *testing.T) *shop {
	t.Helper()
	q := reprisetest.NewQueue(t, nil)
	s := &shop{t: t, q: q, dead: q.NewDeadLetterQueue(100), store: newStorage(), payload: strings.Repeat("order ", 100)}
	s.p = newPayloads(t, s.store)
	s.store.deleting = func(at string) {
		_, key, _ := strings.Cut(at, "/")
		for _, m := range append(q.Messages(), s.dead.Messages()...) {
			if strings.Contains(m.Body, key) {
				t.Errorf("%s goes, and message %s points to it", at, m.ID)
			}
		}
	}
	if _, err := s.p.Send(t.Context(), newSender(t, q), reprise.Outgoing{Body: s.payload}); err != nil {
		t.Fatal(err)
	}
	return s
}

// handler checks that the body is the payload, and calls f with the number of the run.
func (s *shop) handler(f func(run int) error) reprise.Handler {
	runs := 0 // of one message: they do not overlap
	return s.p.Fetch(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
		if m.Body != s.payload {
			s.t.Errorf("the handler got %.50q", m.Body)
		}
		runs++
		return f(runs)
	}))
}

// objects returns the number of objects when everything under way has ended.
func (s *shop) objects() int {
	synctest.Wait()
	return len(s.store.keys())
}

func succeed(int) error { return nil }

// failing returns a handler that fails before the given run.
func failing(before int) func(int) error {
	return func(run int) error {
		if run < before {
			return errWarehouse
		}
		return nil
	}
}

// TestObjectGoesAfterItsMessage: the object is deleted once, and only after SQS has confirmed the
// delete of the message, through retries, copies and lost replies.
func TestObjectGoesAfterItsMessage(t *testing.T) {
	everyHour := retry.Policy{Backoff: retry.Constant(time.Hour)}
	for _, tt := range []struct {
		name   string
		cfg    reprise.Config
		handle func(run int) error
		faults []sqsserver.Fault
	}{
		{"done at once", reprise.Config{}, succeed, nil},
		{"retried by visibility", reprise.Config{Via: reprise.ViaVisibility, Retry: everyHour}, failing(4), nil},
		{"retried by copies", reprise.Config{Via: reprise.ViaRequeue, Retry: everyHour}, failing(4), nil},
		{"retried after days", reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(36 * time.Hour), MaxAge: -1}}, failing(4), nil},
		{"released", reprise.Config{}, func(run int) error {
			if run < 4 {
				return reprise.Release(time.Minute, errWarehouse)
			}
			return nil
		}, nil},
		{"a handler that panics", reprise.Config{Retry: everyHour}, func(run int) error {
			if run < 3 {
				panic("burst")
			}
			return nil
		}, nil},
		{"the delete is refused", reprise.Config{}, succeed, []sqsserver.Fault{{Kind: sqsserver.FaultThrottle, Action: "DeleteMessageBatch", Limit: 3}}},
		{"the reply to the delete is lost", reprise.Config{}, succeed, []sqsserver.Fault{{Kind: sqsserver.FaultLoseReply, Action: "DeleteMessageBatch", Limit: 2}}},
		{"the delete's handle is stale", reprise.Config{Lease: 2 * time.Second}, succeed, []sqsserver.Fault{{Kind: sqsserver.FaultStaleHandle, Action: "DeleteMessageBatch", Limit: 1}}},
		{"delivered twice", reprise.Config{}, succeed, []sqsserver.Fault{{Kind: sqsserver.FaultDuplicate, Limit: 1}}},
		{"a copy is refused at first", reprise.Config{Via: reprise.ViaRequeue, Retry: everyHour}, failing(2), []sqsserver.Fault{{Kind: sqsserver.FaultThrottle, Action: "SendMessageBatch", Limit: 1}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShop(t)
				s.q.Fault(tt.faults...)
				tt.cfg.AfterDelete = s.p.Remove
				s.q.Consume(s.handler(func(run int) error {
					if s.objects() != 1 {
						t.Errorf("run %d: the object has gone", run)
					}
					return tt.handle(run)
				}), tt.cfg)
				s.q.WaitEmpty(14 * 24 * time.Hour)
				time.Sleep(time.Minute) // until the consumer knows that
				if n := s.objects(); n != 0 || s.store.count("delete") != 1 || len(s.dead.Messages()) > 0 {
					t.Errorf("%d objects left, %d deletes, %d dead letters; want 0, 1 and 0", n, s.store.count("delete"), len(s.dead.Messages()))
				}
			})
		})
	}
}

// TestObjectStaysWithoutRemove: without Config.AfterDelete objects are left to the lifecycle rule.
func TestObjectStaysWithoutRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		s.q.Consume(s.handler(failing(2)), reprise.Config{})
		s.q.WaitEmpty(time.Hour)
		if s.objects() != 1 {
			t.Error("the object has gone")
		}
	})
}

// TestObjectStaysWithItsDeadLetter: the object of a dead letter stays, whatever the reason is. When
// the dead letter is redriven and done, the object is deleted.
func TestObjectStaysWithItsDeadLetter(t *testing.T) {
	for _, tt := range []struct {
		name, reason string
		handle       func(run int) error
		faults       []sqsserver.Fault
	}{
		{"permanent", "permanent", func(int) error { return reprise.Permanent(errWarehouse) }, nil},
		{"out of attempts", "attempts", failing(100), nil},
		{"its original deleted late", "permanent", func(int) error { return reprise.Permanent(errWarehouse) },
			[]sqsserver.Fault{{Kind: sqsserver.FaultThrottle, Action: "DeleteMessageBatch", Limit: 5}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShop(t)
				s.q.Fault(tt.faults...)
				c := s.q.Consume(s.handler(tt.handle), reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(time.Minute), MaxAttempts: 3}, AfterDelete: s.p.Remove})
				s.q.WaitEmpty(time.Hour)
				c.Stop()
				s.keptFor(tt.reason)
				s.redrive()
				s.q.Consume(s.handler(succeed), reprise.Config{AfterDelete: s.p.Remove})
				s.q.WaitEmpty(time.Hour)
				if n := s.objects(); n != 0 {
					t.Errorf("%d objects left after the redriven message was done", n)
				}
			})
		})
	}
}

// keptFor checks that a dead letter points to the object and has the reason.
func (s *shop) keptFor(reason string) {
	s.t.Helper()
	letters := s.dead.Messages()
	if len(letters) != 1 || s.objects() != 1 {
		s.t.Fatalf("%d dead letters, %d objects; want one each", len(letters), s.objects())
	}
	_, key, _ := strings.Cut(s.store.keys()[0], "/")
	if story := storyOf(s.t, letters[0]); story.Reason != reason || !strings.Contains(letters[0].Body, key) {
		s.t.Errorf("the dead letter is %s, for the reason %q", letters[0].Body, story.Reason)
	}
}

// redrive moves the dead letters back to the queue.
func (s *shop) redrive() {
	s.t.Helper()
	if _, err := s.q.Server().StartMessageMoveTask(s.t.Context(), &sqsserver.StartMessageMoveTaskInput{SourceArn: s.dead.ARN(), DestinationArn: s.q.ARN()}); err != nil {
		s.t.Fatal(err)
	}
	s.dead.WaitEmpty(time.Minute)
}

// TestObjectStaysThroughCrashes: a message that kills the process again and again is given up with
// its payload.
func TestObjectStaysThroughCrashes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		for range 50 {
			ran := make(chan struct{}, 1)
			c := s.q.Consume(s.handler(func(int) error {
				ran <- struct{}{}
				time.Sleep(time.Second) // until it is too late
				return nil
			}), reprise.Config{AfterDelete: s.p.Remove})
			select {
			case <-ran:
			case <-time.After(10 * time.Minute):
			}
			c.Crash()
			time.Sleep(2 * time.Minute)
			if len(s.dead.Messages()) > 0 {
				break
			}
		}
		s.keptFor("crash")
	})
}

// TestUnreadableIsDeadLetteredWithItsReason: if the object is gone, the message is dead-lettered:
// no retry would bring it back.
func TestUnreadableIsDeadLetteredWithItsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		key := s.store.keys()[0]
		clear(s.store.objects)
		s.q.Consume(s.handler(succeed), reprise.Config{AfterDelete: s.p.Remove})
		s.q.WaitEmpty(time.Minute)
		story := storyOf(t, s.dead.Messages()[0])
		if want := `fetching "s3://` + key + `": NoSuchKey`; story.Reason != "permanent" || story.Attempts != 1 || !strings.Contains(story.Error, want) {
			t.Errorf("the story is %+v, want %s", story, want)
		}
	})
}

// TestDeliveredAgainAfterItsDelete: SQS may deliver a deleted message again. Its work is done and
// its payload gone, so it is dead-lettered with that reason.
func TestDeliveredAgainAfterItsDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		s.q.Fault(sqsserver.Fault{Kind: sqsserver.FaultLoseDelete, Limit: 1})
		s.store.deleting = nil // SQS said that the message is gone
		s.q.Consume(s.handler(succeed), reprise.Config{AfterDelete: s.p.Remove})
		s.q.WaitEmpty(time.Hour)
		if story := storyOf(t, s.dead.Messages()[0]); !strings.Contains(story.Error, "NoSuchKey") {
			t.Errorf("the story is %+v", story)
		}
	})
}

// TestDuplicatesOfWhatIsDone: SQS delivers a deleted message again, or has two copies because the
// first reply was lost. With idempotency around Fetch, a duplicate is recognised before its
// payload, which is gone, is fetched.
func TestDuplicatesOfWhatIsDone(t *testing.T) {
	for _, tt := range []struct {
		name   string
		handle func(run int) error
		fault  sqsserver.Fault
	}{
		{"delivered after its delete", succeed, sqsserver.Fault{Kind: sqsserver.FaultLoseDelete, Limit: 1}},
		{"copied twice", failing(2), sqsserver.Fault{Kind: sqsserver.FaultLoseReply, Action: "SendMessageBatch", Limit: 1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newShop(t)
				s.q.Fault(tt.fault)
				s.store.deleting = nil // there is still a message: the duplicate
				once, err := idempotency.New(idempotency.NewMemory(idempotency.MemoryConfig{}), idempotency.Config{})
				if err != nil {
					t.Fatal(err)
				}
				c := s.q.Consume(once(s.handler(tt.handle)), reprise.Config{Via: reprise.ViaRequeue, AfterDelete: s.p.Remove})
				s.q.WaitEmpty(time.Hour)
				if n := len(s.dead.Messages()); n > 0 || c.Status().Counts.Deleted != 2 || s.objects() > 0 {
					t.Errorf("%d dead letters, %d deleted, %d objects; want 0, 2 and 0", n, c.Status().Counts.Deleted, s.objects())
				}
			})
		})
	}
}

// TestBehindATopic: a payload that the publisher of a topic has offloaded is fetched from inside
// the notification. It stays, because the topic's other queues point to it too.
func TestBehindATopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		store := newStorage()
		store.objects["payloads/orders/1"] = "order"
		p := newPayloads(t, store)
		inner := pointing("payloads", "orders/1", 5)
		notification, err := json.Marshal(map[string]any{
			"Type": "Notification", "MessageId": "n-1", "TopicArn": "arn:aws:sns:us-east-1:000000000000:orders", "Message": inner.Body,
			"MessageAttributes": map[string]any{s3payload.SizeAttribute: map[string]string{"Type": "Number", "Value": "5"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		q.Send(string(notification))
		chain := middleware.Chain(envelope.Unwrap(envelope.SNS), p.Fetch)
		q.Consume(chain(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			if m.Body != "order" {
				t.Errorf("the handler got %q", m.Body)
			}
			return nil
		})), reprise.Config{AfterDelete: p.Remove})
		q.WaitEmpty(time.Minute)
		synctest.Wait()
		if len(store.keys()) != 1 || p.Stats() != (s3payload.Stats{Fetched: 1}) {
			t.Errorf("%d objects, %+v; want one, fetched once", len(store.keys()), p.Stats())
		}
	})
}

// TestRemoveFails: the message is done in any case. The failure is counted, and logged at most
// twice a minute.
func TestRemoveFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShop(t)
		var log bytes.Buffer
		p := newPayloads(t, s.store, func(c *s3payload.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		s.store.fail("delete", reply("ServiceUnavailable", smithy.FaultServer), errBroken, errBroken, reply("AccessDenied", smithy.FaultClient))
		c := s.q.Consume(s.handler(succeed), reprise.Config{AfterDelete: p.Remove})
		s.q.WaitEmpty(time.Minute)
		if s.objects() != 1 || c.Status().Counts.Deleted != 1 {
			t.Errorf("%d objects, %d messages deleted; want one each", s.objects(), c.Status().Counts.Deleted)
		}
		m := pointing("payloads", "orders/2", 5)
		p.Remove(t.Context(), m)
		p.Remove(t.Context(), m)
		time.Sleep(30 * time.Second)
		p.Remove(t.Context(), m)
		p.Remove(t.Context(), m) // and this succeeds
		if diff := cmp.Diff(s3payload.Stats{Removed: 1, NotRemoved: 4}, p.Stats()); diff != "" {
			t.Errorf("stats (-want +got):\n%s", diff)
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 2 || !strings.Contains(lines[0], "payloads=1") || !strings.Contains(lines[1], "payloads=3") || !strings.Contains(lines[1], `deleting \"s3://payloads/orders/2\"`) {
			t.Errorf("the log has\n%s", log.String())
		}
	})
}

// TestRemoveThatHangs: Remove ends after Config.Timeout.
func TestRemoveThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStorage()
		store.delay = time.Hour
		p := newPayloads(t, store, func(c *s3payload.Config) { c.Timeout = 5 * time.Second })
		began := time.Now()
		p.Remove(context.Background(), pointing("payloads", "orders/1", 5))
		if took := time.Since(began); took != 5*time.Second || p.Stats().NotRemoved != 1 {
			t.Errorf("after %v: %+v", took, p.Stats())
		}
	})
}
