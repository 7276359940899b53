package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
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
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	library "github.com/reprise-sqs/reprise"
)

// serve starts a server and returns it with its endpoint.
func serve(t *testing.T, args ...string) (p *process, endpoint string) {
	t.Helper()
	p = start(t, append([]string{"serve", "--addr", "127.0.0.1:0"}, args...)...)
	return p, p.await("SQS endpoint")
}

// up starts a server with a consumer and returns it with its endpoint.
func up(t *testing.T, args ...string) (p *process, endpoint string) {
	t.Helper()
	p = start(t, append([]string{"up", "--addr", "127.0.0.1:0"}, args...)...)
	endpoint = p.await("SQS endpoint")
	p.await("retry         ") // the last line that quotes the arguments
	return p, endpoint
}

func client(endpoint string) *sqs.Client {
	return sqs.New(sqs.Options{Region: "us-east-1", BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
}

// queueURL is the URL of a queue of the server at endpoint.
func queueURL(endpoint, name string) *string {
	return aws.String(endpoint + "/000000000000/" + name)
}

// receive returns the bodies of up to ten messages, waiting for the first.
func receive(t *testing.T, endpoint, queue string) []string {
	t.Helper()
	out, err := client(endpoint).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: queueURL(endpoint, queue), MaxNumberOfMessages: 10, WaitTimeSeconds: 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	var bodies []string
	for _, m := range out.Messages {
		bodies = append(bodies, *m.Body)
	}
	return bodies
}

// TestServe: the AWS SDK takes it for SQS; queues of the command line exist; a
// signal answers the long poll that waits, and ends the program with 0.
func TestServe(t *testing.T) {
	t.Parallel()
	p, endpoint := serve(t, "--queue", "orders,VisibilityTimeout=77,dead-letter=orders-dead,max-receives=5", "--queue", "jobs.fifo,ContentBasedDeduplication=true")
	p.await("storage       memory: messages are lost")

	resp, err := http.Get(endpoint + "/health")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != 200 || string(text) != `{"status":"ok","storage":"memory"}`+"\n" {
		t.Errorf("GET /health = %d %s", resp.StatusCode, text)
	}

	c := client(endpoint)
	out, err := c.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: queueURL(endpoint, "orders"), AttributeNames: []types.QueueAttributeName{"All"}})
	if err != nil {
		t.Fatal(err)
	}
	if v := out.Attributes["VisibilityTimeout"]; v != "77" {
		t.Errorf("VisibilityTimeout is %q, want 77", v)
	}
	if v := out.Attributes["RedrivePolicy"]; !strings.Contains(v, "orders-dead") || !strings.Contains(v, "5") {
		t.Errorf("RedrivePolicy is %q", v)
	}

	if got := reprise(t, "", "send", "--endpoint", endpoint, "-q", "jobs.fifo", "--group", "g", "one", "two"); got.code != 0 {
		t.Fatalf("send failed: %+v", got)
	}
	if got := receive(t, endpoint, "jobs.fifo"); !slices.Equal(got, []string{"one", "two"}) {
		t.Errorf("received %q", got)
	}

	// The poll has reached the server once the queue says that it was seen: that
	// cannot be asked for, so the signal may also come first; both must end well.
	polled := make(chan error, 1)
	go func() {
		_, err := c.ReceiveMessage(context.Background(), &sqs.ReceiveMessageInput{QueueUrl: queueURL(endpoint, "orders"), WaitTimeSeconds: 20},
			func(o *sqs.Options) { o.RetryMaxAttempts = 1 })
		polled <- err
	}()
	p.signal(os.Interrupt)
	if code, output := p.wait(); code != 0 {
		t.Errorf("exit code %d after SIGINT:\n%s", code, output)
	}
	<-polled
}

