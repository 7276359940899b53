package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// journal is a log that tests read.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

const queueURL = "http://127.0.0.1:1/000000000000/"

// consumers returns consumers that do not run: of orders, whose messages have keys, of mail with a
// retry lane, and of two queues called same.
func consumers(t *testing.T) (all []admin.Running) {
	t.Helper()
	handler := reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return nil })
	for _, queue := range []string{"1/orders", "1/mail", "1/same", "2/same"} {
		cfg := reprise.Config{Logger: slog.New(slog.DiscardHandler)}
		running := admin.Running{URL: queueURL + queue}
		switch queue {
		case "1/orders":
			cfg.Outage.Key = func(*reprise.Message) string { return "acme" }
		case "1/mail":
			running.RetryLaneURL = queueURL + "1/mail-retries"
			cfg.RetryLane.URL = running.RetryLaneURL
		}
		var err error
		if running.Consumer, err = reprise.New(awsclient.Local("http://127.0.0.1:1", "us-east-1"), running.URL, handler, cfg); err != nil {
			t.Fatal(err)
		}
		all = append(all, running)
	}
	return all
}

// served is an API that is served.
type served struct {
	*httptest.Server
	*description
	log *journal
	api *admin.API
}

// serve serves an API that change configures.
func serve(t *testing.T, change func(*admin.Config)) *served {
	t.Helper()
	s := &served{description: readDescription(t), log: new(journal)}
	cfg := admin.Config{
		Version: "v1", Events: new(admin.Events), Logger: slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Queues: func(context.Context) ([]operate.Described, bool, error) {
			return []operate.Described{
				{URL: queueURL + "orders", Attributes: map[string]string{
					"QueueArn": "arn:aws:sqs:us-east-1:000000000000:orders", "ApproximateNumberOfMessages": "3", "VisibilityTimeout": "30", "MessageRetentionPeriod": "345600",
					"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":3}`,
				}},
				{URL: queueURL + "gone", Problem: "there is no such queue"},
			}, true, nil
		},
	}
	all := consumers(t)
	cfg.Consumers = func() []admin.Running { return all }
	if change != nil {
		change(&cfg)
	}
	if cfg.Pages == nil {
		cfg.Pages = pages(t, cfg.Logger)
	}
	s.api = admin.New(cfg)
	s.Server = httptest.NewServer(s.api)
	t.Cleanup(s.Close)
	return s
}

func pages(t *testing.T, logger *slog.Logger) *sqsserver.PageGuard {
	t.Helper()
	guard, err := sqsserver.NewPageGuard(sqsserver.PageGuardConfig{OnRefused: func(_ *http.Request, err error, _ int) {
		logger.Warn("refused a request that may come from a web page", "error", err)
	}})
	if err != nil {
		t.Fatal(err)
	}
	return guard
}

// TestFindingsByConsumer: the queue of a consumer is compared with its policy, and one that nobody
// consumes here with none.
func TestFindingsByConsumer(t *testing.T) {
	s := serve(t, func(cfg *admin.Config) {
		cfg.Queues = func(context.Context) (described []operate.Described, complete bool, err error) {
			for _, name := range []string{"1/orders", "1/alone"} {
				described = append(described, operate.Described{URL: queueURL + name, Attributes: map[string]string{
					"QueueArn": "arn:aws:sqs:us-east-1:000000000000:" + name, "FifoQueue": "true", "MessageRetentionPeriod": "345600",
					"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:123456789012:dead.fifo","maxReceiveCount":200}`,
				}})
			}
			return described, true, nil
		}
		all := cfg.Consumers()
		all[0].Retry = retry.Policy{MaxAttempts: 21}
		cfg.Consumers = func() []admin.Running { return all }
	})
	for _, path := range []string{"queues", "stats"} {
		_, text := s.call("GET", admin.Path+path, "")
		if strings.Count(text, `"fifo-receives-are-not-attempts"`) != 1 || !strings.Contains(text, "may be used up before 21 attempts") {
			t.Errorf("%s has not one finding by the consumer's policy: %s", path, text)
		}
	}
}

// call makes a request that the description is asked about, and returns its reply.
func (s *served) call(method, path, body string, header ...string) (status int, reply string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
			continue
		}
		r.Header.Set(header[i], header[i+1])
	}
	response, err := (&http.Client{Transport: s.description}).Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// TestReads: what runs, its queues and consumers, by name and by URL.
