//go:build unix

package main_test

import (
	"net"
	"strings"
	"testing"
)

// TestCommandLine: mistakes get an exit code of 2, everything else that fails 1,
// and a text that names the input, the problem and the remedy.
func TestCommandLine(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() }) // after the parallel subtests
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	nobody := "http://" + closed.Addr().String()

	for _, test := range []struct {
		args []string
		code int
		want []string // in the output
	}{
		{nil, 0, []string{"Exit codes:", "demo", "serve", "up", "send", "redrive", "lambda", "backup", "check", "health", "version"}},
		{[]string{"version"}, 0, []string{"reprise devel", "go1."}},
		{[]string{"--version"}, 0, []string{"reprise devel", "go1."}},
		{[]string{"version", "now"}, 2, []string{`"now"`, "reprise version --help"}},
		{[]string{"frobnicate"}, 2, []string{`unknown command "frobnicate"`, "reprise --help"}},
		{[]string{"serve", "--prot", "1"}, 2, []string{"--prot", "reprise serve --help"}},
		{[]string{"serve", "orders"}, 2, []string{`"orders"`}},
		{[]string{"serve", "--memory", "--data", "/tmp"}, 2, []string{"memory", "data"}},
		{[]string{"serve", "--sync", "never"}, 2, []string{`"never"`, "always or interval"}},
		{[]string{"serve", "--sync", "interval", "--sync-interval", "0"}, 2, []string{"--sync-interval is 0s", "100ms"}},
		{[]string{"serve", "--sync-delay", "-1ms"}, 2, []string{"--sync-delay is -1ms", "or 0"}},
		{[]string{"serve", "--memory", "--sync-delay", "1ms"}, 2, []string{"[memory sync-delay]"}},
		{[]string{"serve", "--min-free", "-1"}, 2, []string{"--min-free is -1", "MiB"}},
		{[]string{"serve", "--data", "/nonexistent/data", "--addr", "127.0.0.1:0"}, 4, []string{"/nonexistent/data", "no directory /nonexistent:", "mount"}},
		{[]string{"serve", "--data", t.TempDir(), "--existing", "--addr", "127.0.0.1:0"}, 4, []string{"not a journal", "has no file JOURNAL", "mount"}},
		{[]string{"serve", "--memory", "--existing"}, 2, []string{"[memory existing]"}},
		{[]string{"serve", "--data", "/dev/null", "--addr", "127.0.0.1:0"}, 4, []string{"/dev/null", "not a directory", "pass another"}},
		{[]string{"backup"}, 2, []string{"reprise backup --help"}},
		{[]string{"backup", "--data", "/nonexistent", "/tmp/x"}, 4, []string{"/nonexistent", "name the data directory"}},
		{[]string{"backup", "--data", t.TempDir(), "/tmp/x"}, 4, []string{"not a journal", "name the data directory"}},
		{[]string{"backup", "--data", "/", "/nonexistent/backups/monday"}, 1, []string{"no directory /nonexistent/backups:", "mount"}},
		{[]string{"check", "/nonexistent"}, 4, []string{"/nonexistent", "name the data directory"}},
		{[]string{"health", "ftp://here"}, 2, []string{`"ftp://here"`, "127.0.0.1:9324"}},
		{[]string{"health", "--wait", "-1s"}, 2, []string{"--wait is -1s", "30s"}},
		{[]string{"health", closed.Addr().String()}, 1, []string{closed.Addr().String(), "is it running?"}},
		{[]string{"serve", "--addr", "nonsense"}, 1, []string{`"nonsense"`, "127.0.0.1:9324"}},
		{[]string{"serve", "--addr", "127.0.0.1:99999"}, 1, []string{"99999", "127.0.0.1:9324"}},
		{[]string{"serve", "--addr", ":0"}, 1, []string{`":0"`, "other machines", "--allow-remote"}},
		{[]string{"serve", "--addr", "0.0.0.0:0"}, 1, []string{"0.0.0.0", "other machines", "--allow-remote"}},
		{[]string{"up", "--exec", "true", "--addr", "0.0.0.0:0"}, 1, []string{"0.0.0.0", "other machines", "--allow-remote"}},
		{[]string{"serve", "--addr", taken.Addr().String()}, 1, []string{taken.Addr().String(), "taken", "127.0.0.1:0"}},
		{[]string{"serve", "--memory", "--addr", "127.0.0.1:0", "--queue", "a b"}, 1, []string{`"a b"`, "alphanumeric"}},
		{[]string{"serve", "--memory", "--addr", "127.0.0.1:0", "--queue", "q,Colour=red"}, 1, []string{`"q"`, "Colour", "Colour is not one of", "VisibilityTimeout"}},
		{[]string{"serve", "--memory", "--addr", "127.0.0.1:0", "--queue", "orders,max-receive=5"}, 1, []string{"max-receive is not one of dead-letter, max-receives (which needs dead-letter)"}},
		{[]string{"up", "--memory", "--addr", "127.0.0.1:0", "--exec", "true", "--queue", "a b"}, 1, []string{`dead-letter queue of "a b"`, "pass a name like orders or orders.fifo"}},
		{[]string{"up", "--memory", "--addr", "8080", "--exec", "true"}, 1, []string{`--addr "8080"`, "pass one like 127.0.0.1:8080"}},
		{[]string{"up", "--memory", "--addr", "here", "--exec", "true"}, 1, []string{`--addr "here"`, "pass one like 127.0.0.1:9324"}},
		{[]string{"serve", "--memory", "--addr", "127.0.0.1:0", "--queue", "q,VisibilityTimeout=99999,DelaySeconds=1"}, 1, []string{`"q" with DelaySeconds=1, VisibilityTimeout=99999:`}},
		{[]string{"serve", "--memory", "--addr", "127.0.0.1:0", "--queue", "q", "--queue", "q"}, 1, []string{`"q"`, "twice"}},
		{[]string{"serve", "--queue", "q,oops"}, 2, []string{`"oops"`, "attribute=value"}},
		{[]string{"serve", "--queue", "q,max-receives=5"}, 2, []string{"dead-letter=q-dead"}},
		{[]string{"serve", "--queue", "q,dead-letter=d,max-receives=1001"}, 2, []string{"1001", "1 to 1000"}},
		{[]string{"up"}, 2, []string{"url", "exec"}},
		{[]string{"up", "--url", "http://localhost", "--exec", "true"}, 2, []string{"url", "exec"}},
		{[]string{"up", "--url", "localhost:80"}, 2, []string{`"localhost:80"`, "http://"}},
		{[]string{"up", "--exec", " "}, 2, []string{"--exec", "empty"}},
		{[]string{"up", "--exec", "true", "--retry", "expnential(base=1s)"}, 2, []string{"--retry", "expnential", "exponential("}},
		{[]string{"up", "--exec", "true", "--retry", "attempts=none"}, 2, []string{"--retry", "attempts=none"}},
		{[]string{"up", "--exec", "true", "--concurrency", "0"}, 2, []string{"--concurrency is 0"}},
		{[]string{"up", "--exec", "true", "--timeout", "0"}, 2, []string{"--timeout is 0s", "30s"}},
		{[]string{"up", "--exec", "true", "--timeout", "soon"}, 2, []string{`"soon"`, "--timeout"}},
		{[]string{"up", "--exec", "true", "--addr", taken.Addr().String()}, 1, []string{"taken"}},
		{[]string{"send"}, 2, []string{"QUEUE is missing"}},
		{[]string{"send", `{"id":1}`}, 2, []string{`QUEUE "{\"id\":1}"`, "neither a name nor a URL"}},
		{[]string{"send", "q", "--endpoint", nobody, "hello"}, 1, []string{nobody, "reprise serve"}},
		{[]string{"send", nobody + "/000000000000/q", "hello"}, 1, []string{nobody, "reprise serve"}},
		{[]string{"send", "q", "--endpoint", "localhost", "hello"}, 1, []string{`"localhost"`, "http://"}},
		{[]string{"send", "q", "--file", "/nonexistent/file"}, 1, []string{"/nonexistent/file"}},
		{[]string{"send", "q", "--file", "x", "hello"}, 2, []string{"--file", "one of them"}},
		{[]string{"send", "q.fifo", "hello"}, 2, []string{`"q.fifo"`, "--group"}},
		{[]string{"send", "q", "--delay", "16m", "hello"}, 2, []string{"16m", "15m"}},
		{[]string{"send", "q", "--delay", "1500ms", "hello"}, 2, []string{"1.5s", "whole seconds"}},
		{[]string{"send", "q", "--attribute", "novalue", "hello"}, 2, []string{`"novalue"`, "name=value"}},
		{[]string{"lambda"}, 0, []string{"up", "invoke", "send"}},
		{[]string{"lambda", "up"}, 2, []string{"reprise lambda up --help"}},
		{[]string{"lambda", "up", "/nonexistent/t.yaml"}, 1, []string{"/nonexistent/t.yaml"}},
		{[]string{"lambda", "up", "t.yaml", "--param", "novalue"}, 2, []string{`"novalue"`, "name=value"}},
		{[]string{"lambda", "upp"}, 2, []string{`"upp"`, "reprise lambda --help"}},
		{[]string{"lambda", "up", "t.yaml", "--time-scale", "0"}, 2, []string{"--time-scale is 0"}},
		{[]string{"lambda", "up", "t.yaml", "--time-scale", "NaN"}, 2, []string{"--time-scale is NaN"}},
		{[]string{"lambda", "up", "t.yaml", "--memory", "--data", "/tmp"}, 2, []string{"memory", "data"}},
		{[]string{"lambda", "up", "../../examples/asynclambda/template.yaml", "--addr", taken.Addr().String()}, 1, []string{"taken"}},
		{[]string{"lambda", "up", "../../examples/asynclambda/template.yaml", "--addr", "0.0.0.0:0"}, 1, []string{"other machines", "any credentials: pass --addr 127.0.0.1:0\n"}},
		{[]string{"lambda", "up", "../../examples/asynclambda/template.yaml", "--addr", "127.0.0.1:0", "--param", "Base=2"}, 1, []string{`"Base"`, "correct --param"}},
		{[]string{"lambda", "invoke"}, 2, []string{"reprise lambda invoke --help"}},
		{[]string{"lambda", "invoke", "f", "{"}, 2, []string{"the payload is not valid JSON", "double quotes"}},
		{[]string{"lambda", "invoke", "f", "@/nonexistent/file"}, 1, []string{"/nonexistent/file"}},
		{[]string{"lambda", "invoke", "f", "--endpoint", nobody}, 1, []string{nobody, "reprise lambda up"}},
		{[]string{"demo", "--messages", "0"}, 2, []string{"--messages is 0"}},
		{[]string{"demo", "--seed", "-1"}, 2, []string{"-1", "--seed"}},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			t.Parallel()
			got := reprise(t, "", test.args...)
			if got.code != test.code {
				t.Errorf("exit code %d, want %d", got.code, test.code)
			}
			if test.code != 0 && (got.stdout != "" || !strings.HasPrefix(got.stderr, "reprise: ")) {
				t.Errorf("stdout %q; want one complaint of reprise on stderr alone", got.stdout)
			}
			for _, want := range test.want {
				if !strings.Contains(got.stdout+got.stderr, want) {
					t.Errorf("output does not say %q:\n%s%s", want, got.stdout, got.stderr)
				}
			}
		})
	}
}
