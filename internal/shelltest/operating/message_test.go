package operating

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// TestLogsOfAMessageSayWhichItIs: logs identify a message, and do not contain its body.
func TestLogsOfAMessageSayWhichItIs(t *testing.T) {
	for _, tt := range []struct {
		name    string
		message reprise.Message
		want    string
	}{
		{"plain", reprise.Message{ID: "m", OriginID: "m", Body: "secret", Attempt: 2, Receives: 3}, "message.id=m message.attempt=2 message.receives=3 message.bytes=6"},
		{"a copy in a group", reprise.Message{ID: "m", OriginID: "o", GroupID: "g", Attempt: 1, Attributes: map[string]types.MessageAttributeValue{"secret": {}}}, "message.id=m message.origin=o message.group=g message.attempt=1 message.receives=0 message.bytes=0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for what, value := range map[string]any{"value": tt.message, "pointer": &tt.message} {
				var b bytes.Buffer
				slog.New(slog.NewTextHandler(&b, nil)).Info("handled", "message", value)
				_, got, _ := strings.Cut(strings.TrimSpace(b.String()), "msg=handled ")
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("logged as a %s (-want +got):\n%s", what, diff)
				}
			}
		})
	}
}

// TestConsumerLogsMessagesAsGroups: a field of logs must not be a string in one line and a group in
// another, because log stores refuse one of the two.
func TestConsumerLogsMessagesAsGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var out kit.Lines
		c := q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			if m.Body == "panics" && m.Attempt == 1 {
				panic("no such order")
			}
			if m.Body == "hopeless" {
				return reprise.Permanent(kit.ErrUnavailable)
			}
			return nil
		}), reprise.Config{Logger: slog.New(slog.NewJSONHandler(&out, nil))})
		q.Send("panics", "hopeless") // which nobody takes: there is no dead-letter queue
		time.Sleep(time.Minute)
		c.Stop()
		groups := 0
		for line := range strings.Lines(out.String()) {
			var record map[string]any
			if err := json.Unmarshal([]byte(line), &record); err != nil {
				t.Fatal(err)
			}
			message, there := record["message"]
			if !there {
				continue
			}
			group, _ := message.(map[string]any)
			if group["id"] == nil || group["attempt"] == nil {
				t.Errorf("a message is logged as %v: %s", message, line)
			}
			groups++
		}
		if groups < 2 {
			t.Errorf("%d lines are about messages, want those of the panic and of the message that is kept", groups)
		}
	})
}

// TestFewStacksOfPanicsAreLogged: each panic of a handler is logged, with one stack in half a
// minute at most: a message that makes handlers panic must not fill the disk.
func TestFewStacksOfPanicsAreLogged(t *testing.T) {
	burst := func() { panic("burst") }
	for name, consume := range map[string]func(*reprisetest.Queue, reprise.Config) *reprisetest.Consumer{
		"messages": func(q *reprisetest.Queue, cfg reprise.Config) *reprisetest.Consumer {
			return q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { burst(); return nil }), cfg)
		},
		"batches": func(q *reprisetest.Queue, cfg reprise.Config) *reprisetest.Consumer {
			return q.ConsumeBatch(reprise.BatchHandlerFunc(func(context.Context, []*reprise.Message) []error { burst(); return nil }), reprise.BatchConfig{Config: cfg, Size: 1})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				var out kit.Lines
				c := consume(q, reprise.Config{Logger: slog.New(slog.NewJSONHandler(&out, nil)), Retry: retry.Policy{Backoff: retry.Constant(10 * time.Second), Jitter: retry.None}})
				q.Send("one")
				time.Sleep(65 * time.Second)
				c.Stop()
				panics, stacks := strings.Count(out.String(), "handler panicked"), strings.Count(out.String(), `"stack":"goroutine`)
				if panics < 6 || stacks < 2 || stacks > 3 {
					t.Errorf("%d panics are logged, and %d stacks of them: want at least 6, and 2 or 3", panics, stacks)
				}
			})
		})
	}
}
