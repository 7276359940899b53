package daemon_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
)

func config() daemon.Config {
	return daemon.Config{Addr: "127.0.0.1:0", Region: "us-east-1", Logger: slog.New(slog.DiscardHandler)}
}

// running is a daemon that runs beside the test.
type running struct {
	*daemon.Daemon
	drain  chan struct{}
	cancel context.CancelCauseFunc
	ended  chan error
}

// run runs a daemon that consumes the queue q, if a consumer is given.
func run(t *testing.T, cfg daemon.Config, consumers ...daemon.Consume) running {
	t.Helper()
	d, err := daemon.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i := range consumers {
		consumers[i].Client, consumers[i].QueueURL = d.Client(), d.QueueURL("q")
	}
	if err := d.Consume(consumers); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	r := running{d, make(chan struct{}), cancel, make(chan error, 1)}
	go func() { r.ended <- d.Run(ctx, r.drain) }()
	t.Cleanup(func() { cancel(nil) })
	return r
}

func (r running) send(t *testing.T, body string) {
	t.Helper()
	url := r.QueueURL("q")
	if _, err := awsclient.Local(r.URL(), "us-east-1").SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body}); err != nil {
		t.Fatal(err)
	}
}

func (r running) health(t *testing.T) (code int, text string) {
	t.Helper()
	resp, err := http.Get(r.URL() + "/health")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || !json.Valid(body) {
		t.Fatalf("GET /health: %q, %v", body, err)
	}
	return resp.StatusCode, string(body)
}

// TestLife: messages are handled; drain ends a consumer whose long poll is waiting;
// Stopped comes while the server still answers; after the end nothing does.
func TestLife(t *testing.T) {
	handled := make(chan string)
	cfg := config()
	cfg.Queues = []daemon.Queue{{Name: "q", DeadLetter: "q-dead"}}
	var health string
	var r running
	consume := daemon.Consume{
		Handler: reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			handled <- m.Body
			return nil
		}),
		Config:  reprise.Config{Logger: cfg.Logger},
		Stopped: func() { _, health = r.health(t) },
	}
	r = run(t, cfg, consume)
	r.send(t, "hello")
	if got := <-handled; got != "hello" {
		t.Errorf("handled %q", got)
	}
	if code, text := r.health(t); code != http.StatusOK || !strings.HasPrefix(text, `{"status":"ok","storage":"memory","consumer":{`) {
		t.Errorf("GET /health = %d %s", code, text)
	}
	close(r.drain)
	if err := <-r.ended; err != nil {
		t.Errorf("Run = %v", err)
	}
	if report := r.Consumers()[0].Report(); report.Counts.Deleted != 1 || report.Stranded {
		t.Errorf("report %+v; want 1 deleted and no receive cancelled", report)
	}
	if !strings.Contains(health, `"status":"stopped"`) {
		t.Errorf("when it had drained, GET /health said %s", health)
	}
	if resp, err := http.Get(r.URL() + "/health"); err == nil {
		resp.Body.Close()
		t.Error("the server still answers")
	}
}

// TestStopCutsSlowClients: who sends half a request has no part in how a stop ends.
func TestStopCutsSlowClients(t *testing.T) {
	t.Parallel()
	var log strings.Builder // written to by Run, before it returns
	cfg := config()
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	r := run(t, cfg)
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.URL(), "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// 100 Continue shows that the handler waits for the rest.
	if _, err := conn.Write([]byte("POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n"))); err != nil {
		t.Fatal(err)
	}
	close(r.drain)
	if err := <-r.ended; err != nil {
		t.Errorf("Run = %v", err)
	}
	if !strings.Contains(log.String(), "cutting off requests that did not end in time") {
		t.Errorf("the log says %q", log.String())
	}
}

// TestStopAtOnce: the end of the context ends handlers that only watch theirs.
func TestStopAtOnce(t *testing.T) {
	begun := make(chan struct{})
	noticed := make(chan error, 1)
	cfg := config()
	cfg.Queues = []daemon.Queue{{Name: "q"}}
	consume := daemon.Consume{Config: reprise.Config{Logger: cfg.Logger}, Handler: reprise.HandlerFunc(func(ctx context.Context, _ *reprise.Message) error {
		close(begun)
		<-ctx.Done()
		noticed <- context.Cause(ctx)
		return ctx.Err()
	})}
	r := run(t, cfg, consume)
	r.send(t, "long")
	<-begun
	close(r.drain)
	enough := errors.New("enough")
	r.cancel(enough)
	if err := <-r.ended; !errors.Is(err, enough) {
		t.Errorf("Run = %v, want the context's cause", err)
	}
	if err := <-noticed; !errors.Is(err, reprise.ErrStopping) {
		t.Errorf("the handler's cause is %v, want ErrStopping", err)
	}
}

