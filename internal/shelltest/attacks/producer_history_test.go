package attacks

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// besides has a consumer process a forged message, sent three times, and other messages, of which
// one fails once and one always. It reports every difference between the results of the others and
// their results without the forged message. It returns how many forged messages ran, were
// dead-lettered, and are still in the queue after ten minutes.
func besides(t *testing.T, forge func(q *reprisetest.Queue, victim string) string) (ran, dead, waiting int) {
	t.Helper()
	q := reprisetest.NewQueue(t, nil)
	letters := q.NewDeadLetterQueue(100)
	var s seen
	c := q.Consume(s.handler(func(_ context.Context, m *reprise.Message) error {
		if m.Body == "fails" || m.Body == "fails once" && m.Attempt == 1 {
			return kit.ErrUnavailable
		}
		return nil
	}), reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None, MaxAttempts: 3}})
	began := time.Now()
	others := map[string]int{} // by id: how often they are to run
	victim := q.Send("fails once")[0]
	others[victim] = 2
	others[q.Send("fails")[0]] = 3
	time.Sleep(time.Second)
	forgeries := make(map[string]bool)
	for range 3 {
		forgeries[kit.Forged(q, "forged", forge(q, victim))] = true
	}
	for _, id := range q.Send(kit.Numbered(10)...) {
		others[id] = 1
	}
	time.Sleep(10 * time.Minute)
	for id, want := range others {
		runs := s.of(id)
		if len(runs) != want {
			t.Errorf("message %s ran %d times, want %d", id, len(runs), want)
		}
		for i, m := range runs {
			late := m.Received.Sub(began) - time.Duration(i)*time.Minute
			if m.Attempt != i+1 || m.OriginID != id || late > 10*time.Second || m.Trail != "" {
				t.Errorf("run %d of %s is attempt %d of origin %s, %v late", i+1, id, m.Attempt, m.OriginID, late)
			}
		}
	}
	for _, m := range letters.Messages() {
		switch {
		case forgeries[kit.StoryOf(t, m).Message]:
			dead++
		case m.Body != "fails":
			t.Errorf("message %q is dead-lettered: %+v", m.Body, kit.StoryOf(t, m))
		}
	}
	for _, m := range q.Messages() {
		if forgeries[m.ID] || m.Body == "forged" {
			waiting++
		} else {
			t.Errorf("message %q is still in the queue", m.Body)
		}
	}
	ran = s.count("forged") // copies of them have other ids
	if ran+dead+waiting < 3 {
		t.Errorf("%d forged messages ran, %d were dead-lettered and %d are waiting, of 3: one was dropped", ran, dead, waiting)
	}
	if status := c.Status(); status.Health != reprise.HealthOK || status.GivingUp != nil || len(status.Breakers) > 0 {
		t.Errorf("the consumer is %v: %s; breakers %v", status.Health, status.Problem, status.Breakers)
	}
	return ran, dead, waiting
}

// TestAttackEachFieldOfAHistory: a forged value of any field, at both of its limits and beyond
// them, can only delay or give up the message that carries it. The victim is another message, in
// backoff, whose id the attacker knows.
func TestAttackEachFieldOfAHistory(t *testing.T) {
	const year = 366 * 24 * 3600_000
	type fate struct{ ran, dead, waiting int }
	runs, given, waits := fate{ran: 3}, fate{dead: 3}, fate{waiting: 3}
	for _, tt := range []struct {
		name  string
		field string
		value func(now int64, victim string) any
		want  fate
	}{
		{"another's origin", "origin", func(_ int64, victim string) any { return victim }, runs},
		{"the longest origin", "origin", func(int64, string) any { return strings.Repeat("~", 128) }, runs},
		{"an origin beyond that", "origin", func(int64, string) any { return strings.Repeat("~", 129) }, runs},
		{"another queue", "queue", func(int64, string) any { return "payroll" }, runs},
		{"the most attempts", "attempt", func(int64, string) any { return 1_000_000 }, given},
		{"more attempts than that", "attempt", func(int64, string) any { return math.MaxInt64 }, runs},
		{"fewer than no attempts", "attempt", func(int64, string) any { return math.MinInt64 }, runs},
		{"the highest generation", "generation", func(int64, string) any { return 1_000_000 }, runs},
		{"a generation below zero", "generation", func(int64, string) any { return -1 }, runs},
		{"the most releases", "releases", func(int64, string) any { return 1_000_000 }, runs},
		{"more releases than that", "releases", func(int64, string) any { return math.MaxInt64 }, runs},
		{"sent a year ago", "sent", func(now int64, _ string) any { return now - year }, runs},
		{"sent at no time", "sent", func(int64, string) any { return math.MinInt64 }, runs},
		{"first received in the future", "first", func(now int64, _ string) any { return now + year }, runs},
		{"due in a year", "notBefore", func(now int64, _ string) any { return now + year }, waits},
		{"due at the end of time", "notBefore", func(int64, string) any { return math.MaxInt64 }, runs},
		{"due before time", "notBefore", func(int64, string) any { return math.MinInt64 }, runs},
		{"written at the end of time", "sentAt", func(int64, string) any { return math.MaxInt64 }, runs},
		{"to run alone", "alone", func(int64, string) any { return 1 }, runs},
		{"to run more than alone", "alone", func(int64, string) any { return math.MaxInt64 }, runs},
		{"to run alone where everything is lost", "losses", func(int64, string) any { return 1000 }, runs},
		{"with more losses than receives", "losses", func(int64, string) any { return math.MaxInt64 }, runs},
		{"another's trail", "trail", func(int64, string) any { return "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" }, runs},
		{"a trail of two lines", "trail", func(int64, string) any { return "a\nlevel=ERROR" }, runs},
		{"for want of a dependency", "unavailable", func(int64, string) any { return true }, runs},
		{"an error of escapes", "error", func(int64, string) any { return strings.Repeat("\x1b\u009b", 50) }, runs},
		{"an error of half a history", "error", func(int64, string) any { return strings.Repeat("x", 1000) }, runs},
		{"a member that nobody knows", "signature", func(int64, string) any { return "k1:" + strings.Repeat("A", 43) }, runs},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var got fate
				got.ran, got.dead, got.waiting = besides(t, func(q *reprisetest.Queue, victim string) string {
					now := time.Now().UnixMilli()
					h := map[string]any{"queue": q.Name(), "origin": "origin", "attempt": 1, "sent": now, "first": now, "sentAt": now}
					h[tt.field] = tt.value(now, victim)
					text, err := json.Marshal(h)
					if err != nil {
						t.Fatal(err)
					}
					return string(text)
				})
				if got != tt.want {
					t.Errorf("of three forged messages the numbers that ran, were given up, and wait: %v, want %v", got, tt.want)
				}
			})
		})
	}
}

