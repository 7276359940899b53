package attacks

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// seen keeps the messages that handlers got.
type seen struct {
	mu       sync.Mutex
	messages []reprise.Message
}

func (s *seen) handler(f func(context.Context, *reprise.Message) error) reprise.Handler {
	return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		s.mu.Lock()
		s.messages = append(s.messages, *m)
		s.mu.Unlock()
		return f(ctx, m)
	})
}

// of returns the runs of one message, by the id that SQS gave it.
func (s *seen) of(id string) (runs []reprise.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.messages {
		if m.ID == id {
			runs = append(runs, m)
		}
	}
	return runs
}

// count returns how many runs one body had.
func (s *seen) count(body string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.messages {
		if m.Body == body {
			n++
		}
	}
	return n
}

// TestAttackHistoryWithoutKey: with a key each history that would count without one is ignored: its
// message begins anew, at once, under its own id. This is counted, reported as a finding, and
// logged from time to time.
func TestAttackHistoryWithoutKey(t *testing.T) {
	foreign := kit.SigningKey(t, "foreign")
	for name, forge := range map[string]func(q *reprisetest.Queue, text string) string{
		"unsigned":                  func(_ *reprisetest.Queue, text string) string { return text },
		"signed by another key":     func(q *reprisetest.Queue, text string) string { return signedFor(q, foreign, "own", text) },
		"another key, the known id": func(q *reprisetest.Queue, text string) string { return signedFor(q, foreign, "k1", text) },
		"an empty signature":        func(_ *reprisetest.Queue, text string) string { return withMember(text, "signature", "") },
		"a signature without a key": func(_ *reprisetest.Queue, text string) string { return withMember(text, "signature", "k1") },
		"a key without a signature": func(_ *reprisetest.Queue, text string) string { return withMember(text, "signature", "k1:") },
		"a signature of zeros": func(_ *reprisetest.Queue, text string) string {
			return withMember(text, "signature", "k1:"+strings.Repeat("A", 43))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				var s seen
				var log kit.Lines
				c := q.Consume(s.handler(kit.Succeed), reprise.Config{SigningKeys: []reprise.SigningKey{kit.SigningKey(t, "k1")}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				h := kit.Plausible(q)
				h.NotBefore, h.Attempt = h.SentAt+int64(time.Hour/time.Millisecond), 1_000_000
				began := time.Now()
				var ids []string
				for range 20 {
					ids = append(ids, kit.Forged(q, "order", forge(q, h.Text(t))))
				}
				q.WaitEmpty(time.Minute)
				for _, id := range ids {
					runs := s.of(id)
					if len(runs) != 1 || runs[0].OriginID != id || runs[0].Attempt != 1 || runs[0].Attributes != nil || runs[0].Received.Sub(began) > time.Minute {
						t.Fatalf("runs %+v of %s, want one, at once, the first attempt at a message of its own", runs, id)
					}
				}
				if n := c.Status().Counts.Untrusted; n != 20 {
					t.Errorf("%d histories are counted as untrusted, want 20", n)
				}
				synctest.Wait()
				if n := strings.Count(log.String(), "that no signing key has signed"); n != 1 {
					t.Errorf("the log says it %d times, want once:\n%s", n, &log)
				}
			})
		})
	}
}

// withMember returns a JSON object with one more member at its end.
func withMember(object, name, value string) string {
	return fmt.Sprintf("%s,%q:%q}", strings.TrimSuffix(object, "}"), name, value)
}

// signedFor has a story signed by key, and puts the signature on text, under the id of a key: this
// is the most that somebody with a key of their own can do.
func signedFor(q *reprisetest.Queue, key reprise.SigningKey, id, text string) string {
	e := types.SendMessageBatchRequestEntry{MessageBody: aws.String("order"), MessageAttributes: map[string]types.MessageAttributeValue{
		reprise.StoryAttribute: {DataType: aws.String("String"), StringValue: &text},
	}}
	if err := reprise.SignStory(q.URL(), &e, []reprise.SigningKey{key}); err != nil {
		panic(err)
	}
	return strings.Replace(*e.MessageAttributes[reprise.StoryAttribute].StringValue, `"foreign:`, `"`+id+`:`, 1)
}

