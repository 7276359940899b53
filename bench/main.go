// Command bench measures the consumer beside what it is built on, in one run and
// in turns: a machine's own speed and its neighbours cancel out of the ratios,
// which are what to read. It is never released.
//
//	go run ./bench          # some minutes
//	go run ./bench -short   # seconds: that everything runs, not what it costs
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/bench/canned"
)

func main() {
	short := flag.Bool("short", false, "run every comparison briefly")
	rounds := flag.Int("rounds", 9, "how many times each contender is measured")
	flag.Parse()
	s := scale{rounds: *rounds, sdk: 40_000, direct: 1_000_000}
	if *short {
		s = scale{rounds: 1, sdk: 1_000, direct: 10_000}
	}
	if err := run(os.Stdout, s); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// scale is how much to measure: messages for each sample, through the SDK and
// without it.
type scale struct{ rounds, sdk, direct int }

func run(w io.Writer, s scale) error {
	for _, comparison := range []func(io.Writer, scale) error{overSDK, inProcess, callsEach} {
		if err := comparison(w, s); err != nil {
			return err
		}
	}
	return nil
}

// overSDK compares the consumer and the raw loop over the SDK, with canned
// replies below net/http.
func overSDK(w io.Writer, s scale) error {
	tuned := reprise.Tuned(reprise.Transport{SkipChecksums: true})
	raw := func(name string, q *canned.Queue, client reprise.Client) (*contender, error) {
		return startRawLoop(name, q, client, canned.URL, 4), nil
	}
	consumer := func(concurrency int) func(string, *canned.Queue, reprise.Client) (*contender, error) {
		return func(name string, q *canned.Queue, client reprise.Client) (*contender, error) {
			return startConsumer(name, q, client, canned.URL, concurrency)
		}
	}
	var contenders []*contender
	for _, c := range []struct {
		name  string
		tuned bool
		start func(string, *canned.Queue, reprise.Client) (*contender, error)
	}{
		{"raw loop, 4 pollers, tuned", true, raw},
		{"consumer, concurrency 10, tuned", true, consumer(10)},
		{"consumer, concurrency 100, tuned", true, consumer(100)},
		{"raw loop, 4 pollers", false, raw},
		{"consumer, concurrency 10", false, consumer(10)},
	} {
		q := canned.New()
		client := q.SDK()
		if c.tuned {
			client = q.SDK(tuned)
		}
		started, err := c.start(c.name, q, client)
		if err != nil {
			return err
		}
		contenders = append(contenders, started)
	}
	title := "Over the SDK, replies canned below net/http (aim: 1.1 of the tuned raw loop)"
	return compare(w, title, contenders, s.rounds, s.sdk)
}

// inProcess shows the consumer's own speed: no HTTP, no JSON, no SDK.
func inProcess(w io.Writer, s scale) error {
	var contenders []*contender
	q := canned.New()
	contenders = append(contenders, startRawLoop("raw loop, 4 pollers", q, q.Direct(), canned.URL, 4))
	for _, concurrency := range []int{1, 10, 100} {
		q := canned.New()
		c, err := startConsumer(fmt.Sprintf("consumer, concurrency %d", concurrency), q, q.Direct(), canned.URL, concurrency)
		if err != nil {
			return err
		}
		contenders = append(contenders, c)
	}
	return compare(w, "In the process, without HTTP (aim: 2.5 M messages/s)", contenders, s.rounds, s.direct)
}

// callsEach shows what a message costs on the bill while a backlog lasts.
func callsEach(w io.Writer, s scale) error {
	var contenders []*contender
	for _, concurrency := range []int{1, 4, 10, 100} {
		q := canned.New()
		c, err := startConsumer(fmt.Sprintf("consumer, concurrency %d", concurrency), q, q.SDK(), canned.URL, concurrency)
		if err != nil {
			return err
		}
		contenders = append(contenders, c)
	}
	return compare(w, "Calls per message (aims: 0.35, 0.25, 0.21, 0.21)", contenders, 1, s.sdk)
}

// compare prints a table of the contenders, which it measures and ends. The
// first is what the others are compared to.
func compare(w io.Writer, title string, contenders []*contender, rounds, n int) error {
	samples := interleave(contenders, rounds, n)
	fmt.Fprintf(w, "%s\nmedian of %d rounds of %d messages\n\n", title, rounds, n)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tmessages/s\tCPU ns each\tCPU ratio\tallocs each\tcalls each\t")
	for i, c := range contenders {
		of := samples[i]
		fmt.Fprintf(t, "%s\t%.0f\t%.0f\t%.2f\t%.1f\t%.3f\t\n", c.name,
			median(of, sample.rate), median(of, sample.cpuEach), medianRatio(of, samples[0], sample.cpuEach),
			median(of, sample.allocs), median(of, sample.callsEach))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	var problems []error
	for _, c := range contenders {
		problems = append(problems, c.stop())
	}
	return errors.Join(problems...)
}
