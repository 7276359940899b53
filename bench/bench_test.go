package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/bench/canned"
)

// BenchmarkRawLoop is the lower bound of the cost: see startRawLoop.
func BenchmarkRawLoop(b *testing.B) {
	for _, way := range ways() {
		b.Run(way.name, func(b *testing.B) {
			q := canned.New()
			work(b, startRawLoop(way.name, q, way.client(q), canned.URL, 4, inTurn))
		})
	}
}

// BenchmarkConsumer measures the consumer with a trivial handler.
func BenchmarkConsumer(b *testing.B) {
	for _, way := range ways() {
		for _, concurrency := range []int{1, 4, 10, 100} {
			b.Run(fmt.Sprintf("%s/concurrency=%d", way.name, concurrency), func(b *testing.B) {
				q := canned.New()
				c, err := startConsumer(way.name, q, way.client(q), canned.URL, concurrency)
				if err != nil {
					b.Fatal(err)
				}
				work(b, c)
			})
		}
	}
}

// way is one way from a client to a canned queue.
type way struct {
	name   string
	client func(*canned.Queue) reprise.Client
}

func ways() []way {
	return []way{
		{"direct", (*canned.Queue).Direct},
		{"sdk", func(q *canned.Queue) reprise.Client { return q.SDK() }},
		{"tuned", func(q *canned.Queue) reprise.Client {
			return q.SDK(tuned)
		}},
	}
}

// work has c process a thousand messages at a time, and ends it.
func work(b *testing.B, c *contender) {
	const messages = 1000
	c.queue.Work(messages)
	b.ReportAllocs()
	calls, cpu := c.queue.Calls(), cpuTime()
	for b.Loop() {
		c.queue.Work(messages)
	}
	done := float64(b.N) * messages
	b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/done, "cpu-ns/message")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/done, "ns/message")
	b.ReportMetric(float64(c.queue.Calls()-calls)/done, "calls/message")
	if err := c.stop(); err != nil {
		b.Fatal(err)
	}
}

// Every comparison runs to its end, and its table has a row for each contender.
func TestComparisonsRun(t *testing.T) {
	var out strings.Builder
	if err := run(&out, scale{rounds: 2, sdk: 100, direct: 1000}, "consumer"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"raw loop, 4 pollers, tuned", "consumer, concurrency 100, tuned", "consumer, concurrency 4 "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no row for %q in\n%s", want, out.String())
		}
	}
}
