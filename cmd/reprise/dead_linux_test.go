package main_test

import (
	"errors"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// answering runs the program on a terminal, types an answer, and returns what the screen shows.
func answering(t *testing.T, answer string, args ...string) (code int, screen string) {
	t.Helper()
	master, slave := openTerminal(t, 120)
	defer master.Close()
	cmd := exec.Command(program(t), args...)
	cmd.Env = environment("TERM=xterm")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	if _, err := io.WriteString(master, answer); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(master)
	if err != nil && !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	return exitCode(t, cmd.Wait()), string(text)
}

// TestDeadDeleteAsks: on a terminal the letters are shown in groups, and only yes deletes them.
func TestDeadDeleteAsks(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "dead")
	for _, reason := range []string{"attempts", "attempts", "permanent"} {
		sendJSON(t, endpoint, "dead", "{}", map[string]any{"reason": reason, "error": "no", "source": "x"})
	}
	for _, test := range []struct {
		answer string
		code   int
		want   string
		left   string
	}{
		{"\n", 1, "nothing was deleted", "3"},
		{"no\n", 1, "nothing was deleted", "3"},
		{"y\n", 0, "2 dead letters deleted", "1"},
	} {
		code, screen := answering(t, test.answer, "dead", "delete", "dead", "--reason", "attempts", "--endpoint", endpoint)
		if code != test.code || !strings.Contains(screen, test.want) || !strings.Contains(screen, "Delete 2 dead letters from dead for good? [y/N]") || !strings.Contains(screen, "    2  attempts") {
			t.Errorf("%q: exit code %d:\n%s", test.answer, code, screen)
		}
		if visible, inFlight := visibleIn(t, endpoint, "dead"); visible != test.left || inFlight != "0" {
			t.Errorf("%q: %s visible and %s in flight, want %s", test.answer, visible, inFlight, test.left)
		}
	}
}

// TestPurgeAsks: on a terminal only yes purges.
func TestPurgeAsks(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "q")
	sendJSON(t, endpoint, "q", "{}", nil)
	for _, test := range []struct {
		answer string
		code   int
		left   string
	}{{"n\n", 1, "1"}, {"yes\n", 0, "0"}} {
		code, screen := answering(t, test.answer, "purge", "q", "--endpoint", endpoint)
		if visible, _ := visibleIn(t, endpoint, "q"); code != test.code || visible != test.left || !strings.Contains(screen, "(1 visible, 0 in flight, 0 delayed)? [y/N]") {
			t.Errorf("%q: exit code %d, %s left:\n%s", test.answer, code, visible, screen)
		}
	}
}

// TestDeadEditor: the body opens in the operator's editor; only yes sends it, and an editor that fails
// changes nothing.
func TestDeadEditor(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "q", "--queue", "dead")
	sendJSON(t, endpoint, "dead", "wrong", nil)
	for _, test := range []struct {
		editor, answer string
		code           int
		want           string
		left           string
	}{
		{"false", "y\n", 1, "nothing was sent", "1"},
		{"true", "y\n", 1, "nothing was changed, and nothing sent", "1"},
		{"sed -i s/wrong/right/", "n\n", 1, "nothing was sent, and nothing deleted", "1"},
		{"sed -i s/wrong/right/", "y\n", 0, "1 sent back to " + *queueURL(endpoint, "q"), "0"},
	} {
		master, slave := openTerminal(t, 120)
		cmd := exec.Command(program(t), "dead", "edit", "dead", "--body", "wrong", "--to", "q", "--endpoint", endpoint)
		cmd.Env = environment("TERM=xterm", "EDITOR="+test.editor)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		slave.Close()
		if _, err := io.WriteString(master, test.answer); err != nil {
			t.Fatal(err)
		}
		screen, err := io.ReadAll(master)
		if err != nil && !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
		master.Close()
		if code := exitCode(t, cmd.Wait()); code != test.code || !strings.Contains(string(screen), test.want) {
			t.Errorf("%s, %q: exit code %d:\n%s", test.editor, test.answer, code, screen)
		}
		if visible, inFlight := visibleIn(t, endpoint, "dead"); visible != test.left || inFlight != "0" {
			t.Errorf("%s, %q: %s visible and %s in flight, want %s", test.editor, test.answer, visible, inFlight, test.left)
		}
	}
	if got := received(t, endpoint, "q", 1); len(got) != 1 || got[0] != "right" {
		t.Errorf("sent was %q", got)
	}
}

// TestGuardAsks: before a command receives messages that SQS moves for it, it asks on a terminal.
func TestGuardAsks(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--no-admin", "--queue", "q,dead-letter=dead,max-receives=3")
	sendJSON(t, endpoint, "q", "{}", nil)
	for _, test := range []struct {
		answer string
		code   int
		want   string
	}{
		{"n\n", 1, "nothing was looked at"},
		{"y\n", 0, "looked at 1 message"},
	} {
		code, screen := answering(t, test.answer, "search", "q", "--body", "{}", "--endpoint", endpoint)
		if code != test.code || !strings.Contains(screen, test.want) || !strings.Contains(screen, "look all the same? [y/N]") {
			t.Errorf("%q: exit code %d:\n%s", test.answer, code, screen)
		}
	}
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"search", "q", "--body", "{}"}, 1, "pass --yes to look all the same"},
		{[]string{"search", "q", "--body", "{}", "--yes"}, 0, "looked at 1 message"},
		{[]string{"purge", "q"}, 2, "pass --yes to delete them"},
	} {
		got := reprise(t, "y\n", append(test.args, "--endpoint", endpoint)...)
		if got.code != test.code || !strings.Contains(got.stderr, test.want) || strings.Contains(got.stderr, "[y/N]") {
			t.Errorf("%q without a terminal: exit code %d, %s%s", test.args, got.code, got.stdout, got.stderr)
		}
	}
}
