//go:build unix

package forward_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/forward"
	"github.com/reprise-sqs/reprise/retry"
)

// worker is a worker in Python. It does what the body says, and appends its process id to the
// file that is its argument for each message.
const worker = `
import base64, json, os, sys, time
for line in sys.stdin:
    m = json.loads(line)
    with open(sys.argv[1], "a") as f:
        f.write(str(os.getpid()) + "\n")
    answer, body = {"id": m["id"]}, m["body"]
    if "body_base64" in m:
        body = "bytes " + str(len(base64.b64decode(m["body_base64"])))
    if body.startswith("{"):
        answer.update(json.loads(body))
    elif body == "attributes":
        answer["error"] = m["attributes"]["team"] + " " + str(base64.b64decode(m["binary_attributes"]["bytes"]))
    elif body == "sleep":
        time.sleep(600)
    elif body.startswith("await "):
        while not os.path.exists(body[6:]):
            time.sleep(0.005)
    elif body == "exit":
        sys.exit("no memory")
    elif body == "missing":
        os._exit(127)
    elif body == "chatter":
        print("hello", flush=True)
    elif body == "long":
        answer["error"] = "x" * 100000
    elif body.startswith("bytes"):
        answer["error"] = body
    elif len(body) > 1000:
        answer["error"] = str(len(body))
    print(json.dumps(answer), flush=True)
`

// newLines returns a target that runs the worker, and the file with the ids of its processes.
func newLines(t *testing.T) (target *forward.Lines, pids string) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("skipped: there is no python3 for the worker")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "worker.py")
	if err := os.WriteFile(program, []byte(worker), 0o600); err != nil {
		t.Fatal(err)
	}
	pids = filepath.Join(dir, "pids")
	target, err := forward.NewLines(forward.LinesConfig{Command: "exec python3 " + program + " " + pids, Queue: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	return target, pids
}

// processes returns the ids of the processes that had messages, in the order of these.
func processes(t *testing.T, pids string) []string {
	t.Helper()
	text, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

// TestLinesAnswers: what each answer does to the message.
func TestLinesAnswers(t *testing.T) {
	target, pids := newLines(t)
	for _, test := range []struct {
		body   string
		action retry.Action // 0: success
		wait   time.Duration
		down   bool
		text   string
		ends   bool // the process, which answers nothing more
	}{
		{body: "ok"},
		{body: `{"result":"delete","error":"done before"}`},
		{body: `{"error":"no stock"}`, action: retry.ActionRetry, wait: time.Second, text: "no stock"},
		{body: `{"result":"retry","error":"later","after":90}`, action: retry.ActionRetry, wait: 90 * time.Second, text: "later"},
		{body: `{"result":"permanent","error":"no such article"}`, action: retry.ActionDeadLetter, text: "no such article"},
		{body: `{"result":"release","error":"not now"}`, action: retry.ActionRelease, text: "not now"},
		{body: `{"result":"release","error":"closed","after":300}`, action: retry.ActionRelease, wait: 5 * time.Minute, text: "closed"},
		{body: `{"result":"unavailable","error":"down","after":90}`, action: retry.ActionRetry, wait: 90 * time.Second, down: true, text: "down"},
		{body: `{"error":"much later","after":1e300}`, action: retry.ActionRetry, wait: 12 * time.Hour, text: "much later"},
		{body: `{"error":"before","after":-1}`, action: retry.ActionRetry, wait: time.Second, text: "before"},
		{body: `{"result":"unavailable"}`, action: retry.ActionRetry, wait: time.Second, down: true, text: "no reason"},
		{body: `{"result":"perhaps"}`, action: retry.ActionRetry, wait: time.Second, text: `"perhaps"`},
		{body: "attributes", action: retry.ActionRetry, wait: time.Second, text: `shop b'\x00\xff'`},
		{body: "\xff\xfe", action: retry.ActionRetry, wait: time.Second, text: "bytes 2"},
		{body: strings.Repeat("é", 1<<19), action: retry.ActionRetry, wait: time.Second, text: strconv.Itoa(1 << 19)},
		{body: "exit", action: retry.ActionRetry, wait: time.Second, text: "exit status 1: no memory", ends: true},
		{body: "missing", action: retry.ActionRetry, wait: time.Second, down: true, text: "exit status 127", ends: true},
		{body: "chatter", action: retry.ActionRetry, wait: time.Second, down: true, text: `not an object of JSON on one line: "hello"`, ends: true},
		{body: `{"id":"another"}`, action: retry.ActionRetry, wait: time.Second, down: true, text: `for the message "another"`, ends: true},
		{body: "long", action: retry.ActionRetry, wait: time.Second, down: true, text: "longer than 64 KiB", ends: true},
		{body: "ok"},
	} {
		err := target.Handle(t.Context(), &reprise.Message{ID: "id", OriginID: "id", Body: test.body, Attributes: map[string]types.MessageAttributeValue{
			"team":  {DataType: aws.String("String"), StringValue: aws.String("shop")},
			"bytes": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 0xff}},
		}})
		name := test.body[:min(40, len(test.body))]
		if test.action == 0 {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), test.text) || reprise.IsUnavailable(err) != test.down {
			t.Errorf("%s: %v (unavailable: %v), want %q", name, err, reprise.IsUnavailable(err), test.text)
		}
		ended := time.Unix(1000, 0)
		got := retry.Policy{Jitter: retry.None}.Decide(retry.Failure{N: 1, First: ended, Ended: ended, Err: err})
		if got.Action != test.action || test.wait > 0 && got.At.Sub(ended) != test.wait {
			t.Errorf("%s: %v after %v, want %v after %v", name, got.Action, got.At.Sub(ended), test.action, test.wait)
		}
	}
	seen := make(map[string]int)
	for _, pid := range processes(t, pids) {
		seen[pid]++
	}
	if len(seen) != 6 {
		t.Errorf("the messages were given to %v, want one process until one ends, six in all", seen)
	}
}