// TestAttackHistoryCopiedFromAnother: a producer that can read the copies in the queue reuses a
// history with a valid signature. It counts only for exactly the same content, sent to the same
// queue within minutes, for which it is true.
func TestAttackHistoryCopiedFromAnother(t *testing.T) {
	attribute := func(name, value string) sqsserver.MessageAttribute {
		return sqsserver.MessageAttribute{Name: name, DataType: "String", StringValue: value}
	}
	for name, c := range map[string]struct {
		change func(*sqsserver.SendMessageEntry)
		wait   time.Duration // before it is sent
		counts bool
	}{
		"onto the same content": {func(*sqsserver.SendMessageEntry) {}, 0, true},
		"three minutes later":   {func(*sqsserver.SendMessageEntry) {}, 3 * time.Minute, false},
		"onto another body":     {func(e *sqsserver.SendMessageEntry) { e.MessageBody = "another" }, 0, false},
		"into another group":    {func(e *sqsserver.SendMessageEntry) { e.MessageGroupId = "another" }, 0, false},
		"without an attribute":  {func(e *sqsserver.SendMessageEntry) { e.MessageAttributes = e.MessageAttributes[:1] }, 0, false},
		"with one attribute more": {func(e *sqsserver.SendMessageEntry) {
			e.MessageAttributes = append(e.MessageAttributes, attribute("a", "b"))
		}, 0, false},
		"with another attribute":      {func(e *sqsserver.SendMessageEntry) { e.MessageAttributes[1].StringValue = "another" }, 0, false},
		"with another attribute type": {func(e *sqsserver.SendMessageEntry) { e.MessageAttributes[1].DataType = "String.x" }, 0, false},
		"with another attempt": {func(e *sqsserver.SendMessageEntry) {
			h := &e.MessageAttributes[0].StringValue
			*h = strings.Replace(*h, `"attempt":1`, `"attempt":2`, 1)
		}, 0, false},
		"with a member more": {func(e *sqsserver.SendMessageEntry) {
			h := &e.MessageAttributes[0].StringValue
			*h = strings.Replace(*h, `,"signature"`, `,"alone":1,"signature"`, 1)
		}, 0, false},
		"with a member behind it": {func(e *sqsserver.SendMessageEntry) {
			e.MessageAttributes[0].StringValue = withMember(e.MessageAttributes[0].StringValue, "attempt", "7")
		}, 0, false},
		"signed twice": {func(e *sqsserver.SendMessageEntry) {
			e.MessageAttributes[0].StringValue = withMember(e.MessageAttributes[0].StringValue, "signature", "k1:"+strings.Repeat("A", 43))
		}, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				var s seen
				q.Consume(s.handler(func(_ context.Context, m *reprise.Message) error {
					if m.Attempt == 1 && m.Body == "order" && m.OriginID == m.ID {
						return reprise.RetryAfter(10*time.Minute, kit.ErrUnavailable)
					}
					return nil
				}), reprise.Config{Via: reprise.ViaRequeue, SigningKeys: []reprise.SigningKey{kit.SigningKey(t, "k1")}})
				victim := q.SendMessage(sqsserver.SendMessageEntry{MessageBody: "order", MessageAttributes: []sqsserver.MessageAttribute{attribute("tenant", "a")}})
				var entry sqsserver.SendMessageEntry
				for len(entry.MessageAttributes) == 0 {
					time.Sleep(time.Second)
					for _, m := range q.Messages() {
						if m.ID != victim {
							entry = sqsserver.SendMessageEntry{MessageBody: m.Body, MessageAttributes: append([]sqsserver.MessageAttribute(nil), m.Attributes...)}
						}
					}
				}
				if entry.MessageAttributes[0].Name != reprise.HistoryAttribute || !strings.Contains(entry.MessageAttributes[0].StringValue, `,"signature":"k1:`) {
					t.Fatalf("the copy's attributes are %+v, want a signed history first", entry.MessageAttributes)
				}
				c.change(&entry)
				time.Sleep(c.wait)
				id := q.SendMessage(entry)
				q.WaitEmpty(time.Hour)
				runs := s.of(id)
				if len(runs) == 0 {
					t.Fatal("it never ran")
				}
				if got := runs[0].OriginID == victim && runs[0].Attempt == 2; got != c.counts {
					t.Errorf("run with origin %s and attempt %d, victim %s; want that it counts: %v", runs[0].OriginID, runs[0].Attempt, victim, c.counts)
				}
				if !c.counts && (runs[0].OriginID != id || runs[0].Attempt != 1) {
					t.Errorf("run with origin %s and attempt %d, want it to begin anew", runs[0].OriginID, runs[0].Attempt)
				}
			})
		})
	}
}

