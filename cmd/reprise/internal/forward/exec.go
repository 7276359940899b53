package forward

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/children"
)

const (
	// termGrace is how long a command may take to end after SIGTERM. It is short, because a
	// stopping consumer waits for it at the end of its own budget.
	termGrace = time.Second

	// pipeGrace is how long output is awaited after a command has ended, in case a process that
	// it started still has the pipe open.
	pipeGrace = 2 * time.Second

	// maxEnvValue is the length of the longest attribute with a variable. Linux starts no command
	// with a variable of 128 KiB, or with 2 MiB of variables.
	maxEnvValue = 32 << 10

	// maxEnvObject is the same for REPRISE_ATTRIBUTES.
	maxEnvObject = 96 << 10

	// ownPrefix begins the names of the variables of this program: those that it sets for
	// commands, and its own settings, among them secrets.
	ownPrefix = "REPRISE_"
)

// Exec runs a command for each message, by the system's shell, with the body on its standard
// input. Its environment is this process's, without the variables whose names begin with
// REPRISE_, and
//
//	REPRISE_MESSAGE_ID, REPRISE_ORIGIN_ID, REPRISE_QUEUE, REPRISE_GROUP_ID
//	REPRISE_ATTEMPT, REPRISE_RECEIVE_COUNT
//	REPRISE_SENT_AT, REPRISE_FIRST_RECEIVED_AT   RFC 3339, UTC
//	REPRISE_ATTR_NAME                            one per text attribute
//	REPRISE_ATTRIBUTES                           all text attributes: a JSON object
//	REPRISE_LEFT_OUT                             how many have no REPRISE_ATTR_NAME, if any
//	REPRISE_RUN_ID                               identifies this run
//
// where NAME is the attribute's name in upper case with every character that is not a letter or
// digit of ASCII replaced by an underscore. Attributes whose names become the same NAME, and
// values with a zero byte, are in REPRISE_ATTRIBUTES alone. Values over 32 KiB are in neither,
// and a REPRISE_ATTRIBUTES over 96 KiB is not set. See [ExitPermanent] and [ExitRelease] for the
// exit codes with a meaning of their own; 69, 78, 126 (not executable) and 127 (not found) are
// [Unavailable], every other one is [Retry], and ExecConfig.ExitCodes changes that. When the
// attempt's context ends, the command and everything it started, as far as package children finds
// it, are asked to end, and killed a second later.
type Exec struct {
	cfg            ExecConfig
	leftOut        leftOut
	stdout, stderr *outputs // nil: discarded, or written to by commands themselves
}

// ExecConfig is what an [Exec] runs, and how.
type ExecConfig struct {
	// Command is a line for the shell: sh -c, or cmd /C on Windows.
	Command string
	// Queue is the name of the queue, for REPRISE_QUEUE.
	Queue string
	// ExitCodes are verdicts that differ from the defaults.
	ExitCodes Codes
	// Stdout and Stderr get the output of commands, one line per Write, by several goroutines at
	// once: the first 64 KiB and the last 4 KiB of each run, at most 256 KiB a second of all runs
	// together, and a line about the bytes that were left out. If Stdout is an *os.File, commands
	// write to it directly, without bounds. The end of stderr is also part of a failed attempt's
	// error. Default: discarded.
	Stdout, Stderr io.Writer
	// Logger gets the attributes that no variable can carry. Default: nothing is logged.
	Logger *slog.Logger
}

// NewExec returns a target that runs cfg.Command. It fails if the command at the beginning of the
// line does not exist or cannot be executed, as far as that is known without running the line.
func NewExec(cfg ExecConfig) (*Exec, error) {
	switch {
	case strings.TrimSpace(cfg.Command) == "":
		return nil, errors.New("the command is empty: pass one that reads a message from its standard input, like ./work.sh")
	case cfg.Queue == "":
		return nil, errNoQueue
	}
	if err := runnable(cfg.Command); err != nil {
		return nil, err
	}
	e := &Exec{cfg: cfg, leftOut: leftOut{log: cfg.Logger, carrier: "environment variable"}}
	if _, file := cfg.Stdout.(*os.File); !file && cfg.Stdout != nil {
		e.stdout = newOutputs(cfg.Stdout, "standard output")
	}
	if cfg.Stderr != nil {
		e.stderr = newOutputs(cfg.Stderr, "standard error")
	}
	return e, nil
}

// Handle runs the command for m and judges its exit code. The error is an [*ExitError] if the
// command ended by itself.
func (e *Exec) Handle(ctx context.Context, m *reprise.Message) error {
	if e.stdout == nil {
		return e.run(ctx, m, e.cfg.Stdout)
	}
	stdout := &output{all: e.stdout}
	defer stdout.close()
	return e.run(ctx, m, stdout)
}

// Output runs the command for m like Handle, and returns what it writes to its standard output.
// A command that writes more than SQS takes in a message fails for good.
func (e *Exec) Output(ctx context.Context, m *reprise.Message) (string, error) {
	stdout := &captured{}
	if err := e.run(ctx, m, stdout); err != nil {
		return "", err
	}
	if stdout.excess {
		return "", reprise.Permanent(fmt.Errorf("the command wrote more than the %d KiB that SQS takes in a message", maxCaptured>>10))
	}
	return stdout.text.String(), nil
}

// maxCaptured is the size of SQS's largest message.
const maxCaptured = 1 << 20

// captured keeps the first maxCaptured bytes written to it.
type captured struct {
	text   strings.Builder
	excess bool
}

