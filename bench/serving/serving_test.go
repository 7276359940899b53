package serving_test

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/bench/serving"
)

func TestMain(m *testing.M) {
	serving.ServeIfChild()
	os.Exit(m.Run())
}

// Every comparison runs to its end and has a row for its subject.
func TestComparisons(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the processor time of another process is read on Linux only")
	}
	var out strings.Builder
	scale := serving.Short
	scale.Dir, scale.Cache = t.TempDir(), t.TempDir()
	bench, err := serving.Open(&out, scale)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := bench.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, comparison := range []struct {
		name string
		run  func() error
		rows []string
	}{
		{"cost", bench.Cost, []string{"receive, reprise serve --memory", "receive, and messages kept, given out, let go", "CPU ≤ 1.30"}},
		{"durable", bench.Durable, []string{"128 clients, syncs 1ms slower: send, reprise serve --data", "rate ≥ 0.70", "rate ≥ 0.90"}},
		{"backlog", bench.Backlog, []string{"--memory, 1000 in backoff", "--data, 1000 waiting", "CPU ≤ 1.20", "CPU ≤ 1.50"}},
		{"waiting", bench.Waiting, []string{"polls that one message wakes 1.00 at least 1.00, at most 1.00: met"}},
		{"viewers", bench.Viewers, []string{"nobody looks", "50 viewers look", "CPU ≤ 1.05"}},
		{"servers", bench.Others, []string{"goaws 0.5.4", "ElasticMQ 1.6.14, persistent", "not installed: go run ./bench -install servers"}},
		{"journal", bench.Journal, []string{"16 clients: receive+delete, Pebble"}},
	} {
		t.Run(comparison.name, func(t *testing.T) {
			out.Reset()
			if err := comparison.run(); err != nil {
				t.Fatal(err)
			}
			table := strings.Join(strings.Fields(out.String()), " ") // the columns are as wide as the longest verdict
			for _, want := range comparison.rows {
				if !strings.Contains(table, want) {
					t.Errorf("there is no %q in\n%s", want, out.String())
				}
			}
		})
	}
}