// TestAttackHistoryOfAnotherQueue: a signature of the lane or of another queue with the
// same keys does not count here.
func TestAttackHistoryOfAnotherQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := []reprise.SigningKey{kit.SigningKey(t, "k1")}
		a := reprisetest.NewQueue(t, nil)
		b := a.NewQueue(nil)
		a.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			return reprise.RetryAfter(10*time.Minute, kit.ErrUnavailable)
		}), reprise.Config{Via: reprise.ViaRequeue, SigningKeys: keys})
		a.Send("order")
		time.Sleep(5 * time.Second)
		var text string
		for _, m := range a.Messages() {
			for _, at := range m.Attributes {
				text = strings.Replace(at.StringValue, `"queue":"`+a.Name(), `"queue":"`+b.Name(), 1)
			}
		}
		if text == "" {
			t.Fatal("there is no copy with a history")
		}
		var s seen
		b.Consume(s.handler(kit.Succeed), reprise.Config{SigningKeys: keys})
		id := kit.Forged(b, "order", text)
		b.WaitEmpty(time.Minute)
		if runs := s.of(id); len(runs) != 1 || runs[0].OriginID != id || runs[0].Attempt != 1 {
			t.Errorf("runs %+v, want one that begins anew", runs)
		}
	})
}

// TestAttackHistoryInTheRetryLane: histories that the consumer itself sends to its retry lane count
// there, those of a producer do not.
func TestAttackHistoryInTheRetryLane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		lane := q.NewQueue(nil)
		var s seen
		q.Consume(s.handler(func(_ context.Context, m *reprise.Message) error {
			if m.Body == "order" && m.Attempt < 3 {
				return kit.ErrUnavailable
			}
			return nil
		}), reprise.Config{
			RetryLane: reprise.RetryLane{URL: lane.URL()}, SigningKeys: []reprise.SigningKey{kit.SigningKey(t, "k1")},
			Retry: retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None},
		})
		origin := q.Send("order")[0]
		h := kit.Plausible(lane)
		h.Origin = origin
		id := kit.Forged(lane, "forged", h.Text(t))
		lane.WaitEmpty(time.Hour)
		q.WaitEmpty(time.Hour)
		lane.WaitEmpty(time.Hour)
		if runs := s.of(id); len(runs) != 1 || runs[0].OriginID != id || runs[0].Attempt != 1 {
			t.Errorf("the forged message had the runs %+v", runs)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		attempts := 0
		for _, m := range s.messages {
			if m.Body == "order" {
				if attempts++; m.OriginID != origin || m.Attempt != attempts {
					t.Errorf("run %d is attempt %d of origin %s", attempts, m.Attempt, m.OriginID)
				}
			}
		}
		if attempts != 3 {
			t.Errorf("%d attempts, want 3", attempts)
		}
	})
}

// TestSigningKeysRotate: consumers that accept two keys accept the messages of a consumer that has
// one of them, whichever key they sign with.
func TestSigningKeysRotate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k1, k2 := kit.SigningKey(t, "k1"), kit.SigningKey(t, "k2")
		q := reprisetest.NewQueue(t, nil)
		var s seen
		h := s.handler(func(_ context.Context, m *reprise.Message) error {
			if m.Attempt < 4 {
				return reprise.RetryAfter(20*time.Hour, kit.ErrUnavailable)
			}
			return nil
		})
		origin := q.Send("order")[0]
		for _, keys := range [][]reprise.SigningKey{{k1}, {k1, k2}, {k2, k1}, {k2}} {
			c := q.Consume(h, reprise.Config{Via: reprise.ViaRequeue, Retry: retry.Policy{MaxAge: -1}, SigningKeys: keys})
			n := len(keys)
			clear(keys) // the consumer has copied them
			time.Sleep(20 * time.Hour)
			c.Stop()
			if ignored := c.Status().Counts.Untrusted; ignored != 0 {
				t.Errorf("with %d keys %d histories were ignored", n, ignored)
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, m := range s.messages {
			if m.OriginID != origin || m.Attempt != i+1 {
				t.Errorf("run %d has origin %s and attempt %d, want %s and %d", i, m.OriginID, m.Attempt, origin, i+1)
			}
		}
		if len(s.messages) != 4 {
			t.Errorf("%d runs, want 4", len(s.messages))
		}
	})
}

