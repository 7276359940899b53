//go:build unix

package main_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// shop is a file with two queues that are consumed, in a pool, and one that is not. %URL is
// the target of the first.
const shop = `# reprise.yaml
addr: 127.0.0.1:0
memory: true
admin-addr: 127.0.0.1:0
retry: constant(1s) attempts=3
timeout: 5s
pools:
  workers: {concurrency: 3}
queues:
  - name: orders
    dead-letter: orders-dead
    max-receives: 30
    consume:
      url: %URL
      pool: workers
      priority: 10
      permanent-status: [404, 5xx]
  - name: mails
    consume:
      exec: grep -q good
      permanent-exit: 1
      pool: workers
  - name: archive
`

// TestConfigOfManyQueues: serve creates the queues of a file, and run with the same file
// consumes those that are to be; up does both.
func TestConfigOfManyQueues(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var posted []string
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		posted = append(posted, r.Header.Get("X-Aws-Sqsd-Queue")+" "+string(body))
		if string(body) == "bad" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer target.Close()
	file := written(t, "reprise.yaml", strings.ReplaceAll(shop, "%URL", target.URL))
	for name, begin := range map[string]func(t *testing.T) (p *process, endpoint, admin string){
		"serve and run": func(t *testing.T) (*process, string, string) {
			server := start(t, "serve", "--config", file)
			endpoint := server.await("SQS endpoint")
			p := start(t, "run", "--config", file, "--endpoint", endpoint)
			return p, endpoint, strings.TrimSuffix(strings.Split(p.await("admin "), ",")[0], "/health")
		},
		"up": func(t *testing.T) (*process, string, string) {
			p := start(t, "up", "--config", file)
			endpoint := p.await("SQS endpoint")
			return p, endpoint, endpoint
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, endpoint, admin := begin(t)
			for queue, bodies := range map[string][]string{"orders": {"good", "bad"}, "mails": {"good", "bad"}, "archive": {"kept"}} {
				sendAll(t, endpoint, queue, bodies...)
			}
			if body, story := deadLetter(t, endpoint, "orders-dead"); body != "bad" || story.Reason != "permanent" {
				t.Errorf("dead letter %q, %+v", body, story)
			}
			h := awaitHealth(t, admin, func(h health) bool { return h.Consumer.Deleted == 2 && len(h.Queues) == 2 })
			if h.Queues[0].Consumer.Deleted != 1 || !strings.HasSuffix(h.Queues[1].Queue, "/mails") {
				t.Errorf("health of the queues: %+v", h.Queues)
			}
			if n := inQueue(t, endpoint, "archive"); n != 1 {
				t.Errorf("%d messages are in the queue that nobody consumes, want 1", n)
			}
			families := scrape(t, admin)
			for _, queue := range []string{"orders", "mails"} {
				if _, ok := reading(families["reprise_settled_total"], "messaging_destination_name", queue); !ok {
					t.Errorf("no metrics of the queue %s", queue)
				}
			}
			p.signal(syscall.SIGTERM)
			if code, output := p.wait(); code != 0 || strings.Count(output, "msg=stopped") != 2 {
				t.Errorf("exit code %d:\n%s", code, output)
			}
		})
	}
	mu.Lock()
	defer mu.Unlock()
	for _, p := range posted {
		if p != "orders good" && p != "orders bad" {
			t.Errorf("posted %q", p)
		}
	}
}

// TestConfigMistakes: mistakes are found where they are, by config check and by run alike.
func TestConfigMistakes(t *testing.T) {
	const head = "queues:\n  - name: orders\n    consume:\n      url: http://localhost\n"
	for _, test := range []struct {
		text string
		want []string
	}{
		{head + "      concurency: 4\n", []string{":5:7:", `"concurency"`}},
		{head + "      concurrency: many\n", []string{":5:7:", "concurrency:", `"many"`}},
		{head + "      lease: 5h\n", []string{":5:7:", "lease is 5h0m0s", "1h0m0s"}},
		{head + "      retry: sometimes\n", []string{":5:7:", "retry:", `"sometimes"`}},
		{head + "      via: air\n", []string{":5:7:", "via:", "auto, visibility or requeue"}},
		{head + "      permanent-exit: 5\n", []string{":5:7:", "permanent-exit is for --exec"}},
		{head + "      permanent-exit: [5, 6]\n", []string{":5:7:", "permanent-exit is for --exec"}},
		{head + "      permanent-status: [200]\n", []string{":5:7:", `"200" is not a code`}},
		{head + "      exec: cat\n", []string{":5:7:", "exec and --url are two targets"}},
		{head + "      pool: workers\n", []string{":5:7:", `"workers", which is not one of pools`}},
		{head + "      priority: 1\n", []string{":5:7:", "name one with the key pool"}},
		{head + "      dead-letter: orders\n", []string{":5:7:", "queue itself"}},
		{head + "log-level: loud\n", []string{":5:1:", `"loud"`, "debug, info, warn or error"}},
		{"queues:\n  - name: orders\n    consume:\n", []string{":2:", `queue "orders"`, "--to-queue has to name the target"}},
		{"queues:\n  - name: http://localhost/orders\n    consume: {exec: cat}\n", []string{":2:", "/account/name"}},
		{"retry: sometimes\nqueues:\n  - name: a\n    consume: {exec: cat}\n", []string{":1:1:", `"sometimes"`}},
	} {
		file := written(t, "reprise.yaml", test.text)
		for _, args := range [][]string{{"config", "check", file}, {"run", "--config", file, "--endpoint", "http://127.0.0.1:1"}} {
			got := reprise(t, "", args...)
			if got.code != 2 || got.stdout != "" {
				t.Errorf("%s\n%v: exit code %d, %s", test.text, args[:2], got.code, got.stdout)
			}
			for _, want := range test.want {
				if !strings.Contains(got.stderr, want) {
					t.Errorf("%s\n%v: does not say %q: %s", test.text, args[:2], want, got.stderr)
				}
			}
		}
	}
}

