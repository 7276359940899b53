package daemon_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
)

// streaming is a part that streams until it is stopped.
func streaming(log func(string)) daemon.Part {
	stop := make(chan struct{})
	return daemon.Part{
		Name:  "the stream",
		Takes: func(r *http.Request) bool { return r.URL.Path == "/stream" },
		Handler: daemon.WithoutTimeLimit(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintln(w, "begun")
			http.NewResponseController(w).Flush()
			select {
			case <-stop:
				fmt.Fprintln(w, "ended")
			case <-r.Context().Done():
			}
		})),
		Start: func() { log("part started") },
		Stop: func(context.Context) error {
			log("part stopped")
			close(stop)
			return nil
		},
	}
}

// TestPartsOfADaemon: a part is served until the consumers have drained, and its stream, which ends
// then, does not hold up the stop.
func TestPartsOfADaemon(t *testing.T) {
	steps := make(chan string, 10)
	cfg := config()
	cfg.Queues = []daemon.Queue{{Name: "q"}}
	d, err := daemon.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	d.Add(streaming(func(step string) { steps <- step }))
	err = d.Consume([]daemon.Consume{{
		Client: d.Client(), QueueURL: d.QueueURL("q"), Config: reprise.Config{Logger: cfg.Logger},
		Handler: reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return nil }),
		Stopped: func() { steps <- "consumer stopped" },
	}})
	if err != nil {
		t.Fatal(err)
	}
	drain, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- d.Run(t.Context(), drain) }()
	streamed(t, http.DefaultClient, d.URL(), func() { close(drain) })
	if err := <-ended; err != nil {
		t.Errorf("Run = %v", err)
	}
	for _, want := range []string{"part started", "consumer stopped", "part stopped"} {
		if got := <-steps; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestPartsOfAWorker, at a Unix socket that is only the user's: a part is served until the consumers have drained.
func TestPartsOfAWorker(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	cfg := daemon.WorkerConfig{AdminAddr: "unix:" + path, Logger: slog.New(slog.DiscardHandler)}
	w, err := daemon.NewWorker(cfg)
	if err != nil {
		t.Fatal(err)
	}
	steps := make(chan string, 10)
	w.Add(streaming(func(step string) { steps <- step }))
	err = w.Consume([]daemon.Consume{{
		Client: awsclient.Local("http://127.0.0.1:1", "us-east-1"), QueueURL: "http://127.0.0.1:1/000000000000/q",
		Config:  reprise.Config{Logger: cfg.Logger, StopBudget: time.Second},
		Handler: reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return nil }),
		Stopped: func() { steps <- "consumer stopped" },
	}})
	if err != nil {
		t.Fatal(err)
	}
	if w.AdminURL() != "unix:"+path {
		t.Errorf("AdminURL = %s", w.AdminURL())
	}
	drain, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- w.Run(t.Context(), drain) }()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
	streamed(t, client, "http://reprise", func() {
		if _, err := daemon.NewWorker(cfg); err == nil || !strings.Contains(err.Error(), "another process listens there") {
			t.Errorf("a second worker at the same socket: %v", err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the socket: %v, %v", info, err)
		}
		close(drain)
	})
	if err := <-ended; err != nil {
		t.Errorf("Run = %v", err)
	}
	for _, want := range []string{"part started", "consumer stopped", "part stopped"} {
		if got := <-steps; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for at, want := range map[string]string{"unix:" + t.TempDir(): "a file of another kind", "unix:/nonexistent/s": "folder that this user may write"} {
		cfg.AdminAddr = at
		if _, err := daemon.NewWorker(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", at, err, want)
		}
	}

	// A worker that cannot be made gives the address of its profiles back.
	profiles := freeAddr(t)
	cfg.AdminAddr, cfg.Watching.PprofAddr = "unix:/nonexistent/s", profiles
	if _, err := daemon.NewWorker(cfg); err == nil {
		t.Fatal("a worker at a socket in a folder that does not exist")
	}
	l, err := net.Listen("tcp", profiles)
	if err != nil {
		t.Fatalf("the address of the profiles is still taken: %v", err)
	}
	l.Close()
}

// freeAddr is a host and port of loopback at which nothing listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// streamed reads the stream, and calls stop once it has begun.
func streamed(t *testing.T, client *http.Client, url string, stop func()) {
	t.Helper()
	response, err := client.Get(url + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	lines := bufio.NewReader(response.Body)
	if line, err := lines.ReadString('\n'); line != "begun\n" {
		t.Fatalf("%q, %v", line, err)
	}
	stop()
	if rest, err := io.ReadAll(lines); string(rest) != "ended\n" || err != nil {
		t.Errorf("the stream ends with %q, %v", rest, err)
	}
}

// TestPauseOutlivesAReload: a consumer that replaces one that is paused is paused too, as are keys,
// whether it runs already or not.
func TestPauseOutlivesAReload(t *testing.T) {
	for _, running := range []bool{true, false} {
		t.Run(fmt.Sprintf("running=%t", running), func(t *testing.T) { pauseAndReload(t, running) })
	}
}

func pauseAndReload(t *testing.T, running bool) {
	w, err := daemon.NewWorker(daemon.WorkerConfig{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	const url = "http://127.0.0.1:1/000000000000/"
	consume := func(queue, settings string) daemon.Consume {
		return daemon.Consume{
			Client: awsclient.Local("http://127.0.0.1:1", "us-east-1"), QueueURL: url + queue, Settings: settings,
			Handler: reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return nil }),
			Config: reprise.Config{
				Logger: slog.New(slog.DiscardHandler), StopBudget: time.Second,
				Outage: reprise.Outage{Key: func(*reprise.Message) string { return "acme" }},
			},
		}
	}
	if err := w.Consume([]daemon.Consume{consume("a", "1"), consume("b", "1"), consume("c", "1")}); err != nil {
		t.Fatal(err)
	}
	drain, ended := make(chan struct{}), make(chan error, 1)
	if running {
		go func() { ended <- w.Run(t.Context(), drain) }()
	} else {
		ended <- nil
	}
	before := w.Consumed()
	for running && before[2].Status().Health == reprise.HealthNew {
		time.Sleep(time.Millisecond)
	}
	before[0].Pause()
	if err := before[1].PauseKey("acme"); err != nil {
		t.Fatal(err)
	}
	if err := w.Consume([]daemon.Consume{consume("a", "2"), consume("b", "2"), consume("c", "2")}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ all, key bool }{{true, false}, {false, true}, {false, false}} {
		after := w.Consumed()[i]
		if after.Consumer == before[i].Consumer {
			t.Fatalf("%s was not replaced", after.QueueURL)
		}
		s := after.Status()
		key := len(s.Breakers) == 1 && s.Breakers[0].Key == "acme" && s.Breakers[0].Paused
		if s.Paused != want.all || key != want.key {
			t.Errorf("%s: paused %t, key paused %t; want %+v", after.QueueURL, s.Paused, key, want)
		}
	}
	close(drain)
	<-ended
}
