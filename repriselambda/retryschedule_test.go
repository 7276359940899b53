package repriselambda_test

import (
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/simulate"
)

// failuresOf runs so many events of a function that always fails until they are given
// up, and returns the times of each one's failures, the first included.
func failuresOf(t *testing.T, events int, cfg repriselambda.RetryConfig) [][]time.Time {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	var mu sync.Mutex
	failures := make([][]time.Time, events)
	s := newSystem(t, func(c call) *failed {
		n, err := strconv.Atoi(c.event())
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		failures[n] = append(failures[n], time.Now())
		return &failed{"Timeout", "the database does not answer"}
	}, cfg)
	for n := range events {
		s.lambda.invoke(strconv.Itoa(n))
	}
	s.runWide(400 * 24 * time.Hour)
	if letters, _ := s.letters(); len(letters) != events || len(s.queue.Messages()) > 0 {
		t.Errorf("%d of %d events are dead letters, %d messages are left", len(letters), events, len(s.queue.Messages()))
	}
	return failures
}

// TestDayOfRetries: the article's schedule, for 60 events that always fail.
// The n-th wait is uniform between 1 s and 2^(n-1) s, at most 12 h, and then up to a
// second more: its mean and its spread are those of the closed form, and it falls into
// each quarter of its range as often. The last attempt falls into the last tenth of
// the 24 hours, spread over it, and is the only one there.
func TestDayOfRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events = 60
		day := 24 * time.Hour
		failures := failuresOf(t, events, repriselambda.RetryConfig{})
		waits := make(map[int][]float64) // in seconds, by the retry's number
		quarters := [4]int{}             // of the last tenth of the day
		for n, times := range failures {
			last, before := times[len(times)-1].Sub(times[0]), times[len(times)-2].Sub(times[0])
			if before >= day-day/10 || last < day-day/10 || last > day+time.Second {
				t.Fatalf("the last attempts of event %d are after %v and %v", n, before, last)
			}
			quarters[min(3, 40*(last-(day-day/10))/day)]++
			for i := 1; i < len(times)-1; i++ { // the last wait is cut short
				waits[i] = append(waits[i], times[i].Sub(times[i-1]).Seconds())
			}
		}
		for _, count := range quarters {
			if count < events/12 || count > events/2 {
				t.Errorf("the last attempts of %d events fall into the quarters of the last tenth of the day %v times", events, quarters)
			}
		}
		for n := 1; n <= 14; n++ { // which all events reach: their waits are 9 hours at the most
			if len(waits[n]) != events {
				t.Fatalf("%d of %d events have had retry %d", len(waits[n]), events, n)
			}
			low, high := 1.0, math.Pow(2, float64(n-1))
			checkUniform(t, n, waits[n], low, high)
		}
	})
}

// TestSimulationOfRetries holds the simulated system of package simulate against the retry handler itself:
// under the default policy, events that always fail have as many runs in each part of the day, to five
// standard errors, and the last attempt in the last tenth.
func TestSimulationOfRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events, simulated = 60, 10_000
		r, err := simulate.RunAsyncLambda(t.Context(), simulate.AsyncLambda{Events: simulated, Fails: 1, Takes: simulate.Constant(time.Millisecond), Receive: simulate.Constant(time.Millisecond)})
		if err != nil {
			t.Fatal(err)
		}
		if r.Expired != simulated || r.Last < 23*time.Hour || r.Last > 24*time.Hour+3*time.Second {
			t.Errorf("%d of %d simulated events are given up for their age, and the last run begins after %v", r.Expired, simulated, r.Last)
		}
		failures := failuresOf(t, events, repriselambda.RetryConfig{})
		parts := []int{0, 1, 10, 60, 600, 24*60 - 144, 24*60 + 1} // in minutes
		for i, from := range parts[:len(parts)-1] {
			to := parts[i+1]
			want := 0.0
			for _, runs := range r.Minutes[from:min(to, len(r.Minutes))] {
				want += float64(runs) / simulated
			}
			sum, squares := 0.0, 0.0
			for _, times := range failures {
				runs := 0.0
				for _, at := range times {
					if after := int(at.Sub(times[0]) / time.Minute); after >= from && after < to {
						runs++
					}
				}
				sum, squares = sum+runs, squares+runs*runs
			}
			mean := sum / events
			deviation := math.Sqrt(max(squares/events-mean*mean, 0.01))
			if tolerance := 5 * deviation / math.Sqrt(events); math.Abs(mean-want) > tolerance {
				t.Errorf("from minute %d to %d an event has %.3f runs on average, and %.3f +- %.3f if simulated", from, to, mean, want, tolerance)
			}
		}
	})
}

