package admin_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestMessageActions: one message is made visible, dead-lettered or deleted, each with its line in the log; what
// cannot be is refused with the reason.
func TestMessageActions(t *testing.T) {
	s, server := withMessages(t)
	infos, err := server.Messages("orders", sqsserver.Page{})
	if err != nil {
		t.Fatal(err)
	}
	var hidden, visible string
	for _, m := range infos {
		switch m.State {
		case sqsserver.Delayed:
			hidden = m.ID
		case sqsserver.Visible:
			visible = m.ID
		}
	}
	act := func(id, action string, want int, says string) {
		t.Helper()
		status, text := s.call("POST", admin.Path+"queues/orders/messages/"+id+"/"+action, "{}")
		if status != want || !strings.Contains(text, says) {
			t.Errorf("%s: %d %s", action, status, text)
		}
	}
	act(visible, "release", 409, "is visible already")
	act(hidden, "release", 200, "{}")
	if m, err := server.Message("orders", hidden); err != nil || m.State != sqsserver.Visible {
		t.Errorf("after the release: %+v, %v", m.State, err)
	}
	delay := func(body string, want int, says string) {
		t.Helper()
		status, text := s.call("POST", admin.Path+"queues/orders/messages/"+hidden+"/delay", body)
		if status != want || !strings.Contains(text, says) {
			t.Errorf("delay %s: %d %s", body, status, text)
		}
	}
	delay(`{"for":"soon"}`, 400, "such as 90s")
	delay(`{"for":"13h"}`, 400, "at most 12h")
	delay(`{"for":"1h"}`, 200, "{}")
	delay(`{"for":"1h"}`, 409, "delayed already")
	if m, err := server.Message("orders", hidden); err != nil || m.State != sqsserver.Delayed {
		t.Errorf("after the delay: %+v, %v", m.State, err)
	}
	act(hidden, "dead-letter", 409, "no dead-letter queue")
	act(hidden, "delete", 200, "{}")
	if _, err := server.Message("orders", hidden); err == nil {
		t.Error("it was not deleted")
	}
	act(hidden, "delete", 404, "no such message")
	for _, action := range []string{"release", "dead-letter", "delay", "delete"} {
		if !strings.Contains(s.log.String(), "action="+action+" ") {
			t.Errorf("the log has no line about %s", action)
		}
	}
}

// failing runs a consumer of the queue orders, on a server of its own, whose messages fail and wait for an hour; it
// returns the API that shows both once the message that it sends waits, and how many attempts have ended.
func failing(t *testing.T) (s *served, id string, attempts *atomic.Int32) {
	t.Helper()
	server := sqsserver.New(sqsserver.Config{})
	endpoint := httptest.NewServer(server)
	t.Cleanup(func() { server.Close(); endpoint.Close() })
	if _, err := server.CreateQueue(t.Context(), &sqsserver.CreateQueueInput{QueueName: "orders"}); err != nil {
		t.Fatal(err)
	}
	attempts = new(atomic.Int32)
	at := endpoint.URL + "/000000000000/orders"
	c, err := reprise.New(awsclient.Local(endpoint.URL, "us-east-1"), at, reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
		attempts.Add(1)
		return errors.New("out of paper")
	}), reprise.Config{Logger: slog.New(slog.DiscardHandler), Retry: retry.Policy{Backoff: retry.Constant(time.Hour), Jitter: retry.None}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	in := &sqsserver.SendMessageInput{QueueUrl: "orders"}
	in.MessageBody = "x"
	sent, err := server.SendMessage(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	s = serve(t, func(cfg *admin.Config) {
		cfg.Server, cfg.JobQueue = server, jobQueue
		cfg.Consumers = func() []admin.Running { return []admin.Running{{URL: at, Consumer: c}} }
	})
	await(t, "the retry of the message", func() bool { return c.Status().InBackoff == 1 && c.Status().Settling == 0 })
	return s, sent.MessageId.String(), attempts
}

func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s does not come", what)
		}
	}
}

// TestReleaseWakes: a message that the consumer of the process has hidden until its retry runs at once when it is
// released, and again when it is woken by its id; others are named as not woken.
func TestReleaseWakes(t *testing.T) {
	t.Parallel()
	s, id, attempts := failing(t)
	const unknown = "00000000-0000-4000-8000-000000000000"
	ready := func() {
		t.Helper()
		await(t, "that the consumer can wake it again", func() bool {
			status, text := s.call("GET", admin.Path+"consumers/orders/messages/"+id, "")
			return status == 200 && strings.Contains(text, `"stage":"backoff"`)
		})
	}
	ready()
	await(t, "the release", func() bool {
		status, text := s.call("POST", admin.Path+"queues/orders/messages/"+id+"/release", "{}")
		if status != 200 && !strings.Contains(text, "cannot wake it") {
			t.Fatalf("release: %d %s", status, text)
		}
		return status == 200
	})
	await(t, "the second attempt", func() bool { return attempts.Load() == 2 })
	ready()
	await(t, "the wake", func() bool {
		status, text := s.call("POST", admin.Path+"consumers/orders/wake", `{"messages":["`+id+`","`+unknown+`"]}`)
		done := decode[admin.Done](t, text)
		if status != 200 || !slices.Contains(done.NotWoken, unknown) || done.Woken+len(done.NotWoken) != 2 {
			t.Fatalf("wake: %d %s", status, text)
		}
		return done.Woken == 1
	})
	await(t, "the third attempt", func() bool { return attempts.Load() == 3 })
}
