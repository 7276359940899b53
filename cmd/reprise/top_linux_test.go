package main_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestTopOnTerminal: the table is drawn on a screen of its own, q, Ctrl-C and SIGTERM end it, and each
// time the terminal is as it was.
func TestTopOnTerminal(t *testing.T) {
	t.Parallel()
	endpoint := orders(t)
	_, admin := runQueue(t, endpoint, "--exec", "true")
	for name, end := range map[string]func(*exec.Cmd, io.Writer) error{
		"q":       func(_ *exec.Cmd, keys io.Writer) error { _, err := io.WriteString(keys, "xq"); return err },
		"Ctrl-C":  func(_ *exec.Cmd, keys io.Writer) error { _, err := io.WriteString(keys, "\x03"); return err },
		"SIGTERM": func(cmd *exec.Cmd, _ io.Writer) error { return cmd.Process.Signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			master, slave := openTerminal(t, 100)
			defer master.Close()
			defer slave.Close()
			before := settings(t, slave)
			cmd := exec.Command(program(t), "top", "--admin", admin, "--interval", "500ms")
			cmd.Env = environment("TERM=xterm")
			cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			screen := readUntil(t, master, "orders ", "in/s") // the second look has rates
			if settings(t, slave) == before {
				t.Error("keys are echoed, and Ctrl-C would kill the program")
			}
			if err := end(cmd, master); err != nil {
				t.Fatal(err)
			}
			screen += readUntil(t, master, "\x1b[?1049l")
			if code := exitCode(t, cmd.Wait()); code != 0 {
				t.Errorf("exit code %d", code)
			}
			if after := settings(t, slave); after != before {
				t.Errorf("the terminal was %+v and is %+v", before, after)
			}
			for _, want := range []string{"\x1b[?1049h", "process at " + admin, "  up ", "\x1b[?25h"} {
				if !strings.Contains(screen, want) {
					t.Errorf("the screen has no %q:\n%q", want, screen)
				}
			}
		})
	}
}

// settings are those of a terminal.
func settings(t *testing.T, f *os.File) unix.Termios {
	t.Helper()
	now, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *now
}

// readUntil reads what a terminal shows until it has shown all the texts.
func readUntil(t *testing.T, master *os.File, texts ...string) string {
	t.Helper()
	var all bytes.Buffer
	buffer := make([]byte, 4096)
	for {
		n, err := master.Read(buffer)
		all.Write(buffer[:n])
		missing := ""
		for _, text := range texts {
			if !strings.Contains(all.String(), text) {
				missing = text
			}
		}
		switch {
		case missing == "":
			return all.String()
		case err != nil:
			t.Fatalf("it ended without showing %q: %v\n%q", missing, err, all.String())
		}
	}
}
