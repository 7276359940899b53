package dashboard_test

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/dashboard"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
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

// served is a process with a server of its own, a consumer of its queue orders that does not run, and a
// dashboard.
type served struct {
	*httptest.Server
	t      testing.TB
	sqs    *sqsserver.Server
	client *sqs.Client
	log    *journal
	pages  *dashboard.Dashboard
	http   *http.Client
}

const account = "/000000000000/"

// serve serves a dashboard of an API that change configures.
func serve(t testing.TB, change func(*admin.Config)) *served {
	t.Helper()
	return serveWith(t, change, nil)
}

// serveWith serves a dashboard that show configures, of an API that change configures.
func serveWith(t testing.TB, change func(*admin.Config), show func(*dashboard.Config)) *served {
	t.Helper()
	s := &served{t: t, log: new(journal)}
	logger := slog.New(slog.NewTextHandler(s.log, nil))
	s.sqs = sqsserver.New(sqsserver.Config{})
	s.Server = httptest.NewUnstartedServer(nil)
	at := "http://" + s.Listener.Addr().String()
	s.client = awsclient.Local(at, "us-east-1")
	consumer, err := reprise.New(s.client, at+account+"orders", reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return nil }), reprise.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	cfg := admin.Config{
		Version: "v1", Events: new(admin.Events), Logger: logger, Server: s.sqs, Pages: s.sqs.Pages(),
		Consumers: func() []admin.Running {
			return []admin.Running{{URL: s.URL + account + "orders", Consumer: consumer}}
		},
		Queues: func(ctx context.Context) (all []operate.Described, complete bool, err error) {
			for _, q := range s.sqs.Queues() {
				out, err := s.sqs.GetQueueAttributes(ctx, &sqsserver.GetQueueAttributesInput{QueueUrl: q.URL, AttributeNames: []string{"All"}})
				if err != nil {
					return nil, false, err
				}
				all = append(all, operate.Described{URL: s.URL + account + q.Name, Attributes: out.Attributes, Oldest: q.Oldest})
			}
			return all, true, nil
		},
		JobQueue: func(_ context.Context, queue string) (admin.JobQueue, error) {
			return admin.JobQueue{URL: s.URL + account + operate.NameOf(queue), Client: s.client}, nil
		},
	}
	if change != nil {
		change(&cfg)
	}
	api := admin.New(cfg)
	shown := dashboard.Config{API: api, Version: "v1", ReadOnly: cfg.ReadOnly, Own: cfg.Server != nil, Logger: logger}
	if show != nil {
		show(&shown)
	}
	s.pages = dashboard.New(shown)
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case dashboard.Takes(r):
			s.pages.ServeHTTP(w, r)
		case admin.Takes(r):
			api.ServeHTTP(w, r)
		default:
			s.sqs.ServeHTTP(w, r)
		}
	})
	s.Start()
	s.http = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	t.Cleanup(func() {
		if err := s.pages.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		s.Close()
		if err := s.sqs.Close(); err != nil {
			t.Error(err)
		}
	})
	s.create("orders-dead", nil)
	s.create("orders", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:orders-dead","maxReceiveCount":10}`})
	return s
}

func (s *served) create(name string, attributes map[string]string) {
	s.t.Helper()
	if _, err := s.client.CreateQueue(s.t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes}); err != nil {
		s.t.Fatal(err)
	}
}

// send sends a message, and returns its id.
func (s *served) send(queue, body string) string { return s.sendLater(queue, body, 0) }

func (s *served) sendLater(queue, body string, seconds int32) string {
	s.t.Helper()
	at := s.URL + account + queue
	out, err := s.client.SendMessage(s.t.Context(), &sqs.SendMessageInput{QueueUrl: &at, MessageBody: &body, DelaySeconds: seconds})
	if err != nil {
		s.t.Fatal(err)
	}
	return *out.MessageId
}

type reply struct {
	*http.Response
	text string
}

// do makes a request; form is sent if it is not nil. Header has names and values.
func (s *served) do(method, path string, form url.Values, header ...string) reply {
	s.t.Helper()
	body := io.Reader(http.NoBody)
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	response, err := s.http.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return reply{response, string(text)}
}

// browser are the headers by which a browser says that the page of this address asks.
func (s *served) browser() []string {
	return []string{"Origin", s.URL, "Sec-Fetch-Site", "same-origin"}
}

