package main

import (
	"runtime"
	"slices"
	"time"
)

// sample is the cost of some messages.
type sample struct {
	messages int
	wall     time.Duration
	cpu      time.Duration // of the process, zero where it cannot be read
	mallocs  uint64
	calls    int64
}

// filled is a workload whose messages are made before the measurement.
type filled interface{ Fill(n int) }

// measure makes c handle n messages, and returns their cost.
func measure(c *contender, n int) sample {
	if q, ok := c.queue.(filled); ok {
		q.Fill(n)
	}
	var before, after runtime.MemStats
	runtime.GC() // so that no contender pays for another's garbage
	runtime.ReadMemStats(&before)
	calls, cpu, began := c.queue.Calls(), cpuTime(), time.Now()
	c.queue.Work(n)
	s := sample{messages: n, wall: time.Since(began), cpu: cpuTime() - cpu, calls: c.queue.Calls() - calls}
	runtime.ReadMemStats(&after)
	s.mallocs = after.Mallocs - before.Mallocs
	return s
}

func (s sample) rate() float64      { return float64(s.messages) / s.wall.Seconds() }
func (s sample) cpuEach() float64   { return float64(s.cpu.Nanoseconds()) / float64(s.messages) }
func (s sample) allocs() float64    { return float64(s.mallocs) / float64(s.messages) }
func (s sample) callsEach() float64 { return float64(s.calls) / float64(s.messages) }

// interleave measures all contenders rounds times, one after the other in each round, and in the
// opposite order in every second round, so that disturbances of the machine affect all alike.
// samples[i] are those of contender i, by round.
func interleave(contenders []*contender, rounds, n int) (samples [][]sample) {
	samples = make([][]sample, len(contenders))
	for _, c := range contenders {
		measure(c, n/10) // to fill caches and pools
	}
	for round := range rounds {
		for i := range contenders {
			if round%2 == 1 {
				i = len(contenders) - 1 - i
			}
			samples[i] = append(samples[i], measure(contenders[i], n))
		}
	}
	return samples
}

// median is the median of f over the samples.
func median(samples []sample, f func(sample) float64) float64 {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = f(s)
	}
	return middle(values)
}

// medianRatio is the median of the ratios, round by round, of f for two contenders' samples.
func medianRatio(of, to []sample, f func(sample) float64) float64 {
	values := make([]float64, len(of))
	for i := range of {
		values[i] = f(of[i]) / f(to[i])
	}
	return middle(values)
}

func middle(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
