// The attackers are targets and services that the program calls, and producers by way of them:
// they choose texts that the program shows. On the operator's terminal these must stay plain
// text, and short enough to read.

package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// steering has control sequences and characters that change the direction of text.
const steering = "\x1b\u009b\u202e\u2066\x7f\x07\u2028"

// screen is the output of a program on a terminal.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// untilSaid runs the program on a terminal until it has written text there, stops it,
// and returns everything that it has written.
func untilSaid(t *testing.T, text string, args ...string) string {
	t.Helper()
	master, slave := openTerminal(t, 200)
	defer master.Close()
	cmd := exec.Command(program(t), args...)
	cmd.Env = environment("TERM=dumb")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	var s screen
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&s, master) // EIO is how a terminal says that its last user has gone
	}()
	deadline := time.Now().Add(patience)
	for !strings.Contains(s.String(), text) {
		if time.Now().After(deadline) {
			cmd.Process.Kill()
			t.Fatalf("never wrote %q:\n%s", text, s.String())
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	<-read
	return s.String()
}

// TestAttackCommandOnTerminal: what a command of --exec prints for a hostile message
// reaches the terminal as text, by both of its outputs and in the log of the failure.
func TestAttackCommandOnTerminal(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "q")
	send := reprise(t, "", "send", "q", "--endpoint", endpoint, "pay \u202egnp.exe\u009b2J\u2028now")
	if send.code != 0 {
		t.Fatal(send.stderr)
	}
	got := untilSaid(t, "reason=permanent", "run", "--queue", "q", "--endpoint", endpoint, "--admin-addr", "none", "--long-poll", "1s",
		"--exec", `body=$(cat); printf '%s\033]0;pwned\007\033[2J out\n' "$body"; printf '%s\033[2J\2332J err\n' "$body" >&2; exit 100`)
	if strings.ContainsAny(got, steering) || strings.Contains(got, "\x9b2J") {
		t.Errorf("the terminal got %q", got)
	}
	for _, want := range []string{`pay \u202egnp.exe\u009b2J\u2028now\u001b]0;pwned\u0007\u001b[2J out`, `\u001b[2J\x9b2J err`} {
		if !strings.Contains(got, want) {
			t.Errorf("does not show %q: %q", want, got)
		}
	}
}

// TestAttackFloodOnTerminal: of the 200 MB that a command writes the terminal shows the
// beginning, the end, and the number of bytes between.
func TestAttackFloodOnTerminal(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "q")
	if send := reprise(t, "", "send", "q", "--endpoint", endpoint, "m"); send.code != 0 {
		t.Fatal(send.stderr)
	}
	got := untilSaid(t, "the reason", "run", "--queue", "q", "--endpoint", endpoint, "--admin-addr", "none", "--long-poll", "1s",
		"--exec", `head -c 200000000 /dev/zero | tr '\0' x | fold -w 99 >&2; printf 'the %s\n' reason >&2; exit 100`) // the program prints the command, too
	if len(got) > 200_000 || !strings.Contains(got, "bytes of a command's standard error are left out here") {
		t.Errorf("%d bytes on the terminal", len(got))
	}
}

// TestAttackCommandInJSONLog: with --log-format json everything on standard error is a JSON
// object on a line of its own, also the output of commands and the message of Ctrl-C, and none
// contains control sequences.
func TestAttackCommandInJSONLog(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "q")
	if send := reprise(t, "", "send", "q", "--endpoint", endpoint, "m"); send.code != 0 {
		t.Fatal(send.stderr)
	}
	cmd := exec.Command(program(t), "run", "--queue", "q", "--endpoint", endpoint, "--admin-addr", "none", "--long-poll", "1s", "--log-format", "json", "--log-level", "error",
		"--exec", `printf '\033[2J\302\233\342\200\256{"level":"forged"}\nsecond\n' >&2; exit 100`)
	cmd.Env = environment()
	var stderr screen
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); !strings.Contains(stderr.String(), "second") && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	var texts []string
	for line := range strings.Lines(stderr.String()) {
		var record struct{ Level, Msg, Text string }
		if err := json.Unmarshal([]byte(line), &record); err != nil || record.Level == "forged" || strings.ContainsAny(line, steering) {
			t.Errorf("line %q: %v", line, err)
		}
		texts = append(texts, record.Msg+":"+record.Text)
	}
	all := strings.Join(texts, "\n")
	for _, want := range []string{"a command wrote to its standard error:\x1b[2J\u009b\u202e{\"level\":\"forged\"}\n", "standard error:second", "stopping gracefully; press Ctrl-C again to stop now:"} {
		if !strings.Contains(all, want) {
			t.Errorf("does not say %q: %q", want, all)
		}
	}
}

// TestAttackServiceOnTerminal: what a service answers, as the reason of an error and for
// names of queues, reaches the terminal as text, on few lines.
func TestAttackServiceOnTerminal(t *testing.T) {
	t.Parallel()
	hostile := "no\x1b[2J\u009b2J\u202egnp\x7f\nreprise: all is well\n" + strings.Repeat("x", 1<<20)
	text, err := json.Marshal(hostile)
	if err != nil {
		t.Fatal(err)
	}
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.Header().Set("X-Amzn-Requestid", "r")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"__type":"com.amazonaws.sqs#Bad","message":%s}`, text)
	}))
	defer failing.Close()
	naming := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		switch _, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); action {
		case "GetQueueUrl":
			fmt.Fprint(w, `{"QueueUrl":"http://h/000000000000/q\u001b[2J\u009b2J\u202e"}`)
		case "SendMessageBatch":
			fmt.Fprintf(w, `{"Failed":[{"Id":"0","SenderFault":true,"Code":"Bad","Message":%s}]}`, text)
		default:
			fmt.Fprint(w, `{"Attributes":{"QueueArn":"q\u001b[2J\u009b2J\u202e"}}`)
		}
	}))
	defer naming.Close()
	for _, args := range [][]string{
		{"send", "q", "--endpoint", failing.URL, "m"},
		{"redrive", "q", "--endpoint", failing.URL},
		{"run", "--queue", "q", "--endpoint", failing.URL, "--exec", "true"},
		{"lambda", "invoke", "f", "--endpoint", failing.URL},
		{"send", "q", "--endpoint", naming.URL, "m"},
		{"redrive", "q", "--endpoint", naming.URL},
	} {
		code, got := onTerminal(t, 200, environment("TERM=xterm"), args...)
		if code == 0 || strings.ContainsAny(got, steering) || strings.Contains(got, "\nreprise: all is well") || len(got) > 50_000 {
			t.Errorf("%q: exit code %d, %d bytes: %.2000q", args, code, len(got), got)
		}
	}
}