// TestLinesDeadline: when the attempt's time is up the process and its children are killed,
// and the next message gets another.
func TestLinesDeadline(t *testing.T) {
	target, pids := newLines(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		for {
			if text, _ := os.ReadFile(pids); len(text) > 0 {
				cancel(context.DeadlineExceeded)
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	err := target.Handle(ctx, &reprise.Message{ID: "id", Body: "sleep"})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("Handle = %v", err)
	}
	pid, _ := strconv.Atoi(processes(t, pids)[0])
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the process is still there: %v", err)
	}
	if err := target.Handle(t.Context(), &reprise.Message{ID: "id", Body: "ok"}); err != nil {
		t.Error(err)
	}
}

// TestLinesSideBySide: messages at work at once have processes of their own, which end when
// the target is closed.
func TestLinesSideBySide(t *testing.T) {
	target, pids := newLines(t)
	ended := make(chan error)
	for range 3 {
		go func() {
			for range 5 {
				if err := target.Handle(t.Context(), &reprise.Message{ID: "id", Body: "ok"}); err != nil {
					ended <- err
					return
				}
			}
			ended <- nil
		}()
	}
	for range 3 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	target.Close()
	all := processes(t, pids)
	if len(all) != 15 {
		t.Errorf("%d messages were handled, want 15", len(all))
	}
	for _, text := range all {
		pid, _ := strconv.Atoi(text)
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d is still there: %v", pid, err)
		}
	}
}

// TestLinesClosedAtWork: a process that has a message when the target is closed answers, and ends then.
func TestLinesClosedAtWork(t *testing.T) {
	target, pids := newLines(t)
	permit := filepath.Join(t.TempDir(), "permit")
	ended := make(chan error)
	go func() { ended <- target.Handle(t.Context(), &reprise.Message{ID: "id", Body: "await " + permit}) }()
	for text := []byte(nil); len(text) == 0; time.Sleep(5 * time.Millisecond) {
		text, _ = os.ReadFile(pids)
	}
	target.Close()
	if err := os.WriteFile(permit, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("Handle = %v", err)
	}
	pid, _ := strconv.Atoi(processes(t, pids)[0])
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the process is still there: %v", err)
	}
}

func TestLinesBadConfig(t *testing.T) {
	for _, cfg := range []forward.LinesConfig{{Command: " ", Queue: "q"}, {Command: "cat"}, {Command: "./nosuch", Queue: "q"}} {
		if _, err := forward.NewLines(cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}
