//go:build unix

package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// runQueue starts reprise run for the queue orders of the server at endpoint, which it
// finds as the AWS CLI would, and returns it with the URL of its health and metrics.
func runQueue(t *testing.T, endpoint string, args ...string) (p *process, admin string) {
	t.Helper()
	p = startIn(t, environment("AWS_ENDPOINT_URL_SQS="+endpoint),
		append([]string{"run", "--queue", "orders", "--admin-addr", "127.0.0.1:0"}, args...)...)
	admin, _, _ = strings.Cut(p.await("admin         "), "/health")
	return p, admin
}

// orders starts a server with a queue and its dead-letter queue.
func orders(t *testing.T) (endpoint string) {
	t.Helper()
	_, endpoint = serve(t, "--queue", "orders,dead-letter=orders-dead,max-receives=100")
	return endpoint
}

// health is what GET /health of the program says.
type health struct {
	Status, Problem string
	Consumer        struct {
		Running, Waiting, Settling int
		InBackoff                  int `json:"in_backoff"`
		Deleted, Retried           int
		DeadLettered               int `json:"dead_lettered"`
	}
	Breakers []struct {
		State, Problem string
		Held           int
		NextProbe      time.Time `json:"next_probe"`
	}
}

// awaitHealth waits until the health of the program is as it should be.
func awaitHealth(t *testing.T, url string, good func(health) bool) (h health) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		_, text := fetch(t, http.DefaultClient, url+"/health")
		h = health{}
		if err := json.Unmarshal([]byte(text), &h); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if good(h) {
			return h
		}
		if time.Now().After(deadline) {
			t.Fatalf("the health never became what it should be: %s", text)
		}
	}
}

// inQueue is how many messages a queue has, those in flight included.
func inQueue(t *testing.T, endpoint, name string) (n int) {
	t.Helper()
	out, err := client(endpoint).GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: queueURL(endpoint, name), AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"} {
		var some int
		fmt.Sscan(out.Attributes[name], &some)
		n += some
	}
	return n
}

// sendOrders sends n messages, whose bodies are numbers.
func sendOrders(t *testing.T, endpoint string, n int) {
	t.Helper()
	var lines strings.Builder
	for i := range n {
		fmt.Fprintln(&lines, i)
	}
	if got := reprise(t, lines.String(), "send", "--endpoint", endpoint, "-q", "orders"); got.code != 0 {
		t.Fatalf("send: %+v", got)
	}
}

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

// TestRunTargetMisconfigured: a target that answers 401 to everything is no reason to
// give a message up. The breaker opens, the log and the health say so, and when the
// target is mended all messages are delivered.
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

// TestRunCommandGone: a command that is there at the start and gone later.
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

