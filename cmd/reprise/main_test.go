//go:build unix

package main_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if addr := os.Getenv(soakTargetVariable); addr != "" {
		runSoakTarget(addr)
	}
	if where := os.Getenv(posterVariable); where != "" {
		runPoster(where)
	}
	if os.Getenv("GORACE") == "" {
		// With the race detector a program sleeps for a second before it exits. The tests start it
		// more than a thousand times.
		_ = os.Setenv("GORACE", "atexit_sleep_ms=20")
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "reprise-test-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		binaries = dir
		runMoreAtOnce()
		return m.Run()
	}())
}

// runMoreAtOnce has twice as many tests run at once as there are processors, unless -parallel
// says how many: these tests wait for processes, disks, leases and backoffs most of their time.
func runMoreAtOnce() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0)))
	}
}

// environment is the same on every machine: no AWS settings, no terminal.
func environment(extra ...string) []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LANG=C.UTF-8", "GORACE=" + os.Getenv("GORACE")}
	return append(env, extra...)
}

// result is a command that has ended.
type result struct {
	code           int
	stdout, stderr string
}

// inJSON returns a command line that prints JSON, which most tests read, if it is one of a command that only looks and
// says no form itself.
func inJSON(args []string) []string {
	looks := []string{"queues", "peek", "search", "trace", "dead", "top", "stats", "timeline", "tail", "consumers", "jobs", "pause", "resume", "wake", "probe", "concurrency", "rate"}
	if len(args) == 0 || !slices.Contains(looks, args[0]) || slices.Contains(args, "-o") || slices.Contains(args, "--help") || len(args) > 1 && slices.Contains([]string{"delete", "export", "import"}, args[1]) {
		return args
	}
	return append(slices.Clone(args), "-o", "json")
}

// reprise runs the program to its end.
func reprise(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	cmd := exec.Command(program(t), inJSON(args)...)
	cmd.Env = environment()
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	code := exitCode(t, cmd.Run())
	return result{code, stdout.String(), stderr.String()}
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		t.Fatal(err)
	}
	return exit.ExitCode()
}

// process is a command that runs beside the test.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string // of both outputs, as they come
	in    *io.PipeWriter
	read  chan struct{} // closed when all of it is in text

	mu   sync.Mutex
	text strings.Builder
}

// start starts the program. It is killed at the end of the test if it still runs.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	return startIn(t, environment(), args...)
}

func startIn(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	return startCommand(t, env, program(t), inJSON(args)...)
}

// startCommand starts a command that becomes the program.
func startCommand(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{t: t, cmd: exec.CommandContext(ctx, name, args...), lines: make(chan string, 10_000), read: make(chan struct{})}
	p.cmd.Env = env
	out, in := io.Pipe()
	p.in = in
	p.cmd.Stdout, p.cmd.Stderr = in, in
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // now: what cancel does comes too late for the last test
		cancel()
		in.Close()
	})
	go func() {
		defer close(p.read)
		for scanner := bufio.NewScanner(out); scanner.Scan(); {
			p.mu.Lock()
			p.text.WriteString(scanner.Text() + "\n")
			p.mu.Unlock()
			p.lines <- scanner.Text()
		}
	}()
	return p
}

// patience bounds waits, so that a failure names what did not come. It is longer than the
// visibility timeout of the tests' queues, so that a message comes again within it.
const patience = 2 * time.Minute

// await returns the rest of the next line that contains text.
func (p *process) await(text string) string {
	p.t.Helper()
	timeout := time.After(patience)
	for {
		select {
		case line := <-p.lines:
			if _, rest, found := strings.Cut(line, text); found {
				return strings.TrimSpace(rest)
			}
		case <-timeout:
			p.t.Fatalf("%v never printed %q. It printed:\n%s", p.cmd.Args[1:], text, p.output())
		}
	}
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// wait returns the exit code and everything that was printed.
func (p *process) wait() (code int, output string) {
	p.t.Helper()
	killer := time.AfterFunc(patience, func() { p.cmd.Process.Kill() })
	defer killer.Stop()
	code = exitCode(p.t, p.cmd.Wait())
	p.in.Close()
	select { // the last line was handed over, and may not be in the text yet
	case <-p.read:
	case <-time.After(patience):
	}
	return code, p.output()
}