// TestBusyHandlerDelaysTheEnd: draining waits for a handler as long as its budget
// allows, and says so if that was not enough.
func TestBusyHandlerDelaysTheEnd(t *testing.T) {
	begun := make(chan struct{})
	release := make(chan struct{})
	defer close(release)
	cfg := config()
	cfg.Queues = []daemon.Queue{{Name: "q"}}
	consume := daemon.Consume{
		Config: reprise.Config{StopBudget: 200 * time.Millisecond, Logger: cfg.Logger},
		Handler: reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			close(begun)
			<-release // deaf to its context
			return nil
		}),
	}
	r := run(t, cfg, consume)
	r.send(t, "stubborn")
	<-begun
	close(r.drain)
	if err := <-r.ended; !errors.Is(err, reprise.ErrDrainTimeout) {
		t.Errorf("Run = %v, want ErrDrainTimeout", err)
	}
}

// TestBadConsumer: what cannot be consumed is named.
func TestBadConsumer(t *testing.T) {
	d, err := daemon.New(config())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Consume([]daemon.Consume{{QueueURL: d.QueueURL("q"), Config: reprise.Config{Concurrency: -1}}}); err == nil || !strings.Contains(err.Error(), "Concurrency") {
		t.Errorf("Consume = %v, want an error about Concurrency", err)
	}
}

// TestConsumeAnew: a consumer with the same settings goes on, another drains before its
// successor begins, and after a stop nothing begins.
func TestConsumeAnew(t *testing.T) {
	begun, release := make(chan string), make(chan struct{})
	made := func(settings string) daemon.Consume {
		return daemon.Consume{Settings: settings, Config: reprise.Config{Concurrency: 1, Logger: slog.New(slog.DiscardHandler)}, Handler: reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			begun <- settings + " " + m.Body
			<-release
			return nil
		})}
	}
	cfg := config()
	cfg.Queues = []daemon.Queue{{Name: "q"}}
	first := made("first")
	r := run(t, cfg, first)
	first.Client, first.QueueURL = r.Client(), r.QueueURL("q")
	r.send(t, "a")
	if got := <-begun; got != "first a" {
		t.Errorf("%s began", got)
	}
	before := r.Consumers()[0]
	if err := r.Consume([]daemon.Consume{first}); err != nil || r.Consumers()[0] != before {
		t.Errorf("with the same settings there is another consumer; %v", err)
	}

	second := made("second")
	second.Client, second.QueueURL = first.Client, first.QueueURL
	replaced := make(chan error)
	go func() { replaced <- r.Consume([]daemon.Consume{second}) }()
	for before.Status().Health != reprise.HealthStopping || before.Status().Pollers > 0 {
		time.Sleep(time.Millisecond) // a long poll of it would get b, and there is time to run it
	}
	r.send(t, "b")
	select {
	case got := <-begun:
		t.Errorf("%s began while the consumer before had a message at work", got)
	case release <- struct{}{}:
	}
	if err := <-replaced; err != nil {
		t.Error(err)
	}
	if got := <-begun; got != "second b" {
		t.Errorf("%s began, want the message that was not run yet", got)
	}
	if deleted := before.Report().Counts.Deleted; deleted != 1 {
		t.Errorf("the consumer before has deleted %d messages, want 1", deleted)
	}
	close(release)
	close(r.drain)
	if err := <-r.ended; err != nil {
		t.Error(err)
	}
	if err := r.Consume([]daemon.Consume{first}); err != nil || len(r.Consumers()) != 0 {
		t.Errorf("after the stop %d consumers are there; %v", len(r.Consumers()), err)
	}
}

// TestTrafficOfDeletedQueues: with a queue goes what was counted of it, although nobody reads the
// metrics.
func TestTrafficOfDeletedQueues(t *testing.T) {
	cfg := config()
	cfg.Queues = []daemon.Queue{{Name: "q"}}
	r := run(t, cfg)
	r.send(t, "a")
	if got := r.Traffic(); got[r.QueueARN("q")].Sent != 1 {
		t.Fatalf("traffic %+v", got)
	}
	url := r.QueueURL("q")
	if _, err := awsclient.Local(r.URL(), "us-east-1").DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &url}); err != nil {
		t.Fatal(err)
	}
	if got := r.Traffic(); len(got) > 0 {
		t.Errorf("traffic of a deleted queue %+v", got)
	}
}
