//go:build unix

package forward_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/forward"
	"github.com/reprise-sqs/reprise/retry"
)

func newExec(t *testing.T, cfg forward.ExecConfig) *forward.Exec {
	t.Helper()
	cfg.Queue = "orders"
	target, err := forward.NewExec(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// TestExecCodes: what each end of a command does to the message.
func TestExecCodes(t *testing.T) {
	for _, test := range []struct {
		command string
		action  retry.Action // 0: success
		code    int
		text    string
		down    bool // it is the command's fault
	}{
		{command: "exit 0"},
		{command: "cat >/dev/null"},
		{command: "true; sleep 0 &"},
		{command: "exit 1", action: retry.ActionRetry, code: 1, text: "exit status 1"},
		{command: "echo 'disk full' >&2; exit 75", action: retry.ActionRetry, code: 75, text: "exit status 75: disk full"},
		{command: "exit 100", action: retry.ActionDeadLetter, code: 100, text: "exit status 100"},
		{command: "exit 101", action: retry.ActionRelease, code: 101, text: "exit status 101"},
		{command: "kill -9 $$", action: retry.ActionRetry, code: -1, text: "signal: killed"},
		{command: "exit 65", action: retry.ActionRetry, code: 65, text: "exit status 65"},
		{command: "exit 69", action: retry.ActionRetry, code: 69, text: "exit status 69", down: true},
		{command: "exit 78", action: retry.ActionRetry, code: 78, text: "exit status 78", down: true},
		{command: "true; /nonexistent/program", action: retry.ActionRetry, code: 127, text: "nonexistent", down: true},
		{command: "true; /dev/null", action: retry.ActionRetry, code: 126, text: "/dev/null", down: true},
	} {
		t.Run(test.command, func(t *testing.T) {
			err := newExec(t, forward.ExecConfig{Command: test.command}).Handle(t.Context(), message("body"))
			if test.action == 0 {
				if err != nil {
					t.Fatalf("Handle = %v, want success", err)
				}
				return
			}
			if err == nil {
				t.Fatal("Handle succeeded, so the message would be deleted")
			}
			if action, _ := decide(err); action != test.action {
				t.Errorf("decided %v, want %v: %v", action, test.action, err)
			}
			if reprise.IsUnavailable(err) != test.down {
				t.Errorf("unavailable: %v, want %v: %v", !test.down, test.down, err)
			}
			if exit, ok := errors.AsType[*forward.ExitError](err); !ok || exit.Code != test.code {
				t.Errorf("error %v carries no code %d", err, test.code)
			}
			if !strings.Contains(err.Error(), test.text) {
				t.Errorf("error %q does not say %q", err, test.text)
			}
		})
	}
}

// TestExecInput: the body arrives on standard input and the metadata in the
// environment; output is passed on.
func TestExecInput(t *testing.T) {
	const body = "{\"text\":\"שלום 🚀\"}\nsecond line"
	var out, errs bytes.Buffer
	err := newExec(t, forward.ExecConfig{
		Command: `cat; echo; env | grep ^REPRISE_ | grep -v ^REPRISE_RUN_ID= | LC_ALL=C sort; echo warned >&2`,
		Stdout:  &out, Stderr: &errs,
	}).Handle(t.Context(), message(body))
	if err != nil {
		t.Fatal(err)
	}
	want := body + `
REPRISE_ATTEMPT=3
REPRISE_ATTRIBUTES={"größe":"XL","lines":"a\nb","name":"Zoë 🚀","retries.max-x1":"42","traceId":"abc"}
REPRISE_ATTR_GR__E=XL
REPRISE_ATTR_LINES=a
REPRISE_ATTR_NAME=Zoë 🚀
REPRISE_ATTR_RETRIES_MAX_X1=42
REPRISE_ATTR_TRACEID=abc
REPRISE_FIRST_RECEIVED_AT=2026-11-21T07:00:00.000Z
REPRISE_GROUP_ID=eu
REPRISE_LEFT_OUT=1
REPRISE_MESSAGE_ID=m-1
REPRISE_ORIGIN_ID=m-0
REPRISE_QUEUE=orders
REPRISE_RECEIVE_COUNT=4
REPRISE_SENT_AT=2026-11-21T07:40:00.123Z
`
	if out.String() != want {
		t.Errorf("the command saw\n%s\nwant\n%s", out.String(), want)
	}
	if errs.String() != "warned\n" {
		t.Errorf("stderr %q was not passed on", errs.String())
	}
}

// TestOutput: what a command writes is returned whole or not at all: a body that is cut off would be sent, and its
// original deleted.
func TestOutput(t *testing.T) {
	const mebibyte = "head -c 1048576 /dev/zero | tr '\\0' x"
	for command, want := range map[string]struct {
		bytes  int
		action retry.Action // 0: success
	}{
		"cat":                      {4, 0},
		mebibyte:                   {1 << 20, 0},
		mebibyte + "; printf y":    {0, retry.ActionDeadLetter},
		mebibyte + "; " + mebibyte: {0, retry.ActionDeadLetter},
		"cat; exit 1":              {0, retry.ActionRetry},
		"cat; exit 100":            {0, retry.ActionDeadLetter},
	} {
		text, err := newExec(t, forward.ExecConfig{Command: command}).Output(t.Context(), message("body"))
		action := retry.Action(0)
		if err != nil {
			action, _ = decide(err)
		}
		if len(text) != want.bytes || action != want.action {
			t.Errorf("%s: %d bytes and %v (%v), want %d bytes and %v", command, len(text), action, err, want.bytes, want.action)
		}
	}
}

// TestExecIgnoresInput: a command need not read a body that no pipe can hold.
func TestExecIgnoresInput(t *testing.T) {
	if err := newExec(t, forward.ExecConfig{Command: "exec true"}).Handle(t.Context(), message(strings.Repeat("x", 1<<20))); err != nil {
		t.Errorf("Handle = %v, want success", err)
	}
}

// TestExecErrorTail: of a long complaint the end is kept, where the reason is.
func TestExecErrorTail(t *testing.T) {
	err := newExec(t, forward.ExecConfig{
		Command: `i=0; while [ $i -lt 200 ]; do echo "trace line $i" >&2; i=$((i+1)); done; echo "cause: no route ☃" >&2; exit 1`,
	}).Handle(t.Context(), message(""))
	if err == nil || !strings.HasSuffix(err.Error(), "trace line 199 cause: no route ☃") || len(err.Error()) > 600 {
		t.Errorf("error %q does not end with the cause in a bounded text", err)
	}
}

// TestExecStopsWholeGroup: at the end of the context the command and the processes that it
// started are gone, even if they ignore SIGTERM.
func TestExecStopsWholeGroup(t *testing.T) {
	for _, test := range []struct{ name, command string }{
		{"polite", `sleep 600 & echo $! >"$PIDFILE.tmp"; mv "$PIDFILE.tmp" "$PIDFILE"; wait`},
		{"stubborn", `trap "" TERM; sleep 600 & echo $! >"$PIDFILE.tmp"; mv "$PIDFILE.tmp" "$PIDFILE"; while :; do sleep 600; done`},
		{"leader gone first", `(trap "" TERM; sleep 600) & echo $! >"$PIDFILE.tmp"; mv "$PIDFILE.tmp" "$PIDFILE"; wait`},
	} {
		t.Run(test.name, func(t *testing.T) {
			pidFile := filepath.Join(t.TempDir(), "pid")
			t.Setenv("PIDFILE", pidFile)
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				defer cancel(reprise.ErrStopping)
				for ctx.Err() == nil {
					if _, err := os.Stat(pidFile); err == nil {
						return
					}
					time.Sleep(5 * time.Millisecond)
				}
			}()

			err := newExec(t, forward.ExecConfig{Command: test.command}).Handle(ctx, message(""))
			if !errors.Is(err, reprise.ErrStopping) {
				t.Errorf("Handle = %v, want the cause of the context's end", err)
			}
			text, err := os.ReadFile(pidFile)
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			// An orphan is reaped by init a moment after it is killed.
			for range 200 {
				if gone(pid) {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
			t.Errorf("process %d, which the command had started, is still alive", pid)
		})
	}
}

// gone reports whether no process has this id, or it is dead and only not reaped.
func gone(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(stat), ") Z ")
}

func TestExecBadConfig(t *testing.T) {
	for _, test := range []struct{ command, queue, want string }{
		{"", "q", "command is empty"},
		{"  ", "q", "command is empty"},
		{"true", "", "queue"},
	} {
		if _, err := forward.NewExec(forward.ExecConfig{Command: test.command, Queue: test.queue}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("NewExec(%q, %q) = %v, want an error with %q", test.command, test.queue, err, test.want)
		}
	}
}

// TestExecMissingCommand is an error before the first message, and what can be run is
// none.
func TestExecMissingCommand(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, mode := range map[string]os.FileMode{"work.sh": 0o700, "text.sh": 0o600} {
		if err := os.WriteFile(name, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for command, want := range map[string]string{
		"./nosuch.sh":                "there is no program ./nosuch.sh in the directory " + dir,
		"./nosuch.sh --flag | cat":   "./nosuch.sh",
		"A=1 B=two ./nosuch.sh":      "./nosuch.sh",
		"exec ./nosuch.sh":           "./nosuch.sh",
		"/nonexistent/program":       "there is no program /nonexistent/program: correct",
		"nosuchcommand -x":           "write ./nosuchcommand",
		"nosuchcommand; true":        "nosuchcommand",
		"./text.sh":                  "chmod +x ./text.sh",
		".":                          "",
		dir:                          "is a directory",
		"./work.sh":                  "",
		"  A=1 exec ./work.sh 2>&1 ": "",
		"exec -a name ./work.sh":     "",
		"cat":                        "",
		"cd / && ./nosuch.sh":        "", // only a run can tell
		"if true; then exit 1; fi":   "",
		"{ cat; }":                   "",
		"! cat":                      "",
		"(cat)":                      "",
		"while read l; do :; done":   "",
		"\"./my file.sh\" x":         "",
		"$HOME/nosuch":               "",
		"PATH=/nonexistent nosuch":   "",
		"umask 077; ./nosuch.sh":     "",
	} {
		_, err := forward.NewExec(forward.ExecConfig{Command: command, Queue: "q"})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("NewExec(%q) = %v, want an error with %q", command, err, want)
		}
	}
}
