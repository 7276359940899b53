// Holds off a target of --exec that starts processes which leave its process group, and
// with it what a timeout, a stop and the end of the program reach.

package main_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// escapes is how many processes the script of escape starts that leave its process group.
const escapes = 5

// escape is a script that starts processes in every way to leave its process group, and then runs
// the line last. The command line of each contains the number secret, and each writes a line to
// the file started.
func escape(t *testing.T, last string) (script, secret, started string) {
	t.Helper()
	dir := t.TempDir()
	script, started = filepath.Join(dir, "work.sh"), filepath.Join(dir, "started")
	secret = fmt.Sprint(10_000_000 + rand.IntN(80_000_000))
	text := fmt.Sprintf(`#!/bin/sh
started='%[2]s'
stay='trap "" TERM HUP INT; echo here >>"$0"; sleep %[1]s & wait; sleep %[1]s'
quiet() { "$@" </dev/null >/dev/null 2>&1 & }
quiet setsid sh -c "$stay" '%[2]s'
quiet nohup sh -c "$stay" '%[2]s'
quiet env -i PATH="$PATH" setsid sh -c "$stay" '%[2]s'
(quiet setsid sh -c "$stay" '%[2]s')
(quiet setsid sh -c "sh -c 'exit 0'; (sh -c '$stay' '%[2]s' &)" '%[2]s')
arrived() { while [ "$(grep -c here '%[2]s' 2>/dev/null)" != "$1" ]; do sleep 0.02; done; }
arrived %[4]d
%[3]s
`, secret, started, last, escapes)
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil { //nolint:gosec // G306: it is to be run
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, id := range withArgument(t, secret) {
				_ = syscall.Kill(id, syscall.SIGKILL) // what the test is about
			}
		}
	})
	return script, secret, started
}

// withArgument returns the running processes with text in their command line.
func withArgument(t *testing.T, text string) (ids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && bytes.Contains(line, []byte(text)) {
			var id int
			if _, err := fmt.Sscanf(file, "/proc/%d/cmdline", &id); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
	}
	return ids
}

// awaitStarted waits until all escaping processes run.
func awaitStarted(t *testing.T, started string, want int) {
	t.Helper()
	awaitThat(t, "everything is started", func() bool {
		text, err := os.ReadFile(started)
		return err == nil && strings.Count(string(text), "here") >= want
	})
}

func upWith(t *testing.T, script string, more ...string) (p *process, endpoint string) {
	t.Helper()
	p = start(t, append([]string{"up", "--memory", "--addr", "127.0.0.1:0", "--exec", script, "--queue", "q", "--retry", "attempts=1"}, more...)...)
	endpoint = p.await("SQS endpoint")
	return p, endpoint
}

// TestAttackTimeout: when an attempt has timed out none of its processes run.
func TestAttackTimeout(t *testing.T) {
	t.Parallel()
	script, secret, started := escape(t, "sleep $0 & wait")
	p, endpoint := upWith(t, script, "--timeout", "8s")
	sendAll(t, endpoint, "q", "body")
	awaitStarted(t, started, escapes)
	if n := len(withArgument(t, secret)); n < escapes {
		t.Fatalf("%d processes were started, want %d at least", n, escapes)
	}
	p.await("WARN")
	if left := withArgument(t, secret); len(left) > 0 {
		t.Errorf("processes %d outlived the timeout", left)
	}
	p.stop()
}

// TestAttackStop: processes that successful commands have left behind go on while the program
// runs, and end with it. No zombies remain.
func TestAttackStop(t *testing.T) {
	t.Parallel()
	// Also one that has forgotten where it comes from.
	script, secret, started := escape(t, `(quiet setsid env -i PATH="$PATH" sh -c "$stay" "$started"); arrived `+strconv.Itoa(escapes+1))
	p, endpoint := upWith(t, script)
	sendAll(t, endpoint, "q", "body")
	awaitStarted(t, started, escapes+1)
	p.signal(os.Interrupt)
	p.await("that commands had left behind")
	if code, output := p.wait(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, output)
	}
	if left := withArgument(t, secret); len(left) > 0 {
		t.Errorf("processes %d outlived the program", left)
	}
}