// checkUniform holds waits against the uniform distribution on [low, high], rounded
// up by less than a second. Its bounds are five standard errors.
func checkUniform(t *testing.T, n int, waits []float64, low, high float64) {
	t.Helper()
	sum, count := 0.0, float64(len(waits))
	quarters := [4]float64{}
	for _, w := range waits {
		if w < low || w > high+1.001 {
			t.Errorf("retry %d comes after %v s, and should between %v and %v", n, w, low, high)
		}
		sum += w
		quarters[min(3, max(0, int(4*(w-low)/(high-low+1))))]++
	}
	span := high - low
	mean := (low + high) / 2
	if got, tolerance := sum/count, 5*(span/math.Sqrt(12))/math.Sqrt(count); got < mean-tolerance || got > mean+1+tolerance {
		t.Errorf("retry %d comes after %v s on average, want %v +- %v, and up to a second more", n, got, mean, tolerance)
	}
	if span < 100 {
		return // the second by which waits are rounded up shows
	}
	for q, got := range quarters {
		if want, tolerance := count/4, 5*math.Sqrt(count*3/16)+count/span; math.Abs(got-want) > tolerance {
			t.Errorf("retry %d falls into quarter %d of its range %v times, want %v +- %v", n, q+1, got, want, tolerance)
		}
	}
}

// TestMonthOfRetries: beyond the 14 days for which a queue keeps messages, in both
// modes. With full jitter below 12 hours there is a retry every six hours on
// average.
func TestMonthOfRetries(t *testing.T) {
	month := 30 * 24 * time.Hour
	for _, mode := range []repriselambda.Mode{repriselambda.ModeEnvelope, repriselambda.ModeDirect} {
		t.Run(mode.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const events = 4
				failures := failuresOf(t, events, repriselambda.RetryConfig{
					Mode: mode, Timeout: targetTimeout,
					Retry: retry.Policy{Backoff: retry.Constant(12 * time.Hour), MaxAttempts: -1, MaxAge: month},
				})
				runs := 0
				for n, times := range failures {
					runs += len(times) - 1
					if last := times[len(times)-1].Sub(times[0]); last < month-12*time.Hour || last > month+3*time.Second {
						t.Errorf("the last attempt of event %d is after %v", n, last)
					}
				}
				// The number of renewals of a uniform wait of mean m and variance v in a time T
				// is T/m + (v/m^2 - 1)/2 on average, with a variance of v T/m^3.
				m, v, T := 6.0, 12.0, month.Hours()
				want := events * (T/m + (v/(m*m)-1)/2 + 1) // and the one at the end
				tolerance := 5 * math.Sqrt(events*v*T/(m*m*m))
				if math.Abs(float64(runs)-want) > tolerance {
					t.Errorf("%d retries of %d events in a month, want %.0f +- %.0f", runs, events, want, tolerance)
				}
			})
		})
	}
}

// TestLongWaits: one wait may be longer than SQS hides a message, and than the queue
// keeps it; and the age a year.
func TestLongWaits(t *testing.T) {
	for _, mode := range []repriselambda.Mode{repriselambda.ModeEnvelope, repriselambda.ModeDirect} {
		for _, wait := range []time.Duration{13 * time.Hour, 20 * 24 * time.Hour, 60 * 24 * time.Hour, 182 * 24 * time.Hour} {
			t.Run(fmt.Sprintf("%v/%v", mode, wait), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newSystem(t, fails(2), repriselambda.RetryConfig{
						Mode: mode, Timeout: targetTimeout, Logger: slog.New(slog.DiscardHandler),
						Retry: retry.Policy{Backoff: retry.Constant(wait), Jitter: retry.None, MaxAge: -1},
					})
					began := time.Now()
					s.lambda.invoke(order)
					s.run(2 * 366 * 24 * time.Hour)
					made := s.lambda.made()
					if len(made) != 2 || len(s.queue.Messages())+len(s.dead.Messages()) > 0 {
						t.Fatalf("%d retries, want 2; %d messages and %d dead letters are left", len(made), len(s.queue.Messages()), len(s.dead.Messages()))
					}
					for i, c := range made {
						if late := c.At.Sub(began) - time.Duration(i+1)*wait; late < 0 || late > 10*time.Second {
							t.Errorf("retry %d is %v late", i+1, late)
						}
					}
				})
			})
		}
	}
}

// TestShortWaitsInDirectMode keep the jitter's spread: copies wait whole seconds in
// the queue, and what is left of their waits in the retry handler. None is early.
func TestShortWaitsInDirectMode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const events = 96
		p := repriselambda.DefaultRetry()
		p.MaxAttempts = 5
		failures := failuresOf(t, events, repriselambda.RetryConfig{Mode: repriselambda.ModeDirect, Timeout: targetTimeout, Concurrency: 100, Retry: p})
		for retry := 2; retry <= 4; retry++ {
			var quarters [4]int
			for n, times := range failures {
				least, longest := p.Bounds(retry)
				wait, drawn := times[retry].Sub(times[retry-1]), p.Wait(fmt.Sprintf("request-%d", n+1), retry)
				if late := wait - drawn; late < 0 || late > 300*time.Millisecond { // which settlements may wait for each other
					t.Errorf("retry %d of event %d comes after %v, %v after its wait of %v", retry, n, wait, late, drawn)
				}
				quarters[min(3, max(0, 4*(wait-least)/(longest-least)))]++
			}
			for _, count := range quarters {
				if count < events/8 {
					t.Errorf("retry %d falls into the quarters of its range %v times", retry, quarters)
				}
			}
		}
	})
}
