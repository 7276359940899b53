package sqsserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/internal/extremes"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestExtremesOfConfig: each number of Config at its extremes is refused in the log with the field's name,
// or it works: messages are received and deleted, in memory and with a journal, a long poll of an empty
// queue ends, and the time does not go back.
func TestExtremesOfConfig(t *testing.T) {
	for _, durable := range []bool{false, true} {
		extremes.Of(sqsserver.Config{}, func(field string, value any, cfg sqsserver.Config) bool {
			t.Run(fmt.Sprintf("%s=%v, journal %v", field, value, durable), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var log bytes.Buffer
					cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
					server := sqsserver.New(cfg)
					if durable {
						var err error
						if server, err = sqsserver.Open(newMemoryJournal(), cfg); err != nil {
							if !strings.Contains(err.Error(), field) {
								t.Errorf("the error does not name %s: %v", field, err)
							}
							return
						}
					}
					defer server.Close()
					serves(t, server)
					if log.Len() > 0 && !strings.Contains(log.String(), field) {
						t.Errorf("the log does not name %s: %s", field, log.String())
					}
				})
			})
			return true
		})
	}
}

// serves sends, receives and deletes messages on a server.
func serves(t *testing.T, server *sqsserver.Server) {
	t.Helper()
	began, last := time.Now(), server.Now()
	created, err := server.CreateQueue(t.Context(), &sqsserver.CreateQueueInput{QueueName: "q", Attributes: map[string]string{"MessageRetentionPeriod": "1209600", "VisibilityTimeout": "43200"}})
	if err != nil {
		t.Fatal(err)
	}
	const messages = 12
	for i := range messages {
		in := &sqsserver.SendMessageInput{QueueUrl: created.QueueUrl, SendMessageEntry: sqsserver.SendMessageEntry{MessageBody: strings.Repeat("x", 1+i*1000)}}
		if _, err := server.SendMessage(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	deleted := 0
	for ended := false; !ended; {
		out, err := server.ReceiveMessage(t.Context(), &sqsserver.ReceiveMessageInput{QueueUrl: created.QueueUrl, WaitTimeSeconds: sqsserver.Int(20), MaxNumberOfMessages: sqsserver.Int(10)})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range out.Messages {
			if err := server.DeleteMessage(t.Context(), &sqsserver.DeleteMessageInput{QueueUrl: created.QueueUrl, ReceiptHandle: m.ReceiptHandle}); err != nil {
				t.Fatal(err)
			}
			deleted++
		}
		now := server.Now()
		if ended = len(out.Messages) == 0; now.Before(last) || ended && now.Sub(last) < 20*time.Second {
			t.Errorf("the server's time went from %v to %v", last, now)
		}
		last = now
	}
	if deleted != messages {
		t.Errorf("%d messages were received and deleted, want %d", deleted, messages)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("that took %v", took)
	}
	time.Sleep(24 * time.Hour)
	if now := server.Now(); now.Before(last) {
		t.Errorf("the server's time went from %v to %v", last, now)
	}
}

// TestExtremesOfFaults: each number of a fault at its extremes is refused with the field's name, or the
// fault strikes no more often than it may, and its text reads back.
func TestExtremesOfFaults(t *testing.T) {
	for _, kind := range []sqsserver.FaultKind{sqsserver.FaultThrottle, sqsserver.FaultSlowReply, sqsserver.FaultEarlyRedelivery, sqsserver.FaultDuplicate} {
		extremes.Of(sqsserver.Fault{Kind: kind}, func(field string, value any, f sqsserver.Fault) bool {
			t.Run(fmt.Sprintf("%s, %s=%v", kind, field, value), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newTestServer(t, map[string]string{"VisibilityTimeout": "30"})
					b.send("x")
					err := b.server.SetFaults("q", f)
					if err != nil {
						if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(field)) {
							t.Errorf("the error does not name %s: %v", field, err)
						}
						return
					}
					for range 20 {
						ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
						_, err := b.server.ReceiveMessage(ctx, &sqsserver.ReceiveMessageInput{QueueUrl: b.url})
						cancel()
						var refused *sqsserver.Error
						if err != nil && !errors.As(err, &refused) && !errors.Is(err, context.DeadlineExceeded) {
							t.Errorf("a receive: %v", err)
						}
						time.Sleep(time.Minute)
					}
					set := b.server.Faults("q")[0]
					if most := max(0, set.Chances-f.Skip); set.Strikes > most || f.Limit > 0 && set.Strikes > f.Limit {
						t.Errorf("%d strikes of %d chances", set.Strikes, set.Chances)
					}
					var again sqsserver.Fault
					text, err := json.Marshal(f)
					if err := errors.Join(err, json.Unmarshal(text, &again)); err != nil || again != f {
						t.Errorf("%+v is written as %s and read as %+v: %v", f, text, again, err)
					}
				})
			})
			return true
		})
	}
}