// TestBystanders: processes that the shell had started before it became the program were not left
// by commands, and go on.
func TestBystanders(t *testing.T) {
	t.Parallel()
	script, secret, started := escape(t, "exit 0")
	bystander := fmt.Sprint(10_000_000 + rand.IntN(80_000_000))
	p := startCommand(t, environment(), "/bin/sh", "-c", `for how in "" setsid; do $how sleep `+bystander+` </dev/null >/dev/null 2>&1 & done; exec "$0" "$@"`,
		program(t), "up", "--memory", "--addr", "127.0.0.1:0", "--exec", script, "--queue", "q", "--retry", "attempts=1")
	t.Cleanup(func() {
		for _, id := range withArgument(t, bystander) {
			_ = syscall.Kill(id, syscall.SIGKILL) // nobody else will
		}
	})
	endpoint := p.await("SQS endpoint")
	awaitThat(t, "the bystanders are there", func() bool { return len(withArgument(t, "sleep\x00"+bystander)) == 2 })
	sendAll(t, endpoint, "q", "body")
	awaitStarted(t, started, escapes)
	p.stop()
	if left := withArgument(t, secret); len(left) > 0 {
		t.Errorf("processes %d outlived the program", left)
	}
	if left := withArgument(t, bystander); len(left) != 2 {
		t.Errorf("of two bystanders %d are left", len(left))
	}
}

// TestAttackStopAtOnce: a second signal ends running commands too.
func TestAttackStopAtOnce(t *testing.T) {
	t.Parallel()
	script, secret, started := escape(t, "sleep 1000 & wait")
	p, endpoint := upWith(t, script, "--timeout", "1h")
	sendAll(t, endpoint, "q", "body")
	awaitStarted(t, started, escapes)
	p.signal(os.Interrupt)
	p.await("stopping")
	p.signal(os.Interrupt)
	if code, output := p.wait(); code != 130 {
		t.Errorf("exit code %d:\n%s", code, output)
	}
	if left := withArgument(t, secret); len(left) > 0 {
		t.Errorf("processes %d outlived the program", left)
	}
}

// TestAttackOrphansAreReaped: escaped processes that have ended leave no zombies while the
// program runs, and the program gets the exit codes of its own commands.
func TestAttackOrphansAreReaped(t *testing.T) {
	t.Parallel()
	script := written(t, "work.sh", "(setsid sh -c 'exit 3' &)\n(setsid true &)\necho here >>\"$0.ran\"\nexit 0\n")
	p, endpoint := upWith(t, "sh "+script, "--concurrency", "4")
	bodies := make([]string, 40)
	for i := range bodies {
		bodies[i] = fmt.Sprint("body ", i)
	}
	sendAll(t, endpoint, "q", bodies...)
	awaitStarted(t, script+".ran", len(bodies))
	awaitThat(t, "there are no zombies", func() bool { return !zombies(t, p.cmd.Process.Pid) })
	p.signal(os.Interrupt)
	p.await("40 deleted, 0 retried, 0 released, 0 dead-lettered")
	if code, output := p.wait(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, output)
	}
}

// zombies reports whether children of the process have ended and were not waited for.
func zombies(t *testing.T, parent int) bool {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(text), fmt.Sprintf(") Z %d ", parent)) {
			return true
		}
	}
	return false
}

// TestAttackKilledProgram: the kernel ends a command whose program was killed.
func TestAttackKilledProgram(t *testing.T) {
	t.Parallel()
	secret := fmt.Sprint(10_000_000 + rand.IntN(80_000_000))
	script := written(t, "work.sh", "exec sleep "+secret+"\n")
	p, endpoint := upWith(t, "exec sh "+script, "--timeout", "1h")
	sendAll(t, endpoint, "q", "body")
	awaitThat(t, "the command runs", func() bool { return len(withArgument(t, secret)) == 1 })
	p.kill()
	awaitThat(t, "the command has ended", func() bool { return len(withArgument(t, secret)) == 0 })
}
