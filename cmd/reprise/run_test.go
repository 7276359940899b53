//go:build unix

package main_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestRun: the messages of a server in another process reach the target; what it
// refuses goes to the queue's own dead-letter queue; health and metrics tell; SIGTERM
// drains.
func TestRun(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Aws-Sqsd-Queue") != "orders" {
			t.Errorf("headers %v", r.Header)
		}
		if body, _ := io.ReadAll(r.Body); string(body) == "13" {
			http.Error(w, "unlucky", http.StatusBadRequest)
		}
	}))
	defer srv.Close()
	endpoint := orders(t)
	sendOrders(t, endpoint, 20)
	p, admin := runQueue(t, endpoint, "--url", srv.URL)
	awaitHealth(t, admin, func(h health) bool {
		return h.Status == "ok" && h.Consumer.Deleted == 19 && h.Consumer.DeadLettered == 1
	})
	body, story := deadLetter(t, endpoint, "orders-dead")
	if body != "13" || story.Reason != "permanent" || !strings.Contains(story.Error, "400 Bad Request: unlucky") {
		t.Errorf("dead letter %q with the story %+v", body, story)
	}
	families := scrape(t, admin)
	if deleted, _ := reading(families["reprise_settled_total"], "reprise_outcome", "delete"); deleted != 19 {
		t.Errorf("the metrics say that %v messages were deleted, want 19", deleted)
	}
	if status, _ := fetch(t, http.DefaultClient, admin+"/_reprise/faults"); status != http.StatusNotFound {
		t.Errorf("the server of health and metrics serves more: %d", status)
	}
	p.signal(syscall.SIGTERM)
	code, output := p.wait()
	for _, want := range []string{
		"queue         " + endpoint + "/000000000000/orders", "SQS endpoint  " + endpoint, "credentials: made up",
		"dead letters  arn:aws:sqs:us-east-1:000000000000:orders-dead", "deliver to    " + srv.URL, "attempts=100",
		`level=WARN msg="message dead-lettered"`, "unlucky", "level=INFO msg=consuming", "level=INFO msg=stopped", "19 deleted",
	} {
		if !strings.Contains(output, want) {
			t.Errorf("the output does not say %q", want)
		}
	}
	if code != 0 || t.Failed() {
		t.Errorf("exit code %d:\n%s", code, output)
	}
}

// TestRunTargetMisconfigured: a target that answers 401 to everything is no reason to give a
// message up. The breaker opens, the log and the health say so, and when the target works again
// all messages are delivered.
func TestRunTargetMisconfigured(t *testing.T) {
	t.Parallel()
	const messages = 500
	var mended atomic.Bool
	var calls, delivered atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		if !mended.Load() {
			http.Error(w, "the token has expired", http.StatusUnauthorized)
			return
		}
		delivered.Add(1)
	}))
	defer srv.Close()
	endpoint := orders(t)
	sendOrders(t, endpoint, messages)
	p, admin := runQueue(t, endpoint, "--url", srv.URL, "--retry", "constant(1s) jitter=none attempts=3")
	p.await("holding messages")
	h := awaitHealth(t, admin, func(h health) bool { return len(h.Breakers) == 1 && h.Breakers[0].State == "open" })
	if h.Status != "degraded" || !strings.Contains(h.Problem, "401 Unauthorized: the token has expired") || !strings.Contains(h.Breakers[0].Problem, "401") || h.Breakers[0].NextProbe.IsZero() {
		t.Errorf("health %+v: want it to explain the open breaker", h)
	}
	if n := calls.Load(); n > 100 {
		t.Errorf("%d calls until the breaker was open, want no more than 100", n)
	}
	mended.Store(true)
	awaitHealth(t, admin, func(h health) bool { return h.Status == "ok" && h.Consumer.Deleted == messages })
	if dead := inQueue(t, endpoint, "orders-dead"); dead != 0 || delivered.Load() != messages {
		t.Errorf("%d were delivered and %d dead-lettered, want all %d delivered", delivered.Load(), dead, messages)
	}
	p.signal(syscall.SIGTERM)
	if code, output := p.wait(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, output)
	}
}

// TestRunCommandGone: a command that exists at the start and is removed later.
func TestRunCommandGone(t *testing.T) {
	t.Parallel()
	needShell(t)
	script := filepath.Join(t.TempDir(), "work.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o700); err != nil { //nolint:gosec // G306: it is to be run
		t.Fatal(err)
	}
	endpoint := orders(t)
	p, admin := runQueue(t, endpoint, "--exec", script, "--retry", "constant(1s) jitter=none attempts=3")
	if err := os.Rename(script, script+".away"); err != nil {
		t.Fatal(err)
	}
	sendOrders(t, endpoint, 40)
	h := awaitHealth(t, admin, func(h health) bool { return len(h.Breakers) == 1 })
	if !strings.Contains(h.Problem, "exit status 127") {
		t.Errorf("health %+v: want it to name the exit code", h)
	}
	if err := os.Rename(script+".away", script); err != nil {
		t.Fatal(err)
	}
	awaitHealth(t, admin, func(h health) bool { return h.Consumer.Deleted == 40 })
	if dead := inQueue(t, endpoint, "orders-dead"); dead != 0 {
		t.Errorf("%d messages were dead-lettered", dead)
	}
	p.signal(syscall.SIGTERM)
	if code, output := p.wait(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, output)
	}
}

