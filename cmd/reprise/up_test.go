//go:build unix

package main_test

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	library "github.com/reprise-sqs/reprise"
)

// up starts a server that keeps nothing, with a consumer, and returns it with its
// endpoint.
func up(t *testing.T, args ...string) (p *process, endpoint string) {
	t.Helper()
	p = start(t, append([]string{"up", "--memory", "--addr", "127.0.0.1:0"}, args...)...)
	endpoint = p.await("SQS endpoint")
	p.await("retry         ") // the last line that quotes the arguments
	return p, endpoint
}

// deadLetter returns the dead letter of a queue, with its story.
func deadLetter(t *testing.T, endpoint, queue string) (body string, story library.Story) {
	t.Helper()
	out, err := client(endpoint).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: queueURL(endpoint, queue), WaitTimeSeconds: 20, MessageAttributeNames: []string{"All"},
	})
	if err != nil || len(out.Messages) != 1 {
		t.Fatalf("receiving from %s: %v, %v; want a message", queue, out, err)
	}
	m := out.Messages[0]
	if err := json.Unmarshal([]byte(*m.MessageAttributes[library.StoryAttribute].StringValue), &story); err != nil {
		t.Fatalf("story: %v", err)
	}
	return *m.Body, story
}

// TestUpURL: messages reach the endpoint, failures come again, a permanent one
// becomes a dead letter, and a signal drains.
func TestUpURL(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := make(map[string][]int) // the attempts of each body
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		attempt, _ := strconv.Atoi(r.Header.Get("X-Reprise-Attempt"))
		mu.Lock()
		seen[string(body)] = append(seen[string(body)], attempt)
		mu.Unlock()
		if r.Header.Get("Content-Type") != "text/x-order" || r.Header.Get("X-Aws-Sqsd-Queue") != "orders" || r.Header.Get("X-Aws-Sqsd-Attr-tenant") != "ж" {
			t.Errorf("headers %v", r.Header)
		}
		switch {
		case string(body) == "bad":
			http.Error(w, "no such product", http.StatusUnprocessableEntity)
		case string(body) == "busy" && attempt < 3:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer srv.Close()

	p, endpoint := up(t, "--queue", "orders", "--url", srv.URL, "--content-type", "text/x-order", "--retry", "constant(1s) jitter=none attempts=5")
	if got := reprise(t, "", "send", "--endpoint", endpoint, "orders", "--attribute", "tenant=ж", "good", "bad", "busy"); got.code != 0 {
		t.Fatalf("send: %+v", got)
	}
	body, story := deadLetter(t, endpoint, "orders-dead")
	if body != "bad" || story.Reason != "permanent" || story.Attempts != 1 || !strings.Contains(story.Error, "422 Unprocessable Entity: no such product") {
		t.Errorf("dead letter %q with the story %+v", body, story)
	}
	for awaiting := true; awaiting; time.Sleep(10 * time.Millisecond) {
		mu.Lock()
		awaiting = len(seen["busy"]) < 3
		mu.Unlock()
	}
	p.signal(os.Interrupt)
	code, output := p.wait()
	if code != 0 || !strings.Contains(output, "2 deleted, 2 retried, 0 released, 1 dead-lettered") {
		t.Errorf("exit code %d:\n%s", code, output)
	}
	if !slices.Equal(seen["busy"], []int{1, 2, 3}) || !slices.Equal(seen["good"], []int{1}) {
		t.Errorf("attempts %v", seen)
	}
}

// TestUpServesAsServeDoes: with a key, a certificate and faults the server treats others as
// reprise serve does, and its own consumer works.
func TestUpServesAsServeDoes(t *testing.T) {
	t.Parallel()
	needShell(t)
	cert, key, pool := certificate(t)
	faults := written(t, "faults.yaml", "jobs:\n  - {kind: server-error, action: DeleteMessageBatch, limit: 1}\n")
	p, endpoint := up(t, "--exec", "cat; echo", "--access-key", "AKID", "--secret", "s3cret", "--tls-cert", cert, "--tls-key", key, "--faults", faults, "--request-log")
	send := &sqs.SendMessageInput{QueueUrl: queueURL(endpoint, "jobs"), MessageBody: aws.String("behind the door")}
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	trust := func(o *sqs.Options) { o.HTTPClient = web }
	if _, err := clientWith(endpoint, "AKID", "guess", trust).SendMessage(t.Context(), send); err == nil || !strings.Contains(err.Error(), "SignatureDoesNotMatch") {
		t.Errorf("with a wrong secret: %v", err)
	}
	if _, err := clientWith(endpoint, "AKID", "s3cret", trust).SendMessage(t.Context(), send); err != nil {
		t.Fatal(err)
	}
	p.await("behind the door")
	p.await("action=DeleteMessageBatch queue=jobs status=500")
	p.await("action=DeleteMessageBatch queue=jobs status=200")
	p.signal(os.Interrupt)
	if code, output := p.wait(); code != 0 || !strings.Contains(output, "1 deleted") {
		t.Errorf("exit code %d:\n%s", code, output)
	}
}

// TestUpExec: a command gets its messages, and steers by its exit code.
func TestUpExec(t *testing.T) {
	t.Parallel()
	needShell(t)
	p, endpoint := up(t, "--concurrency", "1", "--retry", "constant(1s) jitter=none attempts=2",
		"--exec", `read -r m; echo "work on $m, attempt $REPRISE_ATTEMPT"; case $m in hopeless) echo "not today" >&2; exit 1;; esac`)
	if got := reprise(t, "", "send", "--endpoint", endpoint, "jobs", "hopeless"); got.code != 0 {
		t.Fatalf("send: %+v", got)
	}
	p.await("work on hopeless, attempt 1")
	p.await("work on hopeless, attempt 2")
	body, story := deadLetter(t, endpoint, "jobs-dead")
	if body != "hopeless" || story.Reason != "attempts" || story.Attempts != 2 || !strings.Contains(story.Error, "exit status 1: not today") {
		t.Errorf("dead letter %q with the story %+v", body, story)
	}
	p.signal(syscall.SIGTERM)
	if code, output := p.wait(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, output)
	}
}