func (c *captured) Write(p []byte) (int, error) {
	room := maxCaptured - c.text.Len()
	c.excess = c.excess || len(p) > room
	c.text.Write(p[:min(room, len(p))])
	return len(p), nil
}

func (e *Exec) run(ctx context.Context, m *reprise.Message, stdout io.Writer) error {
	stderr := &tail{}
	if e.stderr != nil {
		also := &output{all: e.stderr}
		stderr.also = also
		defer also.close()
	}
	cmd := shell(ctx, e.cfg.Command)
	cmd.Stdin = strings.NewReader(m.Body)
	cmd.Stdout = stdout
	cmd.Stderr = stderr
	mark := children.NewMark()
	cmd.Env = append(append(inherited(), e.environment(m)...), mark)
	cmd.WaitDelay = termGrace + pipeGrace

	err := children.New(cmd, mark, termGrace).Run()
	if ctx.Err() != nil && err != nil {
		// Whatever the killed command's status, the reason is the context's end.
		return fmt.Errorf("the command was stopped: %w", context.Cause(ctx))
	}
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil, errors.Is(err, exec.ErrWaitDelay):
		return nil // it exited 0; a process that it left behind has the pipe open
	case !ended:
		return notRun(fmt.Errorf("running the command: %w", err))
	}
	code := exit.ExitCode()
	return e.cfg.ExitCodes.onExit(code).apply(&ExitError{Code: code, State: exit.String(), Stderr: stderr.text()})
}

// notRun returns the error of an attempt whose command could not be started. Mostly the command
// does not exist, or the machine lacks memory or processes. The message is at fault only if its
// attributes make the environment too large.
func notRun(err error) error {
	if errors.Is(err, syscall.E2BIG) {
		return err
	}
	return Unavailable.apply(err)
}

// environment returns the variables that describe m.
func (e *Exec) environment(m *reprise.Message) []string {
	env := []string{
		"REPRISE_MESSAGE_ID=" + m.ID,
		"REPRISE_ORIGIN_ID=" + m.OriginID,
		"REPRISE_QUEUE=" + e.cfg.Queue,
		"REPRISE_GROUP_ID=" + m.GroupID,
		"REPRISE_ATTEMPT=" + strconv.Itoa(m.Attempt),
		"REPRISE_RECEIVE_COUNT=" + strconv.Itoa(m.Receives),
		"REPRISE_SENT_AT=" + timestamp(m.Sent),
		"REPRISE_FIRST_RECEIVED_AT=" + timestamp(m.FirstReceived),
	}
	attributes := textAttributes(m)
	named := make(map[string]int) // by variable, the number of attributes with that name
	for _, a := range attributes {
		named[variable(a.name)]++
	}
	carried := 0
	object := make(map[string]string)
	for _, a := range attributes {
		name := variable(a.name)
		if len(a.value) <= maxEnvValue {
			object[a.name] = a.value
		}
		switch {
		case len(a.value) > maxEnvValue:
			e.leftOut.say(m, a.name, longValue)
		case strings.ContainsRune(a.value, 0):
			e.leftOut.say(m, a.name, zeroByte)
		case named[name] > 1:
			e.leftOut.say(m, a.name, sharedName)
		default:
			env = append(env, "REPRISE_ATTR_"+name+"="+a.value)
			carried++
		}
	}
	if text, err := json.Marshal(object); err == nil && len(text) <= maxEnvObject { // texts are always JSON
		env = append(env, "REPRISE_ATTRIBUTES="+string(text))
	}
	if n := len(m.Attributes) - carried; n > 0 {
		env = append(env, "REPRISE_LEFT_OUT="+strconv.Itoa(n))
	}
	// The system starts no command with a zero byte in its environment. SQS refuses such
	// attributes; other servers may not.
	return slices.DeleteFunc(env, func(v string) bool { return strings.ContainsRune(v, 0) })
}

// inherited returns this process's environment without its REPRISE_ variables: settings of the
// program, and the description of a message if the program is itself the command of another
// reprise.
func inherited() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return len(v) >= len(ownPrefix) && strings.EqualFold(v[:len(ownPrefix)], ownPrefix) // as Windows compares names
	})
}

func timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// variable returns an attribute's name in the form for variables.
func variable(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, name)
}

// ExitError is a command that ended with a code other than zero.
type ExitError struct {
	// Code is the exit code; -1 if a signal ended the command.
	Code int
	// State is the system's text: "exit status 3", "signal: killed".
	State string
	// Stderr is the end of its standard error, on one line.
	Stderr string
}

// Error names the code and quotes the end of standard error.
func (e *ExitError) Error() string {
	text := "the command ended with " + e.State
	if e.Stderr != "" {
		text += ": " + e.Stderr
	}
	return text
}

// tail keeps the last bytes written to it and passes everything on.
type tail struct {
	also io.Writer // nil: none
	kept []byte
	cut  bool
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if excess := len(t.kept) - maxErrorText; excess > 0 {
		t.kept = append(t.kept[:0], t.kept[excess:]...)
		t.cut = true
	}
	if t.also != nil {
		return t.also.Write(p)
	}
	return len(p), nil
}

// text returns the end of what was written, without the partial line or character at its
// beginning.
func (t *tail) text() string {
	kept := t.kept
	if t.cut {
		if _, rest, found := bytes.Cut(kept, []byte("\n")); found && len(bytes.TrimSpace(rest)) > 0 {
			kept = rest
		}
	}
	return excerpt(kept)
}