// TestRunGivingUpByTheMany: a target that refuses every message shows in the health,
// the metrics and the log.
func TestRunGivingUpByTheMany(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "field amount is required", http.StatusUnprocessableEntity)
	}))
	defer srv.Close()
	endpoint := orders(t)
	sendOrders(t, endpoint, 100)
	p, admin := runQueue(t, endpoint, "--url", srv.URL)
	h := awaitHealth(t, admin, func(h health) bool { return h.Consumer.DeadLettered == 100 })
	if h.Status != "degraded" || !strings.Contains(h.Problem, "hardly one succeeds") || !strings.Contains(h.Problem, "field amount is required") {
		t.Errorf("health %+v: want it to say that all are given up", h)
	}
	if is, ok := reading(scrape(t, admin)["reprise_consumer_giving_up"], "", ""); !ok || is != 1 {
		t.Errorf("reprise_consumer_giving_up is %v, want 1", is)
	}
	p.signal(syscall.SIGTERM)
	_, output := p.wait()
	lines, rest := strings.Count(output, `msg="message dead-lettered"`), strings.Count(output, "more messages dead-lettered")
	if begun := strings.Count(output, "many messages are given up"); begun != 1 || lines < 10 || lines > 50 || rest < 1 {
		t.Errorf("%d lines say that it began, %d are dead letters, %d count the rest:\n%s", begun, lines, rest, output)
	}
}

// TestRunLosesNothing: it is killed and stopped again and again while it works. Every
// message is delivered, and none is dead-lettered.
func TestRunLosesNothing(t *testing.T) {
	t.Parallel()
	const messages = 300
	var mu sync.Mutex
	seen := make(map[string]int)
	var calls atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		body, _ := io.ReadAll(r.Body)
		time.Sleep(5 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		seen[string(body)]++
	}))
	defer srv.Close()
	endpoint := orders(t)
	sendOrders(t, endpoint, messages)
	for i, end := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM} {
		before := calls.Load()
		p, _ := runQueue(t, endpoint, "--url", srv.URL, "--concurrency", "4")
		for deadline := time.Now().Add(patience); calls.Load() < before+30; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d calls in run %d", calls.Load()-before, i)
			}
		}
		p.signal(end)
		code, output := p.wait()
		if end == syscall.SIGTERM && (code != 0 || !strings.Contains(output, "msg=stopped")) {
			t.Errorf("exit code %d:\n%s", code, output)
		}
		// The leases of what a kill has left end.
		resp, err := http.Post(endpoint+"/_reprise/clock", "application/json", strings.NewReader(`{"advance":"2m"}`))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	p, _ := runQueue(t, endpoint, "--url", srv.URL)
	for deadline := time.Now().Add(patience); inQueue(t, endpoint, "orders") > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d messages are left", inQueue(t, endpoint, "orders"))
		}
	}
	p.signal(syscall.SIGTERM)
	if code, output := p.wait(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, output)
	}
	mu.Lock()
	defer mu.Unlock()
	if dead := inQueue(t, endpoint, "orders-dead"); len(seen) != messages || dead != 0 {
		t.Errorf("%d of %d messages were delivered, %d dead-lettered", len(seen), messages, dead)
	}
}

// TestRunFindsTheSettings that the AWS CLI finds, and the dead-letter queue that is
// named.
func TestRunFindsTheSettings(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--access-key", "AKID", "--secret", "s3cret", "--region", "eu-west-1", "--queue", "orders", "--queue", "other-dead")
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".aws"), 0o700); err != nil {
		t.Fatal(err)
	}
	config := "[profile local]\nregion = eu-west-1\naws_access_key_id = AKID\naws_secret_access_key = s3cret\nservices = mine\n\n[services mine]\nsqs =\n  endpoint_url = " + endpoint + "\n"
	if err := os.WriteFile(filepath.Join(home, ".aws", "config"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		env  []string
		args []string
	}{
		"profile":      {[]string{"HOME=" + home, "AWS_PROFILE=local"}, []string{"--queue", "orders"}},
		"environment":  {[]string{"AWS_ENDPOINT_URL=" + endpoint, "AWS_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=AKID", "AWS_SECRET_ACCESS_KEY=s3cret"}, []string{"--queue", "orders"}},
		"queue URL":    {[]string{"AWS_DEFAULT_REGION=eu-west-1", "AWS_ACCESS_KEY_ID=AKID", "AWS_SECRET_ACCESS_KEY=s3cret"}, []string{"--queue", endpoint + "/000000000000/orders"}},
		"flags before": {[]string{"AWS_ENDPOINT_URL_SQS=http://127.0.0.1:1", "AWS_REGION=us-west-2", "AWS_ACCESS_KEY_ID=AKID", "AWS_SECRET_ACCESS_KEY=s3cret"}, []string{"--queue", "orders", "--endpoint", endpoint, "--region", "eu-west-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := startIn(t, environment(test.env...), append([]string{"run", "--exec", "true", "--admin-addr", "none", "--dead-letter", "other-dead"}, test.args...)...)
			if at := p.await("SQS endpoint  "); at != endpoint {
				t.Errorf("it calls %s, want %s", at, endpoint)
			}
			p.await("region        eu-west-1")
			if dead := p.await("dead letters  "); dead != "other-dead" {
				t.Errorf("dead letters go to %s", dead)
			}
			p.await("msg=consuming")
			p.signal(os.Interrupt)
			p.signal(os.Interrupt)
			if _, output := p.wait(); strings.Contains(output, "s3cret") || strings.Contains(output, "admin  ") {
				t.Errorf("the output shows a secret, or an address that was not asked for:\n%s", output)
			}
		})
	}
}