// TestUpDrains: the first signal lets what runs finish, and its message is deleted
// before the program ends.
func TestUpDrains(t *testing.T) {
	t.Parallel()
	needShell(t)
	gate := filepath.Join(t.TempDir(), "gate")
	p, endpoint := up(t, "--exec", "echo begun; while [ ! -e "+gate+" ]; do sleep 0.02; done; echo finished")
	if got := reprise(t, "", "send", "--endpoint", endpoint, "jobs", "x"); got.code != 0 {
		t.Fatalf("send: %+v", got)
	}
	p.await("begun")
	p.signal(os.Interrupt)
	p.await("stopping gracefully; press Ctrl-C again to stop now")
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.await("finished")
	if code, output := p.wait(); code != 0 || !strings.Contains(output, "1 deleted") {
		t.Errorf("exit code %d:\n%s", code, output)
	}
}

// TestUpSecondSignal: the second signal stops at once, and kills the running command.
func TestUpSecondSignal(t *testing.T) {
	t.Parallel()
	needShell(t)
	p, endpoint := up(t, "--timeout", "1h", "--exec", "echo the pid is $$; exec sleep 600")
	if got := reprise(t, "", "send", "--endpoint", endpoint, "jobs", "x"); got.code != 0 {
		t.Fatalf("send: %+v", got)
	}
	pid, err := strconv.Atoi(p.await("the pid is "))
	if err != nil {
		t.Fatal(err)
	}
	p.signal(os.Interrupt)
	p.await("stopping gracefully; press Ctrl-C again to stop now")
	p.signal(os.Interrupt)
	if code, output := p.wait(); code != 130 || !strings.Contains(output, "stopped at once") {
		t.Errorf("exit code %d, want 130:\n%s", code, output)
	}
	if err := syscall.Kill(pid, 0); err == nil {
		t.Errorf("the command, process %d, is still running", pid)
	}
}

func needShell(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("skipped: there is no shell to run commands with")
	}
}

// TestUpNamesRun: up logs that it ignores another endpoint in the environment.
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
