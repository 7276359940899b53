package serving

import (
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/bench/load"
	"github.com/reprise-sqs/reprise/bench/servers"
)

// made is a sample of ten messages.
func made(wall, cpu time.Duration) sample {
	return sample{load.Report{Messages: 10, Wall: wall, Calls: []time.Duration{wall}}, cpu}
}

func TestRatio(t *testing.T) {
	// The machine was slower in the second round: that is in neither ratio.
	of := []sample{made(time.Second, 2*time.Second), made(10*time.Second, 20*time.Second), made(time.Second, 3*time.Second)}
	to := []sample{made(2*time.Second, time.Second), made(20*time.Second, 10*time.Second), made(2*time.Second, time.Second)}
	if got := ratio(of, to, sample.rate); got != 2 {
		t.Errorf("the ratio of the rates is %v, want 2", got)
	}
	if got := ratio(of, to, sample.cpuEach); got != 2 {
		t.Errorf("the ratio of the processor times is %v, want 2", got)
	}
	if got := median(of, sample.cpuEach); got != 300_000 {
		t.Errorf("the median is %v µs each, want 300000", got)
	}
	if got := middle([]float64{4, 1, 3, 2}); got != 2.5 {
		t.Errorf("the middle of four is %v, want 2.5", got)
	}
}

func TestVerdict(t *testing.T) {
	for _, test := range []struct {
		aim       aim
		rate, cpu float64
		want      string
	}{
		{aim{}, 1, 1, ""},
		{aim{ofCPU, 0, 1.3}, 9, 1.3, "CPU ≤ 1.30: met"},
		{aim{ofCPU, 0, 1.3}, 0.1, 1.31, "CPU ≤ 1.30: missed"},
		{aim{ofRate, 0.7, 0}, 0.7, 9, "rate ≥ 0.70: met"},
		{aim{ofRate, 0.7, 0}, 0.69, 0.1, "rate ≥ 0.70: missed"},
	} {
		if got := test.aim.verdict(test.rate, test.cpu); got != test.want {
			t.Errorf("%v at %v and %v: %q, want %q", test.aim, test.rate, test.cpu, got, test.want)
		}
	}
}

// A rival is held to its aim: three and ten times if it is durable, once if not.
func TestRanking(t *testing.T) {
	all := samples{
		sending.name: {{made(time.Second, time.Second)}, {made(4*time.Second, time.Second)}},
		working.name: {{made(time.Second, time.Second)}, {made(4*time.Second, time.Second)}},
	}
	var out strings.Builder
	b := Bench{out: &out, scale: Short}
	err := b.ranking([]rival{
		{Server: servers.Server{Name: "kept", Keeps: "disk", Survives: true}, samples: all},
		{Server: servers.Server{Name: "forgotten", Keeps: "memory"}, samples: all},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"kept":      {"4.0", "≥ 3.00: met", "≥ 10.00: missed"},
		"forgotten": {"4.0", "≥ 1.00: met"},
	} {
		_, row, _ := strings.Cut(out.String(), "\n"+name)
		row, _, _ = strings.Cut(row, "\n")
		for _, text := range want {
			if !strings.Contains(row, text) {
				t.Errorf("there is no %q in the row of %s:%s", text, name, row)
			}
		}
	}
}
