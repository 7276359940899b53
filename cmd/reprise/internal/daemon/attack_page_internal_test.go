package daemon

// Holds off: a web page that a developer visits, on any site, while a server or reprise run
// listens on the developer's machine. See sqsserver's test of the rule itself.

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestAttackPageListeners: what the daemon serves beside SQS, and the listener of reprise
// run, refuse pages of other origins and names that are not the machine's own.
func TestAttackPageListeners(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	serve := func(serving Serving) string {
		d, err := New(Config{Addr: "127.0.0.1:0", Region: "us-east-1", Serving: serving, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		web := httptest.NewServer(d.http.Handler)
		t.Cleanup(web.Close)
		return web.URL
	}
	keys := []sqsserver.Credentials{{AccessKeyID: "AKID", SecretAccessKey: "hush"}}
	open, keyed := serve(Serving{}), serve(Serving{Credentials: keys})
	keyedAdmin, without := serve(Serving{Credentials: keys, Admin: true}), serve(Serving{NoAdmin: true})
	allowing := serve(Serving{AllowedOrigins: []string{"https://app.example"}})
	run := worker(t, workerConfig(quiet, "http://prometheus.lan:9325"))
	p, err := newProfiles("127.0.0.1:0", quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.close() })
	web := httptest.NewServer(p.http.Handler)
	t.Cleanup(web.Close)
	profiled := web.URL
	for _, test := range []struct {
		url, host, origin string
		status            int
		text              string
	}{
		{open + "/health", "", "", 200, `"status"`},
		{open + "/health", "", "http://localhost:3000", 200, `"status"`},
		{open + "/health", "", "https://evil.example", 403, "--allow-origin https://evil.example"},
		{open + "/health", "evil.example", "", 403, "--allow-origin http://evil.example"},
		{open + "/metrics", "", "", 200, "reprise_healthy"},
		{open + "/metrics", "", "https://evil.example", 403, "may not use the server"},
		{open + "/metrics", "evil.example", "", 403, "by the name"},
		{open + "/", "", "", 200, "SQS-compatible"},
		{open + "/", "evil.example", "", 403, "by the name"},
		{open + "/_reprise/faults", "", "", 200, "queues"},
		{open + "/_reprise/faults", "", "https://evil.example", 403, `"error"`},
		{open + "/_reprise/faults", "", "http://localhost:3000", 403, `"error"`},
		{keyed + "/metrics", "evil.example", "", 403, "by the name"},
		{keyed + "/health", "", "https://evil.example", 403, "may not use the server"},
		{keyed + "/_reprise/faults", "", "", 403, "--admin"},
		{keyedAdmin + "/_reprise/faults", "", "", 200, "queues"},
		{keyedAdmin + "/_reprise/faults", "evil.example", "", 403, `"error"`},
		{without + "/_reprise/faults", "", "", 404, "UnknownOperationException"},
		{allowing + "/health", "", "https://app.example", 200, `"status"`},
		{allowing + "/health", "app.example", "", 200, `"status"`},
		{allowing + "/_reprise/faults", "", "https://app.example", 403, `"error"`},
		{run + "/health", "", "", 200, `"status"`},
		{run + "/health", "", "https://evil.example", 403, "may not use the server"},
		{run + "/metrics", "evil.example", "", 403, "by the name"},
		{run + "/metrics", "prometheus.lan:9325", "", 200, "reprise_"},
		{run + "/", "", "", 404, "only GET /health"},
		{open + "/scale?queue=q", "evil.example", "", 403, "by the name"},
		{open + "/readyz", "", "https://evil.example", 403, "may not use the server"},
		{keyed + "/livez", "evil.example", "", 403, "by the name"},
		{run + "/scale", "evil.example", "", 403, "by the name"},
		{run + "/readyz", "", "https://evil.example", 403, "may not use the server"},
		{profiled + "/debug/pprof/cmdline", "", "", 200, "test"},
		{profiled + "/debug/pprof/heap", "evil.example", "", 403, "by the name"},
		{profiled + "/debug/pprof/heap", "", "https://evil.example", 403, "may not use the server"},
		{open + "/debug/pprof/heap", "", "", 404, ""},
		{run + "/debug/pprof/heap", "", "", 404, ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, test.url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if test.host != "" {
			r.Host = test.host
		}
		if test.origin != "" {
			r.Header.Set("Origin", test.origin)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != test.status || !strings.Contains(string(text), test.text) || response.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s as %q from %q: %d %v %s, %v; want %d %q", test.url, test.host, test.origin, response.StatusCode, response.Header, text, err, test.status, test.text)
		}
	}
	if _, err := NewWorker(workerConfig(quiet, "*")); err == nil {
		t.Error("NewWorker takes an origin that is none")
	}
}

func workerConfig(logger *slog.Logger, origins ...string) WorkerConfig {
	return WorkerConfig{Logger: logger, AdminAddr: "127.0.0.1:0", AllowedOrigins: origins}
}

// worker serves the health and metrics of a worker with a consumer that does not run.
func worker(t *testing.T, cfg WorkerConfig) string {
	w, err := NewWorker(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.listener.Close() })
	const nobody = "http://127.0.0.1:1"
	err = w.Consume([]Consume{{
		Client: awsclient.Local(nobody, "us-east-1"), QueueURL: nobody + "/000000000000/q",
		Handler: reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return nil }),
		Config:  reprise.Config{Logger: cfg.Logger},
	}})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(w.http.Handler)
	t.Cleanup(web.Close)
	return web.URL
}
