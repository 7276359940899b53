package main_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// TestDemoOnTerminal: on 40 columns everything fits, and the progress is one line
// that is redrawn; NO_COLOR takes the colours away, and a dumb terminal gets plain
// lines.
func TestDemoOnTerminal(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name          string
		env           []string
		color, redraw bool
	}{
		{"colour", []string{"TERM=xterm"}, true, true},
		{"NO_COLOR", []string{"TERM=xterm", "NO_COLOR=1"}, false, true},
		{"dumb", []string{"TERM=dumb"}, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			code, screen := onTerminal(t, 40, environment(test.env...), fewMessages...)
			if code != 0 {
				t.Errorf("exit code %d", code)
			}
			if got := strings.Contains(screen, "\x1b[32m"); got != test.color {
				t.Errorf("colours: %v, want %v", got, test.color)
			}
			if got := strings.Contains(screen, "\r\x1b[K"); got != test.redraw {
				t.Errorf("redrawn lines: %v, want %v", got, test.redraw)
			}
			text := regexp.MustCompile(`\x1b\[[0-9]*[mK]`).ReplaceAllString(screen, "")
			if !strings.Contains(text, "ok every message is accounted for") {
				t.Error("there is no report")
			}
			for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
				if n := utf8.RuneCountInString(line); n > 40 {
					t.Errorf("a line has %d columns: %q", n, line)
				}
			}
			if t.Failed() {
				t.Logf("the screen:\n%s", screen)
			}
		})
	}
}

// onTerminal runs the program on a terminal with so many columns, and returns what
// it wrote there.
func onTerminal(t *testing.T, columns uint16, env []string, args ...string) (code int, screen string) {
	t.Helper()
	master, slave := openTerminal(t, columns)
	defer master.Close()
	cmd := exec.Command(program(t), args...)
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	text, err := io.ReadAll(master)
	if err != nil && !errors.Is(err, syscall.EIO) { // EIO is how a terminal says that its last user has gone
		t.Fatal(err)
	}
	return exitCode(t, cmd.Wait()), string(text)
}

// openTerminal makes a pseudo-terminal.
func openTerminal(t *testing.T, columns uint16) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("skipped: no pseudo-terminal can be made here: %v", err)
	}
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}); err != nil {
		t.Fatal(err)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}