// TestAttackStoryOnALiveMessage: a story that a producer attaches has no effect, and is replaced
// when its message is given up.
func TestAttackStoryOnALiveMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(100)
		q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return reprise.Permanent(kit.ErrUnavailable) }), reprise.Config{})
		story := `{"reason":"attempts","source":"arn:aws:sqs:us-east-1:000000000000:payroll","message":"another's","origin":"another's","consumer":"operator"}`
		id := q.SendMessage(sqsserver.SendMessageEntry{MessageBody: "order", MessageAttributes: []sqsserver.MessageAttribute{{Name: reprise.StoryAttribute, DataType: "String", StringValue: story}}})
		q.WaitEmpty(time.Minute)
		letters := dead.Messages()
		if len(letters) != 1 {
			t.Fatalf("%d dead letters", len(letters))
		}
		if s := kit.StoryOf(t, letters[0]); s.Source != q.ARN() || s.Message != id || s.Origin != id || s.Reason != "permanent" || s.Consumer == "operator" {
			t.Errorf("story %+v, want the consumer's own", s)
		}
	})
}

// FuzzAttackHistory: no text in the attribute of the history keeps another message from its run, or
// loses its own message. With signing keys it has no effect at all.
func FuzzAttackHistory(f *testing.F) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli() // of every bubble's start
	for _, member := range []string{`"attempt":1000000`, `"alone":1`, fmt.Sprintf(`"notBefore":%d`, now+3600_000), `"releases":7`, `"unavailable":true`, `"trail":"x"`, `"generation":9`, `"error":"\u009b"`} {
		f.Add(fmt.Sprintf(`{"queue":"fuzzed","origin":"o","sent":%d,"first":%d,"sentAt":%d,%s}`, now, now, now, member))
	}
	f.Add(`{}`)
	key := kit.SigningKey(f, "k1")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 || !json.Valid([]byte(text)) || !utf8.ValidString(text) || strings.ContainsAny(text, "\uFFFE\uFFFF") {
			t.Skip("no JSON, or nothing that SQS would take: FuzzRead of internal/history reads such texts")
		}
		for _, keys := range [][]reprise.SigningKey{nil, {key}} {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				dead := q.NewDeadLetterQueue(100)
				var s seen
				q.Consume(s.handler(kit.Succeed), reprise.Config{SigningKeys: keys, LongPoll: time.Second})
				text := strings.Replace(text, "fuzzed", q.Name(), 1)
				id := kit.Forged(q, "forged", text)
				victim := q.Send("victim")[0]
				time.Sleep(30 * time.Second)
				if runs := s.of(victim); len(runs) != 1 || runs[0].Attempt != 1 || runs[0].OriginID != victim {
					t.Errorf("beside %q the victim had the runs %+v", text, runs)
				}
				runs := s.of(id)
				if len(runs)+len(dead.Messages())+len(q.Messages()) == 0 {
					t.Errorf("the message with %q is gone", text)
				}
				if len(keys) > 0 && (len(runs) != 1 || runs[0].OriginID != id || runs[0].Attempt != 1) {
					t.Errorf("with keys the message with %q had the runs %+v", text, runs)
				}
			})
		}
	})
}
