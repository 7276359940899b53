package operating

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
)

// TestOperatorsErrors: errors name the input and the remedy.
func TestOperatorsErrors(t *testing.T) {
	c, err := reprise.New(new(sqs.Client), "https://sqs.us-east-1.amazonaws.com/123456789012/orders", reprise.HandlerFunc(kit.Succeed), reprise.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for want, err := range map[string]error{
		`concurrency of 0 is out of range: set 1 to`:         c.SetConcurrency(0),
		`concurrency of 100001 is out of range: set 1 to`:    c.SetConcurrency(100_001),
		`rate of 0.0001 is out of range: set 0.001 to 1e+06`: c.SetRate(0.0001),
		`rate of -1 is out of range`:                         c.SetRate(-1),
		`rate of NaN is out of range`:                        c.SetRate(math.NaN()),
		`key "acme" cannot be paused or resumed`:             c.PauseKey("acme"),
		`key "bolt" cannot be paused or resumed`:             c.ResumeKey("bolt"),
		`Config.Rate is -1: set 0.001 to 1e+06`:              rate(-1),
		`Config.Rate is NaN: set 0.001 to 1e+06`:             rate(math.NaN()),
		`Config.Rate is +Inf: set 0.001 to 1e+06`:            rate(math.Inf(1)),
		`Config.Outage.Threshold is 1001: set 1 to 1000`:     threshold(1001),
		`Config.Outage.Threshold is -1: set 1 to 1000 messa`: threshold(-1),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func rate(r float64) error { return newError(reprise.Config{Rate: r}) }

func threshold(n int) error {
	return newError(reprise.Config{Outage: reprise.Outage{Threshold: n}})
}

func newError(cfg reprise.Config) error {
	_, err := reprise.New(new(sqs.Client), "https://sqs.us-east-1.amazonaws.com/123456789012/orders", reprise.HandlerFunc(kit.Succeed), cfg)
	return err
}

// TestConcurrencyAtRunTime: when the concurrency is raised, more handlers start at once; when it is
// lowered, the surplus handlers end by themselves.
func TestConcurrencyAtRunTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		p := &kit.Dependency{Takes: 10 * time.Second}
		c := q.Consume(p, reprise.Config{Concurrency: 2, Prefetch: 200})
		q.Send(kit.Numbered(1000)...)
		running := func(want int) {
			t.Helper()
			time.Sleep(33 * time.Second) // not a multiple of what a handler takes
			if s := c.Status(); s.Running != want || s.Concurrency != want {
				t.Errorf("%d handlers run, %d may; want %d", s.Running, s.Concurrency, want)
			}
		}
		running(2)
		for _, n := range []int{20, 50, 1, 7} {
			if err := c.SetConcurrency(n); err != nil {
				t.Fatal(err)
			}
			running(n)
		}
		q.WaitEmpty(time.Hour)
	})
}

// TestRateSpacesStarts: handlers start a tenth of a second apart, however many could run, and no
// more messages are leased than will start soon.
func TestRateSpacesStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		p := &kit.Dependency{Takes: 50 * time.Millisecond}
		q.Send(kit.Numbered(300)...)
		q.Consume(p, reprise.Config{Rate: 10, Concurrency: 50, Prefetch: 1000})
		time.Sleep(500 * time.Millisecond)
		if n := len(q.Messages()); n < 290 {
			t.Errorf("%d messages left after half a second at 10 a second", n)
		}
		time.Sleep(500 * time.Millisecond)
		leased := 0
		for _, m := range q.Messages() {
			if m.Receives > 0 {
				leased++
			}
		}
		if leased < 50 || leased > 110 {
			t.Errorf("%d messages are leased at 10 a second, want 50 to 110", leased)
		}
		q.WaitEmpty(time.Minute)
		p.Mu.Lock()
		defer p.Mu.Unlock()
		for i := 1; i < len(p.Starts); i++ {
			if gap := p.Starts[i].Sub(p.Starts[i-1]); gap != 100*time.Millisecond {
				t.Errorf("start %d is %v after the one before, want 100ms", i, gap)
			}
		}
	})
}

