package retry_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/retry"
)

var jitters = []retry.Jitter{
	retry.Full, retry.None, retry.Equal, retry.FromBase, retry.Decorrelated, retry.Percent(20), retry.Percent(100),
}

// messageID returns ids as SQS gives them; neighbours differ in one digit only.
func messageID(i int) string {
	return fmt.Sprintf("5fea7756-0ea4-451a-a703-%012x", i)
}

// TestJitterGolden pins waits, in nanoseconds, recomputed from the documentation
// of Jitter in another language. They must never change: processes of different
// versions share queues.
func TestJitterGolden(t *testing.T) {
	const id = "5fea7756-0ea4-451a-a703-a558b933e274"
	golden := map[retry.Jitter][]time.Duration{
		retry.Full:         {527180407, 204859049, 8163129135, 3634374116862, 14615999638655, 5211059118464},
		retry.Equal:        {763590204, 1102429524, 12081564567, 23417187058431, 28907999819327, 24205529559232},
		retry.FromBase:     {1000000000, 1102429524, 8652933564, 3635289987832, 14616661305330, 5211938492096},
		retry.Decorrelated: {2054360814, 1528852080, 4161846255, 7118374409, 2123870501438, 522557004997},
		retry.Percent(20):  {1010872163, 1681943619, 16065251654, 36013749646745, 40406399855462, 36644423647386},
	}
	for j, want := range golden {
		var got []time.Duration
		for _, n := range []int{1, 2, 5, 17, 33, 100} {
			got = append(got, retry.Policy{Jitter: j}.Wait(id, n))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("jitter %v (-want +got):\n%s", j, diff)
		}
	}
}

// TestJitterDistribution compares the waits of 20,000 messages with the range
// that each jitter documents, by the Kolmogorov-Smirnov test at the 1 % level.
// Seeds are fixed, so it cannot fail by chance.
func TestJitterDistribution(t *testing.T) {
	const minute = time.Minute
	backoff := retry.Exponential{Base: minute} // 1, 2, 4, 8, ... minutes
	tests := []struct {
		name   string
		jitter retry.Jitter
		n      int
		lo, hi time.Duration
	}{
		{"full, first", retry.Full, 1, 0, minute},
		{"full, fifth", retry.Full, 5, 0, 16 * minute},
		{"full, at the cap", retry.Full, 40, 0, 12 * time.Hour},
		{"equal, third", retry.Equal, 3, 2 * minute, 4 * minute},
		{"from base, fourth", retry.FromBase, 4, minute, 8 * minute},
		{"percent 20, third", retry.Percent(20), 3, 192 * second, 288 * second},
		{"percent 100, third", retry.Percent(100), 3, 0, 8 * minute},
		{"percent 0.5, fifth", retry.Percent(0.5), 5, 955200 * time.Millisecond, 964800 * time.Millisecond},
		{"decorrelated, first", retry.Decorrelated, 1, minute, 3 * minute},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := retry.Policy{Backoff: backoff, Jitter: test.jitter}
			sample := make([]float64, 20_000)
			for i := range sample {
				wait := p.Wait(messageID(i), test.n)
				if wait < test.lo || wait > test.hi {
					t.Fatalf("wait %v is outside [%v, %v]", wait, test.lo, test.hi)
				}
				sample[i] = float64(wait-test.lo) / float64(test.hi-test.lo)
			}
			if distance := ksUniform(sample); distance > 1.63/math.Sqrt(float64(len(sample))) {
				t.Errorf("Kolmogorov-Smirnov distance from uniform over [%v, %v] is %.4f", test.lo, test.hi, distance)
			}
		})
	}
}

// TestDecorrelatedIsTheChain compares waits with a stateful simulation of the
// formula as AWS's backoff simulator has it, by the two-sample
// Kolmogorov-Smirnov test at the 1 % level. Beyond the window of 32, the chain
// is as if begun 32 retries ago.
func TestDecorrelatedIsTheChain(t *testing.T) {
	const size = 10_000
	const base, limit = float64(second), float64(2 * time.Hour)
	p := retry.Policy{Backoff: retry.Exponential{Max: 2 * time.Hour}, Jitter: retry.Decorrelated}
	random := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{2, 5, 16, 32, 33, 1000} {
		got, want := make([]float64, size), make([]float64, size)
		for i := range size {
			got[i] = float64(p.Wait(messageID(i), n))
			sleep := base
			for range min(n, 32) {
				sleep = min(limit, base+random.Float64()*(3*sleep-base))
			}
			want[i] = sleep
		}
		if distance := ksTwoSample(got, want); distance > 1.63*math.Sqrt(2.0/size) {
			t.Errorf("retry %d: Kolmogorov-Smirnov distance from the chain is %.4f", n, distance)
		}
	}
}

// TestDecorrelatedFollowsItself: each wait of one message lies between the base
// and three times that message's wait before.
func TestDecorrelatedFollowsItself(t *testing.T) {
	p := retry.Policy{Jitter: retry.Decorrelated}
	for i := range 200 {
		before := second
		for n := 1; n <= 32; n++ {
			wait := p.Wait(messageID(i), n)
			if wait < second || wait > min(3*before, 12*time.Hour) {
				t.Fatalf("%s: wait %d is %v after %v", messageID(i), n, wait, before)
			}
			before = wait
		}
	}
}

