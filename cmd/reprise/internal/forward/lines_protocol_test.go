//go:build unix

package forward_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/forward"
)

// TestAnswersNameTheirMessage: whatever a worker writes that does not name the message decides nothing about it.
// A line that another part of the worker prints, such as {}, must not delete a message that is not done.
func TestAnswersNameTheirMessage(t *testing.T) {
	for _, answer := range []string{`{}`, `{"id":""}`, `{"result":"delete"}`, `{"id":"id-1"}`, `{"id":"ID"}`, `{"ID":"other"}`, `null`, `[]`, ``} {
		target, err := forward.NewLines(forward.LinesConfig{Command: "read line; echo '" + answer + "'; read line", Queue: "orders"})
		if err != nil {
			t.Fatal(err)
		}
		err = target.Handle(t.Context(), &reprise.Message{ID: "id", OriginID: "id", Body: "b"})
		target.Close()
		if err == nil || !reprise.IsUnavailable(err) {
			t.Errorf("the answer %q: %v, want an error that says that the worker is at fault", answer, err)
		}
	}
}

// TestRequestLine: a worker gets each part of a message under its own name.
func TestRequestLine(t *testing.T) {
	got := filepath.Join(t.TempDir(), "line")
	target, err := forward.NewLines(forward.LinesConfig{Command: "read -r line; printf '%s' \"$line\" >" + got + `; echo '{"id":"m-2"}'; read line`, Queue: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	sent := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	err = target.Handle(t.Context(), &reprise.Message{
		ID: "m-2", OriginID: "m-1", GroupID: "g", Attempt: 3, Receives: 7, Sent: sent, FirstReceived: sent.Add(time.Minute), Body: "b",
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(got)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"id":"m-2","origin_id":"m-1","queue":"orders","group_id":"g","attempt":3,"receive_count":7,` +
		`"sent_at":"2026-11-21T07:00:00Z","first_received_at":"2026-11-21T07:01:00Z","body":"b"}`
	if strings.TrimSpace(string(text)) != want {
		t.Errorf("the worker got %s, want %s", text, want)
	}
}

// TestWorkerLeavesItsOutputOpen: a worker that ends without an answer has ended for its message too, although a process
// that it leaves behind has its output open: the message does not wait for the end of its time.
func TestWorkerLeavesItsOutputOpen(t *testing.T) {
	t.Parallel()
	pid := filepath.Join(t.TempDir(), "pid")
	target, err := forward.NewLines(forward.LinesConfig{Command: "read -r line; sleep 600 2>/dev/null & echo $! >" + pid + "; exit 3", Queue: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err = target.Handle(ctx, &reprise.Message{ID: "m", OriginID: "m", Body: "b"})
	if exit, ended := errors.AsType[*forward.ExitError](err); !ended || exit.Code != 3 {
		t.Errorf("Handle = %v, want the exit code", err)
	}
	text, err := os.ReadFile(pid)
	if err != nil {
		t.Fatal(err)
	}
	left, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(left, syscall.SIGKILL); err != nil {
		t.Errorf("the process that was left behind: %v", err)
	}
}

// twice answers each message two times: that it is to be tried again, and that it is done.
const twice = `while read -r line; do echo >>runs; echo '{"id":"m","error":"no stock"}'; echo '{"id":"m"}'; done`

// TestWorkerAnswersTwice: the first answer decides. The second is not taken for that of the next attempt, which would
// be settled without a run.
func TestWorkerAnswersTwice(t *testing.T) {
	t.Chdir(t.TempDir())
	var log bytes.Buffer
	target, err := forward.NewLines(forward.LinesConfig{Command: twice, Queue: "orders", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	for attempt := 1; attempt <= 2; attempt++ {
		err := target.Handle(t.Context(), &reprise.Message{ID: "m", OriginID: "m", Attempt: attempt, Body: "b"})
		if err == nil || err.Error() != "no stock" {
			t.Errorf("attempt %d: Handle = %v, want the first answer", attempt, err)
		}
		time.Sleep(100 * time.Millisecond) // between two attempts, the second answer has come
	}
	if runs, err := os.ReadFile("runs"); len(runs) != 2 {
		t.Errorf("the message was run %d times, want one for each attempt: %v", len(runs), err)
	}
	if !strings.Contains(log.String(), `wrote \"{\\\"id\\\":\\\"m\\\"}\"`) {
		t.Errorf("nothing tells of the second answer: %s", log.String())
	}
}

// TestWorkerEndsBehindItsAnswer: a worker may end when it has answered. A message that it is given meanwhile, and does
// not read, is run by another one: no attempt has failed.
func TestWorkerEndsBehindItsAnswer(t *testing.T) {
	for _, body := range []string{"b", strings.Repeat("b", 1<<20)} { // more than a pipe takes, too
		target, err := forward.NewLines(forward.LinesConfig{Command: `read -r line; echo '{"id":"m"}'; sleep 0.1`, Queue: "orders"})
		if err != nil {
			t.Fatal(err)
		}
		defer target.Close()
		for range 3 {
			if err := target.Handle(t.Context(), &reprise.Message{ID: "m", OriginID: "m", Body: body}); err != nil {
				t.Errorf("Handle = %v", err)
			}
		}
	}
}

// TestWorkerEndsWithASecondMessage: a worker that has read a message and ends fails it, as it may be the reason.
func TestWorkerEndsWithASecondMessage(t *testing.T) {
	target, err := forward.NewLines(forward.LinesConfig{Command: `read -r line; echo '{"id":"m"}'; read -r line; exit 3`, Queue: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	if err := target.Handle(t.Context(), &reprise.Message{ID: "m", OriginID: "m", Body: "b"}); err != nil {
		t.Errorf("Handle = %v", err)
	}
	err = target.Handle(t.Context(), &reprise.Message{ID: "m", OriginID: "m", Body: "b"})
	if exit, ended := errors.AsType[*forward.ExitError](err); !ended || exit.Code != 3 {
		t.Errorf("Handle = %v, want the exit code", err)
	}
}