// TestRateAtRunTime: a new rate applies from the next start on, even if the old one had put that
// far off. Without a limit all messages that are held run.
func TestRateAtRunTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		p := &kit.Dependency{Takes: 10 * time.Millisecond}
		q.Send(kit.Numbered(1000)...)
		c := q.Consume(p, reprise.Config{Rate: 0.001, Concurrency: 20})
		before := 0 // the consumer may start the first at once
		starts := func(during time.Duration) int {
			time.Sleep(during)
			p.Mu.Lock()
			defer p.Mu.Unlock()
			n := len(p.Starts) - before
			before = len(p.Starts)
			return n
		}
		if n := starts(10 * time.Second); n != 1 {
			t.Fatalf("%d starts in 10 s at one in 1000 s", n)
		}
		for _, step := range []struct {
			rate float64
			want int // starts in 10 s
		}{{5, 50}, {0.2, 2}, {20, 200}, {1, 10}} {
			if err := c.SetRate(step.rate); err != nil {
				t.Fatal(err)
			}
			if got := c.Status().Rate; got != step.rate {
				t.Errorf("Status has a rate of %v, want %v", got, step.rate)
			}
			if n := starts(10 * time.Second); n < step.want-1 || n > step.want+1 {
				t.Errorf("%d starts in 10 s at %v a second, want %d", n, step.rate, step.want)
			}
		}
		if err := c.SetRate(0); err != nil {
			t.Fatal(err)
		}
		q.WaitEmpty(10 * time.Second)
	})
}

// TestRateIsKeptExactly: at any rate as many handlers start as it permits, except for bursts, and a
// consumer with a low rate does not receive one message at a time.
func TestRateIsKeptExactly(t *testing.T) {
	for _, rate := range []float64{0.05, 1, 333, 5000} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				p := &kit.Dependency{}
				n := int(max(10, min(2000, rate*20)))
				q.Send(kit.Numbered(n)...)
				c := q.Consume(p, reprise.Config{Rate: rate, Concurrency: 20, Prefetch: 200})
				q.WaitEmpty(time.Duration(float64(n)/rate*float64(time.Second)) + time.Minute)
				p.Mu.Lock()
				defer p.Mu.Unlock()
				took := p.Starts[n-1].Sub(p.Starts[0]).Seconds()
				if least := (float64(n-1) - 0.01*rate) / rate; took < least-1e-6 || took > 1.1*float64(n)/rate {
					t.Errorf("%d starts took %v s, want %v to %v", n, took, least, 1.1*float64(n)/rate)
				}
				if calls := c.Status().Calls.Receives; rate >= 1 && calls > int64(n)/3+20 {
					t.Errorf("%d receives for %d messages", calls, n)
				}
			})
		})
	}
}

// TestPoolConcurrencyChanges: the concurrency of a busy pool is raised and lowered, and no more
// handlers run; consumers without a limit of their own follow.
func TestPoolConcurrencyChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, s := kit.PoolOf(t, 2), kit.NewStarts()
		for i := range 3 {
			q := reprisetest.NewQueue(t, nil)
			q.Send(kit.Numbered(3000)...)
			q.In(pool, reprise.Share{}).Consume(s.Handler(fmt.Sprint(i), time.Second), reprise.Config{StopBudget: time.Second})
		}
		limited := reprisetest.NewQueue(t, nil)
		limited.Send(kit.Numbered(3000)...)
		c := limited.In(pool, reprise.Share{}).Consume(s.Handler("limited", time.Second), reprise.Config{Concurrency: 3, StopBudget: time.Second})
		for _, n := range []int{2, 20, 1, 7, 100, 5} {
			if err := pool.SetConcurrency(n); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10300 * time.Millisecond) // handlers end at whole seconds from here
			if p := pool.Status(); p.Handlers != n || p.Concurrency != n {
				t.Errorf("%d handlers, a concurrency of %d: want %d", p.Handlers, p.Concurrency, n)
			}
			if p := pool.Status(); p.Queues[0].Status.Concurrency != n || p.Queues[3].Status.Concurrency != 3 {
				t.Errorf("consumers' own: %d and %d, want %d and 3", p.Queues[0].Status.Concurrency, p.Queues[3].Status.Concurrency, n)
			}
		}
		if s.Peak("limited") != 3 {
			t.Errorf("%d ran of the queue with a limit of 3", s.Peak("limited"))
		}
		if err := c.SetConcurrency(1); err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{0, -1, 100_001} {
			if err := pool.SetConcurrency(n); err == nil || !strings.Contains(err.Error(), "1 to 100000") {
				t.Errorf("a concurrency of %d: %v", n, err)
			}
		}
		if _, err := reprise.NewPool(reprise.PoolConfig{Concurrency: -1}); err == nil || !strings.Contains(err.Error(), "a pool's concurrency of -1") {
			t.Errorf("a pool of -1: %v", err)
		}
	})
}