// TestJitterBounds: the documented ranges where they have one value or no room.
func TestJitterBounds(t *testing.T) {
	tests := []struct {
		name    string
		jitter  retry.Jitter
		backoff retry.Backoff
		n       int
		want    time.Duration
	}{
		{"none", retry.None, nil, 5, 16 * second},
		{"from base, first", retry.FromBase, nil, 1, second},
		{"percent 0", retry.Percent(0), nil, 5, 16 * second},
		{"full of nothing", retry.Full, retry.Constant(0), 1, 0},
		{"from base of a constant", retry.FromBase, retry.Constant(second), 9, second},
		{"decorrelated under a constant", retry.Decorrelated, retry.Constant(second), 9, second},
		{"decorrelated under a falling list", retry.Decorrelated, retry.List{10 * second, second}, 3, second},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := retry.Policy{Backoff: test.backoff, Jitter: test.jitter}
			for i := range 100 {
				if got := p.Wait(messageID(i), test.n); got != test.want {
					t.Fatalf("wait %d = %v, want %v", test.n, got, test.want)
				}
			}
		})
	}
	falling := retry.Policy{Backoff: retry.List{10 * second, second}, Jitter: retry.FromBase}
	for i := range 100 {
		if got := falling.Wait(messageID(i), 2); got < second || got > 10*second {
			t.Fatalf("from base under a falling list: %v is outside [1s, 10s]", got)
		}
	}
}

// TestJitterIsUncorrelated: the waits of one message's successive retries, and
// those of messages with neighbouring ids, tell nothing about each other. Both
// the linear correlation and the 16 x 16 grid of pairs (chi-squared, 1 % level)
// are tested.
func TestJitterIsUncorrelated(t *testing.T) {
	const size = 20_000
	p := retry.Policy{Backoff: retry.Constant(time.Hour)}
	draw := func(id, n int) float64 { return float64(p.Wait(messageID(id), n)) / float64(time.Hour) }
	tests := []struct {
		name   string
		second func(i int) (id, n int) // beside message i, retry 1
	}{
		{"retries 1 and 2", func(i int) (int, int) { return i, 2 }},
		{"retries 1 and 17", func(i int) (int, int) { return i, 17 }},
		{"neighbouring ids", func(i int) (int, int) { return i + 1, 1 }},
		{"ids 16 apart", func(i int) (int, int) { return i + 16, 1 }},
		{"neighbouring ids and retries", func(i int) (int, int) { return i + 1, 2 }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var xs, ys []float64
			var grid [16][16]int
			for i := range size {
				id, n := test.second(i)
				x, y := draw(i, 1), draw(id, n)
				xs, ys = append(xs, x), append(ys, y)
				grid[min(int(x*16), 15)][min(int(y*16), 15)]++
			}
			if r := correlation(xs, ys); math.Abs(r) > 2.58/math.Sqrt(size) {
				t.Errorf("correlation is %.4f", r)
			}
			var chi2 float64
			const expected = size / 256.0
			for _, row := range grid {
				for _, count := range row {
					chi2 += (float64(count) - expected) * (float64(count) - expected) / expected
				}
			}
			// The 99th percentile of chi-squared with 255 degrees of freedom.
			if chi2 > 310.5 {
				t.Errorf("chi-squared of the pairs is %.1f", chi2)
			}
		})
	}
}

func TestPercentRefusesOutOfRange(t *testing.T) {
	for _, p := range []float64{-0.01, 100.01, math.NaN(), math.Inf(1), math.Inf(-1)} {
		if err := (retry.Policy{Jitter: retry.Percent(p)}).Validate(); err == nil {
			t.Errorf("Percent(%v) is accepted", p)
		}
	}
}

// ksUniform returns the Kolmogorov-Smirnov distance of the sample from the
// uniform distribution over [0, 1].
func ksUniform(sample []float64) (distance float64) {
	slices.Sort(sample)
	size := float64(len(sample))
	for i, x := range sample {
		distance = max(distance, x-float64(i)/size, float64(i+1)/size-x)
	}
	return distance
}

func ksTwoSample(a, b []float64) (distance float64) {
	slices.Sort(a)
	slices.Sort(b)
	for i, j := 0, 0; i < len(a) && j < len(b); {
		x := min(a[i], b[j])
		for i < len(a) && a[i] == x {
			i++
		}
		for j < len(b) && b[j] == x {
			j++
		}
		distance = max(distance, math.Abs(float64(i)/float64(len(a))-float64(j)/float64(len(b))))
	}
	return distance
}

func correlation(xs, ys []float64) float64 {
	var sx, sy, sxx, syy, sxy float64
	for i, x := range xs {
		y := ys[i]
		sx, sy, sxx, syy, sxy = sx+x, sy+y, sxx+x*x, syy+y*y, sxy+x*y
	}
	n := float64(len(xs))
	return (n*sxy - sx*sy) / math.Sqrt((n*sxx-sx*sx)*(n*syy-sy*sy))
}