// TestRunMistakes: what leads to no queue exits with 5 and names the remedy.
func TestRunMistakes(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	nobody := "http://" + closed.Addr().String()
	_, endpoint := serve(t, "--queue", "orders")
	_, guarded := serve(t, "--access-key", "AKID", "--secret", "s3cret", "--queue", "orders")
	denying := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amzn-Query-Error", "AccessDenied;Sender")
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"__type":"com.amazon.coral.service#AccessDeniedException","message":"User: arn:aws:iam::1:user/u is not authorized to perform: sqs:getqueueurl"}`)
	}))
	t.Cleanup(denying.Close)
	key := []string{"AWS_ACCESS_KEY_ID=AKID", "AWS_SECRET_ACCESS_KEY=wrong", "AWS_EC2_METADATA_DISABLED=true"}
	to := func(args ...string) []string { return append([]string{"run", "--exec", "true"}, args...) }
	for _, test := range []struct {
		env  []string
		args []string
		code int
		want []string
	}{
		{nil, []string{"run", "--exec", "true"}, 2, []string{`"queue"`}},
		{nil, []string{"run", "--queue", "orders"}, 2, []string{"url", "exec"}},
		{nil, to("--queue", "arn:aws:sqs:eu-west-1:1:orders"), 2, []string{"is an ARN", "URL or its name"}},
		{nil, to("--queue", "http://127.0.0.1/orders"), 2, []string{"/account/name"}},
		{nil, to("--queue", "my/orders"), 2, []string{`"my/orders"`, "https://sqs."}},
		{nil, to("--queue", "orders", "--log-level", "loud"), 2, []string{`"loud"`, "debug, info, warn or error"}},
		{nil, to("--queue", "orders", "--log-format", "xml"), 2, []string{`"xml"`, "text or json"}},
		{nil, to("--queue", "orders", "--long-poll", "1500ms"), 2, []string{"--long-poll is 1.5s", "whole seconds"}},
		{nil, to("--queue", "orders", "--stop-budget", "0"), 2, []string{"--stop-budget is 0s"}},
		{nil, to("--queue", "orders", "--permanent-exit", "0"), 2, []string{"--permanent-exit", `"0"`}},
		{nil, []string{"run", "--queue", "orders", "--url", "http://localhost", "--permanent-exit", "65"}, 2, []string{"--permanent-exit", "--exec", "messages go to --url", "-status"}},
		{nil, []string{"run", "--queue", "orders", "--exec", "true", "--retry-status", "404"}, 2, []string{"--retry-status", "--url", "messages go to --exec", "-exit"}},
		{nil, []string{"up", "--exec", "true", "--content-type", "text/plain"}, 2, []string{"--content-type", "messages go to --exec", "leave it out"}},
		{nil, []string{"run", "--queue", "orders", "--exec", ""}, 2, []string{"--exec: the command is empty"}},
		{nil, []string{"run", "--queue", "orders", "--url", ""}, 2, []string{`--url: target URL ""`}},
		{nil, []string{"run", "--queue", "orders", "--exec", "./nosuch.sh"}, 2, []string{"--exec", "no program ./nosuch.sh"}},
		{nil, []string{"run", "--queue", "orders", "--url", "http://localhost", "--retry-status", "404", "--permanent-status", "4xx"}, 2, []string{"404 is in", "--retry-status", "--permanent-status"}},
		{key, to("--queue", "orders"), 5, []string{"no AWS region", "--region", "AWS_REGION"}},
		{[]string{"AWS_EC2_METADATA_DISABLED=true"}, to("--queue", "orders", "--region", "eu-west-1"), 5, []string{"no usable AWS credentials", "AWS_PROFILE"}},
		{[]string{"AWS_EC2_METADATA_DISABLED=true"}, to("--queue", "https://sqs.eu-west-1.amazonaws.com/1/orders"), 5, []string{"no usable AWS credentials"}},
		{[]string{"AWS_PROFILE=nosuch"}, to("--queue", "orders"), 5, []string{`"nosuch"`, "correct AWS_PROFILE", "aws configure list-profiles"}},
		{[]string{"AWS_PROFILE=nosuch"}, []string{"send", "--queue", "https://sqs.eu-west-1.amazonaws.com/1/orders", "hello"}, 1, []string{`"nosuch"`, "correct AWS_PROFILE"}},
		{[]string{"AWS_ENDPOINT_URL_SQS=127.0.0.1:9324"}, to("--queue", "orders"), 5, []string{`"127.0.0.1:9324"`, "AWS_ENDPOINT_URL_SQS to one like http://127.0.0.1:9324"}},
		{nil, to("--queue", "orders", "--endpoint", "localhost"), 5, []string{`"localhost"`, "http://"}},
		{nil, to("--queue", "absent", "--endpoint", endpoint), 5, []string{`"absent" does not exist`, "correct --queue, --region"}},
		{nil, to("--queue", endpoint+"/000000000000/absent"), 5, []string{"/absent", "does not exist"}},
		{nil, to("--queue", "orders", "--dead-letter", "absent", "--endpoint", endpoint), 5, []string{`"absent" does not exist`, "correct --dead-letter,"}},
		{nil, to("--queue", "orders", "--dead-letter", "orders", "--endpoint", endpoint), 2, []string{`--dead-letter "orders" is the queue that is consumed`, "name another"}},
		{nil, to("--queue", "orders", "--dead-letter", endpoint+"/000000000000/orders", "--endpoint", endpoint), 2, []string{"is the queue that is consumed"}},
		{nil, to("--queue", "orders", "--dead-letter", "http://localhost", "--endpoint", endpoint), 2, []string{"--dead-letter http://localhost does not end in"}},
		{nil, to("--queue", "orders", "--dead-letter", "arn:aws:sqs:eu-west-1:1:q", "--endpoint", endpoint), 2, []string{"--dead-letter arn:", "is an ARN"}},
		{key, to("--queue", "orders", "--endpoint", guarded), 5, []string{"not accepted", "SignatureDoesNotMatch", "AWS_PROFILE"}},
		{key, to("--queue", "orders", "--endpoint", denying.URL), 5, []string{"denied", "sqs:GetQueueUrl"}},
		{nil, to("--queue", "orders", "--endpoint", nobody), 1, []string{"no answer from " + nobody + ":", "pass its --endpoint"}},
		{[]string{"AWS_ENDPOINT_URL=" + nobody}, to("--queue", "orders"), 1, []string{"no answer from " + nobody + " (set by AWS_ENDPOINT_URL)", "correct AWS_ENDPOINT_URL,"}},
		{[]string{"AWS_ENDPOINT_URL_SQS=" + endpoint}, to("--queue", "absent"), 5, []string{"does not exist at " + endpoint + " (set by AWS_ENDPOINT_URL_SQS)"}},
		{[]string{"AWS_ENDPOINT_URL=" + nobody}, []string{"send", "--queue", "orders", "hello"}, 1, []string{"no answer from " + nobody + " (set by AWS_ENDPOINT_URL)", "correct AWS_ENDPOINT_URL,"}},
		{[]string{"AWS_ENDPOINT_URL_SQS=" + endpoint}, []string{"redrive", "absent"}, 1, []string{"does not exist at " + endpoint + " (set by AWS_ENDPOINT_URL_SQS)", "--endpoint-url " + endpoint + ")"}},
		{[]string{"AWS_ENDPOINT_URL=127.0.0.1:9324"}, []string{"send", "--queue", "orders", "hello"}, 1, []string{`"127.0.0.1:9324"`, "AWS_ENDPOINT_URL to one like http://127.0.0.1:9324"}},
		{[]string{"AWS_ENDPOINT_URL_LAMBDA=" + nobody}, []string{"lambda", "invoke", "Flaky"}, 1, []string{"no answer from " + nobody + " (set by AWS_ENDPOINT_URL_LAMBDA)", "reprise lambda up"}},
		{nil, to("--queue", "orders", "--endpoint", endpoint, "--admin-addr", taken.Addr().String()), 1, []string{"taken", "--admin-addr"}},
		{nil, to("--queue", "orders", "--endpoint", endpoint, "--admin-addr", "9999"), 1, []string{`--admin-addr "9999"`, "pass one like 127.0.0.1:9999"}},
		{nil, to("--queue", "orders", "--endpoint", endpoint, "--admin-addr", "here"), 1, []string{"pass one like 127.0.0.1:9325"}},
		{nil, []string{"up", "--exec", "true", "--queue", endpoint + "/000000000000/orders"}, 2, []string{"reprise run"}},
		{nil, []string{"up", "--exec", "./nosuch.sh"}, 2, []string{"no program ./nosuch.sh"}},
		{nil, []string{"serve", "--log-level", "loud"}, 2, []string{`"loud"`}},
		{nil, []string{"lambda", "up", "t.yaml", "--log-format", "xml"}, 2, []string{`"xml"`}},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, program, test.args...)
			cmd.Env = environment(test.env...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if code := exitCode(t, cmd.Run()); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if stdout.Len() != 0 || !strings.HasPrefix(stderr.String(), "reprise: ") || strings.Contains(stderr.String(), "wrong") {
				t.Errorf("stdout %q; want one complaint of reprise on stderr alone, and no secret", &stdout)
			}
			for _, want := range test.want {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("it does not say %q:\n%s", want, &stderr)
				}
			}
		})
	}
}

// TestUpNamesRun: an endpoint in the environment that is not up's own is not ignored
// without a word.
func TestUpNamesRun(t *testing.T) {
	t.Parallel()
	const warning = "use reprise run"
	p := startIn(t, environment("AWS_ENDPOINT_URL_SQS=http://localstack:4566"), "up", "--memory", "--addr", "127.0.0.1:0", "--exec", "true")
	p.await("retry  ")
	p.signal(os.Interrupt)
	if _, output := p.wait(); !strings.Contains(output, warning) || !strings.Contains(output, "http://localstack:4566") {
		t.Errorf("up does not say that it leaves the endpoint aside:\n%s", output)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	own := l.Addr().String()
	l.Close()
	p = startIn(t, environment("AWS_ENDPOINT_URL=http://"+strings.Replace(own, "127.0.0.1", "localhost", 1)), "up", "--memory", "--addr", own, "--exec", "true")
	p.await("retry  ")
	p.signal(os.Interrupt)
	if _, output := p.wait(); strings.Contains(output, warning) {
		t.Errorf("up complains of its own endpoint:\n%s", output)
	}
}

// TestLogFlags: logs are on the standard error alone, in the form and from the level
// that is asked for.
func TestLogFlags(t *testing.T) {
	t.Parallel()
	needShell(t)
	for _, test := range []struct {
		level     string
		has, lack []string
	}{
		{"debug", []string{"attempt failed", "consuming", "message dead-lettered"}, nil},
		{"info", []string{"consuming", "stopped", "message dead-lettered"}, []string{"attempt failed"}},
		{"warn", []string{"message dead-lettered"}, []string{"consuming", "attempt failed"}},
		{"error", nil, []string{"message dead-lettered", "consuming"}},
	} {
		t.Run(test.level, func(t *testing.T) {
			t.Parallel()
			endpoint := orders(t)
			sendOrders(t, endpoint, 1)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			cmd := exec.CommandContext(ctx, program, "run", "--queue", "orders", "--endpoint", endpoint, "--admin-addr", "none",
				"--exec", "exit 3", "--retry", "constant(1s) jitter=none attempts=2", "--log-level", test.level, "--log-format", "json")
			cmd.Env = environment()
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(patience); inQueue(t, endpoint, "orders-dead") == 0 || inQueue(t, endpoint, "orders") > 0; time.Sleep(20 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("no dead letter")
				}
			}
			cmd.Process.Signal(syscall.SIGTERM)
			if code := exitCode(t, cmd.Wait()); code != 0 {
				t.Errorf("exit code %d", code)
			}
			var messages []string
			for line := range strings.Lines(stderr.String()) {
				var record struct{ Level, Msg string }
				if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "reprise: stopping") {
					continue // for whoever has pressed Ctrl-C
				}
				if err := json.Unmarshal([]byte(line), &record); err != nil {
					t.Errorf("%v: %s", err, line)
				}
				messages = append(messages, record.Msg)
			}
			all := strings.Join(messages, "\n")
			for _, want := range test.has {
				if !strings.Contains(all, want) {
					t.Errorf("the log lacks %q:\n%s", want, all)
				}
			}
			for _, not := range test.lack {
				if strings.Contains(all, not) {
					t.Errorf("the log has %q:\n%s", not, all)
				}
			}
			if strings.Contains(stdout.String(), "{") {
				t.Errorf("a log on the standard output:\n%s", &stdout)
			}
		})
	}
}
