package dashboard_test

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestMessage: where it stands, its body as a tree, its story, and what can be done to it.
func TestMessage(t *testing.T) {
	s := serve(t, nil)
	id := s.send("orders", `{"customer":{"id":42,"vip":true},"lines":["a",null]}`)
	path := "/ui/queues/orders/messages/" + id
	got := s.do("GET", path, nil)
	for _, want := range []string{"<h2 id=\"standing\">visible", `<span class="name">id</span>: <span class="number">42</span>`, "array of 2", `action="` + path + `/delete"`, `action="` + path + `/dead-letter"`} {
		if !strings.Contains(got.text, want) {
			t.Errorf("the page lacks %s:\n%s", want, got.text)
		}
	}
	if strings.Contains(got.text, "/release") {
		t.Error("a message that is visible is offered to be made visible")
	}
	if got := s.do("GET", path+"/story", nil); got.StatusCode != 200 || !strings.Contains(got.text, "<b>sent</b>") || !strings.Contains(got.text, "is here") {
		t.Errorf("the story: %d %s", got.StatusCode, got.text)
	}
	if got := s.do("POST", path+"/dead-letter", url.Values{}, s.browser()...); got.StatusCode != 200 || s.inQueue("orders-dead") != 1 {
		t.Errorf("dead-letter: %d %s", got.StatusCode, got.text)
	}
	if got := s.do("GET", path, nil); got.StatusCode != 404 || !strings.Contains(got.text, "has no such message") {
		t.Errorf("where it was: %d %s", got.StatusCode, got.text)
	}
	path = "/ui/queues/orders-dead/messages/" + id
	if got := s.do("GET", path, nil); !strings.Contains(got.text, "/ui/dead/orders-dead?ids="+id) {
		t.Errorf("the letter: %s", got.text)
	}
	if got := s.do("POST", path+"/delete", url.Values{}, s.browser()...); got.StatusCode != 200 || s.inQueue("orders-dead") != 0 {
		t.Errorf("delete: %d %s", got.StatusCode, got.text)
	}
	if got := s.do("GET", path+"/story", nil); got.StatusCode != 200 || !strings.Contains(got.text, "No queue has the message any more") || strings.Contains(got.text, "cannot be shown") {
		t.Errorf("the story of what was deleted: %d %s", got.StatusCode, got.text)
	}
}

// TestDelay hides a visible message, and offers that for no other.
func TestDelay(t *testing.T) {
	s := serve(t, nil)
	s.create("ordered.fifo", map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"})
	id := s.send("orders", "x")
	path := "/ui/queues/orders/messages/" + id
	if got := s.do("POST", path+"/delay", url.Values{"for": {"soon"}}, s.browser()...); !strings.Contains(got.text, "such as 90s or 15m") {
		t.Errorf("delay soon: %d %s", got.StatusCode, got.text)
	}
	if got := s.do("POST", path+"/delay", url.Values{"for": {"1h"}}, s.browser()...); !strings.Contains(got.text, "hidden for 1h") {
		t.Errorf("delay: %d %s", got.StatusCode, got.text)
	}
	if m, err := s.sqs.Message("orders", id); err != nil || m.State != sqsserver.Delayed {
		t.Errorf("it is %+v, %v", m, err)
	}
	if page := s.do("GET", path, nil).text; strings.Contains(page, "/delay") || !strings.Contains(page, "it is hidden already") || !strings.Contains(page, "/release") {
		t.Errorf("the page of a hidden message:\n%s", page)
	}
	s.do("POST", "/ui/local/send", url.Values{"queue": {"ordered.fifo"}, "body": {"x"}, "group": {"g"}}, s.browser()...)
	all, err := s.sqs.Messages("ordered.fifo", sqsserver.Page{})
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	path = "/ui/queues/ordered.fifo/messages/" + all[0].ID
	if page := s.do("GET", path, nil).text; strings.Contains(page, "/delay") || !strings.Contains(page, "later messages of the group") {
		t.Errorf("the page of a message of a FIFO queue:\n%s", page)
	}
	if got := s.do("POST", path+"/delay", url.Values{"for": {"1h"}}, s.browser()...); got.StatusCode != 409 {
		t.Errorf("delay on a FIFO queue: %d %s", got.StatusCode, got.text)
	}
}

// TestRetryNow: a message that the consumer of the process has hidden until its retry is offered to be retried now,
// and then runs; one that the consumer does not know is offered to be made visible.
func TestRetryNow(t *testing.T) {
	t.Parallel()
	var consumer *reprise.Consumer
	var s *served
	s = serve(t, func(cfg *admin.Config) {
		cfg.Consumers = func() []admin.Running {
			return []admin.Running{{URL: s.URL + account + "orders", Consumer: consumer}}
		}
	})
	var attempts atomic.Int32
	consumer, err := reprise.New(s.client, s.URL+account+"orders", reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
		attempts.Add(1)
		return errors.New("out of paper")
	}), reprise.Config{Logger: slog.New(slog.DiscardHandler), Retry: retry.Policy{Backoff: retry.Constant(time.Hour), Jitter: retry.None}})
	if err != nil {
		t.Fatal(err)
	}
	id := s.send("orders", "x")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- consumer.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	path := "/ui/queues/orders/messages/" + id
	await := func(what string, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s does not come: %s", what, s.do("GET", path, nil).text)
			}
		}
	}
	await("the button", func() bool { return strings.Contains(s.do("GET", path, nil).text, `action="`+path+`/retry"`) })
	if text := s.do("GET", path, nil).text; strings.Contains(text, `action="`+path+`/release"`) {
		t.Errorf("it is offered to be made visible, too:\n%s", text)
	}
	await("the retry", func() bool { // SQS acknowledges that the message is hidden a little later
		return strings.Contains(s.do("POST", path+"/retry", url.Values{}, s.browser()...).text, "starts the next attempt")
	})
	await("the second attempt", func() bool { return attempts.Load() == 2 })
}