// TestAttackStory: the story of a dead letter is trusted only if a consumer with the key has
// written it, whatever an attacker forges or reuses.
func TestAttackStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := []reprise.SigningKey{kit.SigningKey(t, "k1")}
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(100)
		q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			return reprise.Permanent(kit.ErrUnavailable)
		}), reprise.Config{SigningKeys: keys})
		q.SendMessage(sqsserver.SendMessageEntry{MessageBody: "order", MessageGroupId: "tenant", MessageAttributes: []sqsserver.MessageAttribute{{Name: "a", DataType: "Binary", BinaryValue: []byte{1}}}})
		q.WaitEmpty(time.Minute)
		letter := func() *types.Message {
			out, err := dead.Client().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
				QueueUrl: aws.String(dead.URL()), VisibilityTimeout: 1, WaitTimeSeconds: 5, MessageAttributeNames: []string{"All"},
				MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
			})
			if err != nil || len(out.Messages) != 1 {
				t.Fatalf("%d dead letters, want 1; error %v", len(out.Messages), err)
			}
			return &out.Messages[0]
		}
		story, trusted, err := reprise.ReadStory(dead.URL(), letter(), keys)
		if err != nil || !trusted || story.Reason != "permanent" || story.Source != q.ARN() {
			t.Fatalf("story %+v, trusted: %v, error %v; want the consumer's own", story, trusted, err)
		}
		for name, c := range map[string]struct {
			url    string
			keys   []reprise.SigningKey
			change func(*types.Message)
		}{
			"no key":        {dead.URL(), nil, func(*types.Message) {}},
			"another key":   {dead.URL(), []reprise.SigningKey{kit.SigningKey(t, "k2")}, func(*types.Message) {}},
			"another queue": {q.URL(), keys, func(*types.Message) {}},
			"another body":  {dead.URL(), keys, func(m *types.Message) { m.Body = aws.String("another") }},
			"another group": {dead.URL(), keys, func(m *types.Message) { m.Attributes["MessageGroupId"] = "another" }},
			"sent much later": {dead.URL(), keys, func(m *types.Message) {
				m.Attributes["SentTimestamp"] = fmt.Sprint(time.Now().Add(time.Hour).UnixMilli())
			}},
			"sent nobody knows": {dead.URL(), keys, func(m *types.Message) { delete(m.Attributes, "SentTimestamp") }},
			"an attribute more": {dead.URL(), keys, func(m *types.Message) {
				m.MessageAttributes["reprise-function"] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String("payroll")}
			}},
			"another source": {dead.URL(), keys, func(m *types.Message) {
				a := m.MessageAttributes[reprise.StoryAttribute]
				a.StringValue = aws.String(strings.Replace(*a.StringValue, q.Name(), "payroll", 1))
				m.MessageAttributes[reprise.StoryAttribute] = a
			}},
		} {
			m := letter()
			c.change(m)
			if s, trusted, err := reprise.ReadStory(c.url, m, c.keys); trusted || err != nil {
				t.Errorf("%s: story %+v, trusted: %v, error %v; want one that is not trusted", name, s, trusted, err)
			}
			time.Sleep(2 * time.Second)
		}
		for _, text := range []string{"", "null x", "[]", `{"attempts":"x"}`} {
			m := letter()
			m.MessageAttributes[reprise.StoryAttribute] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &text}
			if _, trusted, err := reprise.ReadStory(dead.URL(), m, keys); trusted || err == nil {
				t.Errorf("%q is a story, trusted: %v", text, trusted)
			}
			time.Sleep(2 * time.Second)
		}
	})
}

// TestAttackSigningKeysAreNotShown: no printed form of a configuration contains a secret.
func TestAttackSigningKeysAreNotShown(t *testing.T) {
	const secret = "secret-secret-secret-secret-secret"
	keys, err := reprise.ParseSigningKeys("# ours\n\n 2026-11 : " + secret + "\r\nold:" + secret + secret + "\n")
	if err != nil || len(keys) != 2 || keys[0].ID() != "2026-11" || keys[1].ID() != "old" {
		t.Fatalf("keys %v, error %v", keys, err)
	}
	cfg := reprise.Config{SigningKeys: keys}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("starting", "keys", keys, "key", keys[0])
	slog.New(slog.NewTextHandler(&log, nil)).Info("starting", "keys", keys, "key", keys[0])
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d", "%q"} {
		fmt.Fprintf(&log, format+"\n", cfg.SigningKeys)
		fmt.Fprintf(&log, format+"\n", keys[0])
		fmt.Fprintf(&log, format+"\n", &keys[0])
	}
	if text := log.String(); strings.Contains(text, "secret-") || strings.Contains(text, "115 101 99") || strings.Contains(text, fmt.Sprintf("%x", "secret-")) {
		t.Errorf("the secret is shown:\n%s", text)
	}
	for _, text := range []string{"", "# none\n", "no colon " + secret, "an id:" + secret, strings.Repeat("x", 33) + ":" + secret, "short:secret-secret", "twice:" + secret + "\ntwice:" + secret} {
		_, err := reprise.ParseSigningKeys(text)
		if err == nil || strings.Contains(err.Error(), "secret-") {
			t.Errorf("%q: error %v, want one that does not show the secret", text, err)
		}
	}
	if _, err := reprise.New(reprisetest.NewQueue(t, nil).Client(), "http://x/1/q", reprise.HandlerFunc(kit.Succeed), reprise.Config{SigningKeys: make([]reprise.SigningKey, 1)}); err == nil || !strings.Contains(err.Error(), "NewSigningKey") {
		t.Errorf("a zero key: error %v", err)
	}
}
