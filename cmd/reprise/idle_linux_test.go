package main_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// begun starts the program, and returns when it has printed text.
func begun(b *testing.B, text string, args ...string) (cmd *exec.Cmd, line string) {
	b.Helper()
	cmd = exec.Command(program(b), args...)
	cmd.Env = environment()
	out, in, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	defer in.Close()
	cmd.Stdout, cmd.Stderr = in, in
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // says that it was killed
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, rest, found := strings.Cut(lines.Text(), text); found {
			go func() {
				_, _ = io.Copy(io.Discard, out)
				out.Close()
			}()
			return cmd, strings.TrimSpace(rest)
		}
		line += lines.Text() + "\n"
	}
	b.Fatalf("%v never printed %q:\n%s", args, text, line)
	return nil, ""
}

// BenchmarkStart measures until the program works: until serve listens, and until run consumes. Of
// the times the least is least disturbed by other work. The processor time has that of the stop in
// it.
func BenchmarkStart(b *testing.B) {
	_, endpoint := begun(b, "SQS endpoint", "serve", "--memory", "--addr", "127.0.0.1:0", "--queue", "orders,dead-letter=orders-dead,max-receives=100")
	for _, of := range []struct {
		name, until string
		args        func() []string
	}{
		{"serve in memory", "SQS endpoint", func() []string { return []string{"serve", "--memory", "--addr", "127.0.0.1:0"} }},
		{"serve with a journal", "SQS endpoint", func() []string { return []string{"serve", "--data", b.TempDir(), "--addr", "127.0.0.1:0"} }},
		{"run", "msg=consuming", func() []string {
			return []string{"run", "--queue", "orders", "--endpoint", endpoint, "--url", "http://127.0.0.1:1", "--admin-addr", "127.0.0.1:0"}
		}},
	} {
		b.Run(of.name, func(b *testing.B) {
			var took, worked []float64
			for b.Loop() {
				args := of.args()
				begin := time.Now()
				cmd, _ := begun(b, of.until, args...)
				took = append(took, float64(time.Since(begin).Microseconds())/1000)
				if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
					b.Fatal(err)
				}
				if err := cmd.Wait(); err != nil {
					b.Fatal(err)
				}
				spent := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
				worked = append(worked, float64(spent.Microseconds())/1000)
			}
			b.ReportMetric(slices.Min(took), "ms-least")
			b.ReportMetric(middle(took), "ms")
			b.ReportMetric(middle(worked), "ms-processor")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkIdle measures a run of three queues in which nothing comes, for a minute a round.
func BenchmarkIdle(b *testing.B) {
	minute := time.Minute
	if testing.Short() {
		minute = time.Second
	}
	_, endpoint := begun(b, "SQS endpoint", "serve", "--memory", "--addr", "127.0.0.1:0", "--queue", "a", "--queue", "b", "--queue", "c")
	server, err := url.Parse(endpoint)
	if err != nil {
		b.Fatal(err)
	}
	var requests atomic.Int64
	proxy := httputil.NewSingleHostReverseProxy(server)
	counted := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		proxy.ServeHTTP(w, r)
	}))
	defer counted.CloseClientConnections()
	config := b.TempDir() + "/reprise.yaml"
	if err := os.WriteFile(config, []byte("url: http://127.0.0.1:1\nqueues:\n  - {name: a, consume: }\n  - {name: b, consume: }\n  - {name: c, consume: }\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	cmd, _ := begun(b, "msg=consuming", "run", "--config", config, "--endpoint", counted.URL, "--admin-addr", "127.0.0.1:0")
	time.Sleep(minute / 6) // the requests of the start
	before, began := requests.Load(), time.Now()
	cpu := cpuTime(b, cmd.Process.Pid)
	for b.Loop() {
		time.Sleep(minute)
	}
	minutes := time.Since(began).Minutes()
	memory, err := memoryOf(cmd.Process.Pid)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(requests.Load()-before)/3/minutes, "requests/minute/queue")
	b.ReportMetric(float64(memory)/(1<<20), "MiB")
	b.ReportMetric((cpuTime(b, cmd.Process.Pid)-cpu).Seconds()*1000/minutes, "ms-processor/minute")
	b.ReportMetric(0, "ns/op")
}