// TestOverview: what needs attention comes first, with what is wrong, and the queues with most of it lead
// the table.
func TestOverview(t *testing.T) {
	s := serve(t, nil)
	s.send("orders-dead", "x")
	s.send("orders", "y")
	got := s.do("GET", "/", nil)
	if got.StatusCode != 200 {
		t.Fatalf("%d %s", got.StatusCode, got.text)
	}
	attention, table, _ := strings.Cut(got.text, `<h2 id="queues">`)
	if !strings.Contains(attention, "it has 1 dead letter.") {
		t.Errorf("the dead letter is not told:\n%s", attention)
	}
	if dead, live := strings.Index(table, ">orders-dead</a>"), strings.Index(table, ">orders</a>"); dead < 0 || live < dead {
		t.Errorf("the order of the table:\n%s", table)
	}
	for _, want := range []string{`aria-current="page">Overview</a>`, "reprise v1", `hx-sse:connect="/?live=1"`} {
		if !strings.Contains(got.text, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}

// TestStream: the live part is sent anew when something has changed.
func TestStream(t *testing.T) {
	s := serve(t, nil)
	r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/?live=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := s.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if kind := response.Header.Get("Content-Type"); kind != "text/event-stream" {
		t.Fatalf("the type is %s", kind)
	}
	events := make(chan string)
	go func() {
		defer close(events)
		var text strings.Builder
		buffer := make([]byte, 4096)
		for {
			n, err := response.Body.Read(buffer)
			text.Write(buffer[:n])
			for {
				event, rest, whole := strings.Cut(text.String(), "\n\n")
				if !whole {
					break
				}
				text.Reset()
				text.WriteString(rest)
				events <- event
			}
			if err != nil {
				return
			}
		}
	}()
	first := <-events
	if strings.Contains(first, "<html") || !strings.Contains(first, "data: ") || strings.Contains(first, "dead letter.") {
		t.Errorf("the first event: %s", first)
	}
	s.send("orders-dead", "x")
	for event := range events {
		if strings.Contains(event, "1 dead letter.") {
			break
		}
	}
	if err := s.pages.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	for range events { // it ends with the process
	}
}

// TestStreamsOfOnePage: what is sent to one viewer of a page is not sent to another who looks at another queue on it.
func TestStreamsOfOnePage(t *testing.T) {
	s := serve(t, nil)
	if got := s.do("POST", "/ui/workers/pause", url.Values{"queue": {"orders"}}, s.browser()...); got.StatusCode != 200 {
		t.Fatalf("%d %s", got.StatusCode, got.text)
	}
	for _, queue := range []string{"orders", "orders-dead"} { // both at once
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/ui/timeline?live=1&queue="+queue, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := s.http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		event := ""
		for lines := bufio.NewScanner(response.Body); lines.Scan() && lines.Text() != ""; { // to the end of the first event
			event += lines.Text() + "\n"
		}
		if has := strings.Contains(event, "paused the consumer"); has != (queue == "orders") || event == "" {
			t.Errorf("the stream about %s has what happened to orders: %v:\n%s", queue, has, event)
		}
	}
}

// TestTakes: the query protocol of SQS stays as it is.
func TestTakes(t *testing.T) {
	for target, want := range map[string]bool{
		"GET /": true, "HEAD /": true, "GET /?x=1": true, "GET /ui": true, "GET /ui/x": true, "POST /ui/x": true, "GET /ui/?Action=ListQueues": true,
		"POST /": false, "OPTIONS /": false, "GET /?Action=ListQueues": false, "GET /000000000000/orders": false, "GET /admin/v1/": false, "GET /uix": false,
	} {
		method, path, _ := strings.Cut(target, " ")
		if got := dashboard.Takes(httptest.NewRequest(method, path, nil)); got != want {
			t.Errorf("%s: %t, want %t", target, got, want)
		}
	}
}

// TestUnknownPage says so, as a page.
func TestUnknownPage(t *testing.T) {
	s := serve(t, nil)
	if got := s.do("GET", "/ui/nowhere", nil); got.StatusCode != 404 || !strings.Contains(got.text, "There is no such page.") {
		t.Errorf("%d %s", got.StatusCode, got.text)
	}
	if got := s.do("GET", "/ui/", nil); got.StatusCode != 303 || got.Header.Get("Location") != "/" {
		t.Errorf("%d %v", got.StatusCode, got.Header)
	}
}

// TestHostileNames: text of others is shown, and never becomes part of the page.
func TestHostileNames(t *testing.T) {
	const hostile = `"><script>alert(1)</script><hx-partial hx-target="body">`
	s := serve(t, func(cfg *admin.Config) {
		cfg.Server = nil
		cfg.Queues = func(context.Context) ([]operate.Described, bool, error) {
			return []operate.Described{{URL: "http://127.0.0.1:1/1/" + hostile, Problem: hostile}}, true, nil
		}
	})
	got := s.do("GET", "/", nil)
	if strings.Contains(got.text, "<script>alert") || strings.Contains(got.text, "<hx-partial") {
		t.Errorf("it is not escaped:\n%s", got.text)
	}
	if !strings.Contains(got.text, "&lt;script&gt;alert(1)") {
		t.Errorf("it is not shown:\n%s", got.text)
	}
}