func TestReads(t *testing.T) {
	s := serve(t, nil)
	_, text := s.call("GET", "/admin/v1/", "")
	if got := decode[admin.Process](t, text); got.Version != "v1" || got.ReadOnly || got.Consumers != 4 {
		t.Errorf("process %+v", got)
	}
	if status, text := s.call("GET", "/admin/v1/openapi.json", ""); status != 200 || text != string(admin.Description) {
		t.Errorf("the description: %d", status)
	}
	_, text = s.call("GET", "/admin/v1/queues", "")
	queues := decode[admin.Queues](t, text).Queues
	if len(queues) != 2 || queues[0].Findings[0].Code != "attributes-unknown" || queues[1].Visible != 3 || queues[1].Findings[0].Code != "dead-letter-queue-missing" {
		t.Errorf("queues %s", text)
	}
	for _, name := range []string{queues[1].Name, url.PathEscape(queues[1].URL)} {
		status, text := s.call("GET", "/admin/v1/queues/"+name, "")
		if got := decode[admin.QueueAttributes](t, text); status != 200 || got.Queue.Visible != 3 || got.Attributes["ApproximateNumberOfMessages"] != "3" || got.DeadLetterAttributes != nil {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if status, text := s.call("GET", "/admin/v1/queues/absent", ""); status != 404 || !strings.Contains(text, "no-such-queue") {
		t.Errorf("an absent queue: %d %s", status, text)
	}
	if status, text := s.call("GET", "/admin/v1/queues/"+queues[0].Name, ""); status != 200 || !strings.Contains(text, `"attributes":{}`) {
		t.Errorf("a queue that cannot be read: %d %s", status, text)
	}
	_, text = s.call("GET", "/admin/v1/consumers", "")
	if all := decode[admin.Consumers](t, text).Consumers; len(all) != 4 || all[1].RetryLane == nil || all[1].RetryLane.Queue != "mail-retries" {
		t.Errorf("consumers %s", text)
	}
	for _, queue := range []string{"orders", url.PathEscape(queueURL + "1/orders"), url.PathEscape(queueURL + "2/same")} {
		status, text := s.call("GET", "/admin/v1/consumers/"+queue, "")
		if got := decode[admin.Consumer](t, text); status != 200 || got.Health != "new" || got.Concurrency != 10 {
			t.Errorf("%s: %d %s", queue, status, text)
		}
	}
	failing := serve(t, func(cfg *admin.Config) {
		cfg.Queues = func(context.Context) ([]operate.Described, bool, error) { return nil, false, errors.New("no route") }
		cfg.Consumers = func() []admin.Running { return nil }
	})
	if status, text := failing.call("GET", "/admin/v1/queues", ""); status != 502 || !strings.Contains(text, "no route") {
		t.Errorf("%d %s", status, text)
	}
	if _, text := failing.call("GET", "/admin/v1/consumers", ""); strings.TrimSpace(text) != `{"consumers":[]}` {
		t.Errorf("without consumers: %s", text)
	}
}

// TestActions: each does what it says, is logged once, and answers with the consumer afterwards.
func TestActions(t *testing.T) {
	s := serve(t, nil)
	for _, test := range []struct {
		path, body string
		is         func(admin.Consumer) bool
	}{
		{"orders/pause", `{}`, func(c admin.Consumer) bool { return c.Paused }},
		{"orders/resume", `{}`, func(c admin.Consumer) bool { return !c.Paused }},
		{"orders/pause", `{"keys":["acme","bolt"]}`, func(c admin.Consumer) bool {
			return !c.Paused && len(c.Breakers) == 2 && c.Breakers[0].Key == "acme" && c.Breakers[1].Paused
		}},
		{"orders/resume", `{"keys":["acme"]}`, func(c admin.Consumer) bool { return len(c.Breakers) == 1 && c.Breakers[0].Key == "bolt" }},
		{"orders/concurrency", `{"concurrency":3}`, func(c admin.Consumer) bool { return c.Concurrency == 3 }},
		{"orders/rate", `{"rate":2.5}`, func(c admin.Consumer) bool { return c.Rate == 2.5 }},
		{"orders/rate", `{"rate":0}`, func(c admin.Consumer) bool { return c.Rate == 0 }},
		{"mail/pause", `{}`, func(c admin.Consumer) bool { return c.Paused && c.RetryLane.Paused }},
		{"orders/wake", `{}`, func(c admin.Consumer) bool { return c.Health == "new" }},
		{"mail/wake", `{"messages":["x"]}`, func(c admin.Consumer) bool { return c.Counts.Woken == 0 }},
		{"orders/probe", `{"keys":["acme"]}`, func(c admin.Consumer) bool { return c.Health == "new" }},
	} {
		before := s.log.String()
		status, text := s.call("POST", "/admin/v1/consumers/"+test.path, test.body)
		if status != 200 || !test.is(decode[admin.Done](t, text).Consumer) {
			t.Errorf("%s %s: %d %s", test.path, test.body, status, text)
		}
		queue, action, _ := strings.Cut(test.path, "/")
		line := strings.TrimPrefix(s.log.String(), before)
		if strings.Count(line, "\n") != 1 || !strings.Contains(line, `msg="admin action" action=`+action+" queue="+queueURL+"1/"+queue+" with=") || !strings.Contains(line, "remote=127.0.0.1:") {
			t.Errorf("%s is logged as %q", test.path, line)
		}
	}
	for op, item := range at[map[string]any](t, s.document, "paths") {
		if item.(map[string]any)["post"] == nil {
			continue
		}
		if _, action, isAction := strings.Cut(op, "/consumers/{queue}/"); isAction && !s.seen[action+" 200"] {
			t.Errorf("the test has not called %s", action)
		}
	}
}

// TestMistakes name the input and the remedy, and change nothing.
func TestMistakes(t *testing.T) {
	s := serve(t, nil)
	long := `{"keys":["` + strings.Repeat("x", 3<<20) + `"]}`
	for _, test := range []struct {
		method, path, body string
		status             int
		code, text         string
	}{
		{"GET", "nothing", "", 404, "not-found", "openapi.json"},
		{"GET", "consumers/orders/pause", "", 405, "method-not-allowed", "use POST"},
		{"DELETE", "consumers/orders", "", 405, "method-not-allowed", "use GET"},
		{"OPTIONS", "consumers/orders/pause", "", 405, "method-not-allowed", "use POST"},
		{"GET", "consumers/absent", "", 404, "not-consumed", `queue \"absent\"`},
		{"POST", "consumers/absent/pause", "{}", 404, "not-consumed", `queue \"absent\"`},
		{"POST", "consumers/same/pause", "{}", 409, "ambiguous", "2 queues called"},
		{"POST", "consumers/orders/pause", " ", 400, "bad-request", "at least {}"},
		{"POST", "consumers/orders/pause", "{", 400, "bad-request", "body cannot be used"},
		{"POST", "consumers/orders/pause", "{} {}", 400, "bad-request", "has text after"},
		{"POST", "consumers/orders/pause", `{"key":"acme"}`, 400, "bad-request", `unknown field`},
		{"POST", "consumers/orders/pause", `{"keys":[]}`, 400, "bad-request", "keys is empty"},
		{"POST", "consumers/mail/pause", `{"keys":["acme"]}`, 400, "bad-request", "set --outage-key"},
		{"POST", "consumers/orders/concurrency", `{}`, 400, "bad-request", "set 1 to"},
		{"POST", "consumers/orders/concurrency", `{"concurrency":0}`, 400, "bad-request", "set 1 to"},
		{"POST", "consumers/orders/concurrency", `{"concurrency":1.5}`, 400, "bad-request", "1.5"},
		{"POST", "consumers/orders/rate", `{}`, 400, "bad-request", "rate is missing"},
		{"POST", "consumers/orders/rate", `{"rate":-1}`, 400, "bad-request", "rate of -1 is out of range"},
		{"POST", "consumers/orders/wake", `{"messages":[]}`, 400, "bad-request", "name 1 to 1000"},
		{"POST", "consumers/orders/wake", `{"messages":["x"],"keys":["acme"]}`, 400, "bad-request", "send one of them"},
		{"POST", "consumers/orders/wake", long, 413, "too-large", "2162688 bytes"},
	} {
		status, text := s.call(test.method, "/admin/v1/"+test.path, test.body)
		if got := decode[admin.Error](t, text); status != test.status || got.Code != test.code || !strings.Contains(text, test.text) {
			t.Errorf("%s %s %.40s: %d %s, want %d %s %q", test.method, test.path, test.body, status, text, test.status, test.code, test.text)
		}
	}
	if status, text := s.call("POST", "/admin/v1/consumers/orders/pause", "{}", "Content-Type", "text/plain"); status != 415 || !strings.Contains(text, "send application/json") {
		t.Errorf("a body of another type: %d %s", status, text)
	}
	if _, text := s.call("GET", "/admin/v1/consumers", ""); strings.Contains(text, `"paused":true`) {
		t.Errorf("a mistake has paused something: %s", text)
	}
}
