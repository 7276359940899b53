// This file holds off functions of `lambda up`, services and messages whose text the
// program shows: on the operator's terminal it stays text, and there is a bound to it.

package cli

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/choice"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/forward"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/emulator"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/template"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// page is a buffer that several goroutines may use.
type page struct {
	mu   sync.Mutex
	text strings.Builder
}

func (p *page) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(text)
}

func (p *page) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func (p *page) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text.Reset()
}

// TestAttackCommandForgesLog: what a command writes to its standard error, which is that of the log too, is marked on each line and
// escaped, also where the standard error is a file or a pipe: logs are read on terminals, and by programs.
func TestAttackCommandForgesLog(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	a := &app{stderr: newStream(file)}
	command, err := forward.NewExec(forward.ExecConfig{Queue: "q", Stderr: a.commandErrors(), Logger: slog.New(slog.DiscardHandler),
		Command: `printf 'time=2026-01-01 level=INFO msg="all is well"\n\n\033[2J\r\ntime=x\rlevel=INFO' >&2; head -c 20000 /dev/zero | tr '\0' x >&2; printf '\nlast' >&2`})
	if err != nil {
		t.Skip(err)
	}
	if err := command.Handle(t.Context(), &reprise.Message{ID: "m"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for _, line := range lines {
		if !strings.HasPrefix(line, "command | ") || strings.ContainsAny(line, "\x1b\r") {
			t.Errorf("a line of the log is %.100q", line)
		}
	}
	if len(lines) < 7 || lines[0] != `command | time=2026-01-01 level=INFO msg="all is well"` || lines[2] != `command | \u001b[2J` || lines[len(lines)-1] != "command | last" {
		t.Errorf("the log has %d lines: %.300q", len(lines), text)
	}
}

// TestAttackWakeOfAnImpostor: the attacker listens in place of a process. What wake and probe print of its answer is one line each.
func TestAttackWakeOfAnImpostor(t *testing.T) {
	impostor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"woken":1,"copies_left":1,"not_woken":["x\nreprise: all is well"],"consumer":{"queue":"q\nreprise: all is well\u001b[2J","breakers":[]}}`)
	}))
	defer impostor.Close()
	for _, action := range []string{"wake", "probe"} {
		said, err := os.Create(filepath.Join(t.TempDir(), "said"))
		if err != nil {
			t.Fatal(err)
		}
		a := &app{ctx: t.Context(), stdout: newStream(said), stderr: newStream(said)}
		err = a.act(&controlFlags{address: impostor.URL}, []string{"q"}, action, admin.Keys{})
		text, readErr := os.ReadFile(said.Name())
		said.Close()
		all := string(text)
		if err != nil {
			all += err.Error()
		}
		if readErr != nil || !strings.Contains(all, "all is well") || strings.Contains(all, "\nreprise: all is well") || strings.Contains(all, "\x1b") {
			t.Errorf("%s prints %q", action, all)
		}
	}
}

// TestAttackFunctionLog: what a function writes is escaped, its lines are cut, and of a
// flood of them the rest is counted, but what Lambda says of it is not left out.
func TestAttackFunctionLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out page
		log := newFunctionLog(terminal.Plain(&out, 80, true), []template.Function{{Name: "F"}})
		log.print(emulator.Line{Function: "F", Source: emulator.SourceFunction, Text: "a\x1b[2J\u009b2J\u202e\x9b\rF | forged"})
		if want := `F       | a\u001b[2J\u009b2J\u202e\x9b\u000dF | forged` + "\n"; out.String() != want {
			t.Errorf("the log is %q, want %q", out.String(), want)
		}
		out.Reset()
		log.print(emulator.Line{Function: "F", Source: emulator.SourceFunction, Text: strings.Repeat("x", 1<<18)})
		if len(out.String()) > maxLogged+100 || !strings.Contains(out.String(), "more bytes)") {
			t.Errorf("a line of %d bytes", len(out.String()))
		}
		time.Sleep(time.Minute)
		out.Reset()
		for range 100_000 {
			log.print(emulator.Line{Function: "F", Source: emulator.SourceFunction, Text: strings.Repeat("x", 99)})
		}
		log.print(emulator.Line{Function: "F", Source: emulator.SourcePlatform, Text: "REPORT"})
		if !strings.HasSuffix(out.String(), "F       | REPORT\n") || len(out.String()) > 2<<20 {
			t.Errorf("%d bytes, which end with %q", len(out.String()), out.String()[len(out.String())-50:])
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !strings.HasSuffix(out.String(), "bytes of the functions' logs are left out: together they may write 256 KiB a second\n") {
			t.Errorf("it is not said that there was more: %q", out.String()[len(out.String())-100:])
		}
	})
}

// TestAttackLongTextInLogs: a text or an error of any length makes a line of bounded
// length, in both forms, and neither steers a terminal.
func TestAttackLongTextInLogs(t *testing.T) {
	long := "\x1b\u009b\u202e" + strings.Repeat("x", 1<<20)
	for _, format := range []string{"text", "json"} {
		f, err := os.Create(filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		a := &app{stdout: newStream(f), stderr: newStream(f)}
		log := (&logFlags{level: choice.Of("info"), format: choice.Of(format)}).logger(a)
		log.Info("m", "text", long, "error", errors.New(long), slog.Group("g", "text", long))
		text, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if len(text) > 4*maxLogged || len(text) < 3*maxLogged || strings.ContainsAny(string(text), "\x1b\u009b\u202e") || bytes.Count(text, []byte("\n")) != 1 {
			t.Errorf("%s: %d bytes: %.200q", format, len(text), text)
		}
	}
}