// TestConfigOrder: the command line wins over the environment, that over a queue's own
// settings, and those over the settings of all queues.
func TestConfigOrder(t *testing.T) {
	file := written(t, "reprise.yaml", "timeout: 1s\nlease: 31s\nprefetch: 1\nexec: cat\nqueues:\n  - name: a\n    consume: {url: http://localhost, lease: 32s, prefetch: 2}\n  - name: b\n    consume:\n")
	got := shown(t, []string{"REPRISE_PREFETCH=3"}, file)
	first, second, _ := strings.Cut(got, "name: b")
	for _, want := range []string{"url: http://localhost", "timeout: 1s", "lease: 32s", "prefetch: 3"} {
		if !strings.Contains(first, want) {
			t.Errorf("the first queue has no %q:\n%s", want, first)
		}
	}
	for _, want := range []string{"exec: cat", "timeout: 1s", "lease: 31s", "prefetch: 3"} {
		if !strings.Contains(second, want) {
			t.Errorf("the second queue has no %q:\n%s", want, second)
		}
	}
	for args, want := range map[string]string{"--lease=5h": "--lease is 5h", "--lease=33s": "no answer"} {
		got := reprise(t, "", "run", "--config", file, "--endpoint", "http://127.0.0.1:1", args)
		if got.code == 0 || !strings.Contains(got.stderr, want) {
			t.Errorf("run %s: %+v, want %q", args, got, want)
		}
	}
	p := startIn(t, environment("REPRISE_LEASE=soon"), "run", "--config", file)
	if code, output := p.wait(); code != 2 || !strings.Contains(output, "REPRISE_LEASE") || !strings.Contains(output, `"soon"`) {
		t.Errorf("a bad variable: exit code %d, %s", code, output)
	}
}

// shown returns what config show prints.
func shown(t *testing.T, variables []string, file string) string {
	t.Helper()
	p := startIn(t, environment(variables...), "config", "show", file)
	code, output := p.wait()
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, output)
	}
	return output
}

// TestConfigShow: what config show prints means the same, and is shown the same.
func TestConfigShow(t *testing.T) {
	first := shown(t, nil, written(t, "reprise.yaml", strings.ReplaceAll(shop, "%URL", "http://localhost:8080")))
	if second := shown(t, nil, written(t, "again.yaml", first)); second != first {
		t.Errorf("shown again it is\n%s\nwant\n%s", second, first)
	}
	for _, want := range []string{"addr: 127.0.0.1:0", "memory: true", "dead-letter: orders-dead", "max-receives: 30", "priority: 10", "name: archive"} {
		if !strings.Contains(first, want) {
			t.Errorf("it does not show %q:\n%s", want, first)
		}
	}
	if strings.Contains(first, "retry-lane") {
		t.Errorf("it shows settings without an effect:\n%s", first)
	}
}

// TestConfigInit: the file to begin with is right, and no other is overwritten.
func TestConfigInit(t *testing.T) {
	file := filepath.Join(t.TempDir(), "reprise.yaml")
	if got := reprise(t, "", "config", "init", file); got.code != 0 || !strings.Contains(got.stdout, "config check") {
		t.Errorf("init: %+v", got)
	}
	if got := reprise(t, "", "config", "check", file); got.code != 0 || !strings.Contains(got.stdout, "2 queues, 2 consumed") {
		t.Errorf("check: %+v", got)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := reprise(t, "", "config", "init", file); got.code != 1 || !strings.Contains(got.stderr, "exists: name another file") {
		t.Errorf("init again: %+v", got)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("init again changed the file: %v", err)
	}
}