// TestSend: arguments, lines and files arrive byte for byte, in batches of ten.
func TestSend(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "q")
	file := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(file, []byte("line 1\n\n  \r\nשלום 🚀\n{\"a\":\"last, without an end\"}"), 0o600); err != nil {
		t.Fatal(err)
	}
	var many strings.Builder
	for i := range 23 {
		fmt.Fprintln(&many, i)
	}
	for _, test := range []struct {
		name, stdin string
		args        []string
		want        []string
		requests    string
	}{
		{"arguments", "", []string{"a", `{"b": "\\n"}`, "-"}, []string{"a", `{"b": "\\n"}`, "-"}, "in 1 requests"},
		{"file", "", []string{"--file", file}, []string{"line 1", "שלום 🚀", `{"a":"last, without an end"}`}, "in 1 requests"},
		{"lines", many.String(), nil, strings.Fields(many.String()), "23 sent to " + endpoint + "/000000000000/q in 3 requests"},
		{"dash", "x\n", []string{"--file", "-"}, []string{"x"}, "1 sent"},
		{"nothing", "", nil, nil, "0 sent"},
	} {
		got := reprise(t, test.stdin, append([]string{"send", "--endpoint", endpoint, "--queue", "q"}, test.args...)...)
		if got.code != 0 || !strings.Contains(got.stdout, test.requests) {
			t.Errorf("%s: exit code %d, %s%s", test.name, got.code, got.stdout, got.stderr)
		}
		var bodies []string
		for len(bodies) < len(test.want) {
			bodies = append(bodies, receive(t, endpoint, "q")...)
		}
		if !slices.Equal(bodies, test.want) {
			t.Errorf("%s: received %q, want %q", test.name, bodies, test.want)
		}
	}
}

// TestSendRefused: what SQS refuses is named by its place, and the rest is sent.
func TestSendRefused(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "small,MaximumMessageSize=1024")
	got := reprise(t, "fine\n"+strings.Repeat("x", 1025)+"\nfine too\nbad \x01 character\n", "send", "--endpoint", endpoint, "-q", "small")
	if got.code != 3 || !strings.HasPrefix(got.stdout, "2 sent") {
		t.Errorf("exit code %d, %s; want 3 and 2 sent", got.code, got.stdout)
	}
	for _, want := range []string{"standard input, line 2, was not sent", "shorter than 1024 bytes", "line 4, was not sent", "2 messages were not sent"} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("stderr does not say %q:\n%s", want, got.stderr)
		}
	}
	if got := receive(t, endpoint, "small"); !slices.Equal(got, []string{"fine", "fine too"}) {
		t.Errorf("received %q", got)
	}

	got = reprise(t, "", "send", "--endpoint", endpoint, "-q", "absent", "x")
	if got.code != 1 || !strings.Contains(got.stderr, `queue "absent" does not exist`) || !strings.Contains(got.stderr, "reprise serve --queue absent") {
		t.Errorf("exit code %d, %s; want 1 and a remedy", got.code, got.stderr)
	}
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
	if got := reprise(t, "", "send", "--endpoint", endpoint, "-q", "orders", "--attribute", "tenant=ж", "good", "bad", "busy"); got.code != 0 {
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

// TestUpExec: a command gets its messages, and steers by its exit code.
func TestUpExec(t *testing.T) {
	t.Parallel()
	needShell(t)
	p, endpoint := up(t, "--concurrency", "1", "--retry", "constant(1s) jitter=none attempts=2",
		"--exec", `read -r m; echo "work on $m, attempt $REPRISE_ATTEMPT"; case $m in hopeless) echo "not today" >&2; exit 1;; esac`)
	if got := reprise(t, "", "send", "--endpoint", endpoint, "-q", "jobs", "hopeless"); got.code != 0 {
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
	if got := reprise(t, "", "send", "--endpoint", endpoint, "-q", "jobs", "x"); got.code != 0 {
		t.Fatalf("send: %+v", got)
	}
	p.await("begun")
	p.signal(os.Interrupt)
	p.await("stopping; once more to stop at once")
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p.await("finished")
	if code, output := p.wait(); code != 0 || !strings.Contains(output, "1 deleted") {
		t.Errorf("exit code %d:\n%s", code, output)
	}
}

// TestUpSecondSignal: the second signal stops at once, and takes the command that
// was running along.
func TestUpSecondSignal(t *testing.T) {
	t.Parallel()
	needShell(t)
	p, endpoint := up(t, "--timeout", "1h", "--exec", "echo the pid is $$; exec sleep 600")
	if got := reprise(t, "", "send", "--endpoint", endpoint, "-q", "jobs", "x"); got.code != 0 {
		t.Fatalf("send: %+v", got)
	}
	pid, err := strconv.Atoi(p.await("the pid is "))
	if err != nil {
		t.Fatal(err)
	}
	p.signal(os.Interrupt)
	p.await("stopping; once more to stop at once")
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
