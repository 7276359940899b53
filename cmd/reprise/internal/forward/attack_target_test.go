//go:build unix

// This file holds off a target that the operator has named and does not control: an endpoint
// that may reply with anything, or a command that may print anything, to any message of a
// producer.

package forward_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/forward"
)

// hostile is text that steers terminals: clear the screen, set the title, by C0 and C1
// controls, turn the direction of text, go back to the line's begin.
const hostile = "bad\x1b[2J\x1b]0;pwned\x07\u009b31m\u202egnp.exe\u2066\x7f\rok\u2028end"

// TestAttackReplySteersTerminal: neither a reply nor stderr brings a control or another
// direction of text into an error, which goes to logs and stories.
func TestAttackReplySteersTerminal(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, hostile)
	}))
	defer server.Close()
	target, err := forward.NewHTTP(forward.HTTPConfig{URL: server.URL, Queue: "orders"})
	if err != nil {
		t.Fatal(err)
	}
	command := newExec(t, forward.ExecConfig{Command: "cat >&2; exit 3"})
	for name, err := range map[string]error{
		"http": target.Handle(t.Context(), message("m")),
		"exec": command.Handle(t.Context(), message(hostile)),
	} {
		if err == nil || !strings.Contains(err.Error(), "end") || strings.ContainsAny(err.Error(), "\x1b\u009b\u202e\u2066\x7f\r\x07\u2028") {
			t.Errorf("%s: error %q", name, err)
		}
	}
}

// lines collects what commands write.
type lines struct {
	mu     sync.Mutex
	text   bytes.Buffer
	halves int // writes that are not one whole line
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bytes.Count(p, []byte("\n")) != 1 || p[len(p)-1] != '\n' {
		l.halves++
	}
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// TestAttackFloodOfOutput: of 100 MB that a command writes, the begin and the end are
// passed on, by lines, and a line that says how much is missing; all of it is read, so
// that the command is not held up.
func TestAttackFloodOfOutput(t *testing.T) {
	const flood = `echo first; head -c 100000000 /dev/zero | tr '\0' x | fold -w 99; printf '\nthe reason'`
	for name, command := range map[string]string{"stderr": "(" + flood + ") >&2; exit 3", "stdout": flood + "; exit 3"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errs lines
			err := newExec(t, forward.ExecConfig{Command: command, Stdout: &out, Stderr: &errs}).Handle(t.Context(), message(""))
			if err == nil || name == "stderr" && !strings.HasSuffix(err.Error(), "the reason") {
				t.Errorf("error %v", err)
			}
			got := &errs
			if name == "stdout" {
				got = &out
			}
			text := got.String()
			if len(text) > 70_000 || !strings.HasPrefix(text, "first\nxxx") || !strings.HasSuffix(text, "x\nthe reason\n") || got.halves > 0 {
				t.Errorf("%d bytes, %d halves, from %.20q", len(text), got.halves, text)
			}
			var missing int
			_, rest, _ := strings.Cut(text, "reprise: ")
			if _, err := fmt.Sscanf(rest, "%d bytes of a command's standard", &missing); err != nil {
				t.Fatalf("does not say how much is missing: %v", err)
			}
			notice, _, _ := strings.Cut(rest, "\n")
			const all = 100_000_000 + 100_000_000/99 + len("first\n\nthe reason") // fold ends its lines but the last
			if passed := len(text) - len("reprise: "+notice+"\n") - len("\n"); passed+missing != all {
				t.Errorf("%d passed and %d missing make %d, want %d", passed, missing, passed+missing, all)
			}
		})
	}
}

// TestAttackFloodOfOneLine: a line without an end is passed on in pieces.
func TestAttackFloodOfOneLine(t *testing.T) {
	var errs lines
	_ = newExec(t, forward.ExecConfig{Command: `head -c 20000 /dev/zero | tr '\0' x >&2`, Stderr: &errs}).Handle(t.Context(), message(""))
	if text := errs.String(); len(text) != 20_001 || !strings.HasSuffix(text, "x\n") {
		t.Errorf("%d bytes", len(text))
	}
}
