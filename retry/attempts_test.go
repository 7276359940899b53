package retry_test

import (
	"io"
	"math"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// TestAttemptsFromReceives is rule by rule what a message without a history is
// worth: receives that were no attempts do not count.
func TestAttemptsFromReceives(t *testing.T) {
	doubling := retry.Policy{Jitter: retry.None} // 1, 2, 4, ... s: after k retries 2^k - 1 s
	parked := retry.Policy{Backoff: retry.Constant(48 * time.Hour), Jitter: retry.None}
	atCap := retry.Policy{Backoff: retry.Constant(12 * time.Hour), Jitter: retry.None}
	everySecond := retry.Policy{Backoff: retry.Constant(second), Jitter: retry.None}
	hurried := doubling
	hurried.Rules = []retry.Rule{retry.On(io.EOF, retry.Constant(second), retry.None)}
	tests := []struct {
		name     string
		policy   retry.Policy
		receives int
		elapsed  time.Duration
		want     int
	}{
		{"first receive", doubling, 1, 0, 1},
		{"first receive, much later", doubling, 1, 1000 * time.Hour, 1},
		{"no receive", doubling, 0, 0, 1},
		{"every receive an attempt", doubling, 5, 15 * second, 5},
		{"longer runs of the handler", doubling, 5, time.Hour, 5},
		{"ten deploys in a minute", doubling, 14, 62 * second, 7},
		{"just short of the next wait, by the clock's resolution", doubling, 9, 14 * second, 5},
		{"short of the next wait", doubling, 9, 14*second - 1, 4},
		{"received again at once", doubling, 2, 0, 2},
		{"three times at once", doubling, 3, 0, 2},
		{"clock set back", doubling, 9, -time.Hour, 2},
		{"hop of a parked wait", parked, 4, 36 * time.Hour, 1},
		{"end of a parked wait", parked, 5, 48 * time.Hour, 2},
		{"end of a parked wait, short by what is allowed", parked, 5, 48*time.Hour - 1728*second, 2},
		{"end of a parked wait, too short", parked, 5, 48*time.Hour - 1730*second, 1},
		{"12 h, served as 43,175 s after a long poll of 20 s", atCap, 9, 3 * 43175 * second, 4},
		{"12 h, one of three not served", atCap, 9, 3*43175*second - 2*second, 3},
		{"shortest wait of any rule", hurried, 30, 9 * second, 11},
		{"no wait at all", retry.Policy{Backoff: retry.Constant(0)}, 500, 0, 500},
		{"more receives than are considered", retry.Policy{Backoff: retry.Constant(0)}, math.MaxInt, 0, math.MaxInt},
		{"the waits that are considered", everySecond, 2000, 1023*second - 1, 1024},
		{"more waits than are considered", everySecond, 2000, 1023 * second, 2000},
		{"for ever", doubling, 100, math.MaxInt64, 100},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := test.policy.Attempts("m", 0, test.receives, test.elapsed); got != test.want {
				t.Errorf("Attempts(%d receives, %v) = %d, want %d", test.receives, test.elapsed, got, test.want)
			}
		})
	}
}

// TestAttemptsOfAnUndisturbedMessage follows messages whose every receive was an
// attempt or, where waits pass twelve hours, a hop of such a wait. An attempt
// that was made is never missed, however SQS cut the waits; and without hops the
// count is exact.
func TestAttemptsOfAnUndisturbedMessage(t *testing.T) {
	for _, longest := range []time.Duration{11 * time.Hour, 12 * time.Hour, 40 * time.Hour} {
		for _, j := range jitters {
			p := retry.Policy{Backoff: retry.Exponential{Base: 90 * second, Factor: 3, Max: longest}, Jitter: j}
			for i := range 50 {
				followMessage(t, p, messageID(i))
			}
		}
	}
}

// TestAttemptsAfterAHistory: what a history tells of is behind the message, its
// waits are over, and the receives of the copy count from there.
func TestAttemptsAfterAHistory(t *testing.T) {
	doubling := retry.Policy{Jitter: retry.None} // before retry n: 2^(n-1) s
	tests := []struct {
		name           string
		made, receives int
		elapsed        time.Duration
		want           int
	}{
		{"first receive of the copy", 4, 1, time.Hour, 5},
		{"no time for a retry since", 4, 9, 10 * second, 5},
		{"time for one retry, of 16 s", 4, 9, 16 * second, 6},
		{"time for two", 4, 9, 48 * second, 7},
		{"every receive an attempt", 4, 3, time.Hour, 7},
		{"less than none", -7, 2, time.Hour, 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := doubling.Attempts("m", tt.made, tt.receives, tt.elapsed); got != tt.want {
				t.Errorf("attempt %d, want %d", got, tt.want)
			}
		})
	}
}

func followMessage(t *testing.T, p retry.Policy, id string) {
	t.Helper()
	requested, receives := first, 1
	for n := 1; n <= 30; n++ {
		got := p.Attempts(id, 0, receives, requested.Sub(first))
		if got < n || receives == n && got != n {
			t.Fatalf("%v, %s: attempt %d, receive %d, is taken for attempt %d", policyText(p), id, n, receives, got)
		}
		now := requested.Add(3 * second) // the run of the handler
		wait := p.Wait(id, n)
		due := now.Add(wait)
		for served := false; !served; receives++ {
			seconds, short := retry.Visibility(requested, now, due)
			requested = now.Add(time.Duration(seconds) * second)
			now = requested
			served = !short || due.Sub(now) <= retry.AllowedShortfall(wait)
		}
	}
}

func TestAttemptsAllocatesNothing(t *testing.T) {
	p := retry.Policy{Jitter: retry.Decorrelated, Rules: []retry.Rule{retry.On(io.EOF, retry.List{second}, retry.Full)}}
	if n := testing.AllocsPerRun(100, func() { p.Attempts("m", 0, 50, 100*time.Hour) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
