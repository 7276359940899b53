package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/bench/canned"
)

// tuned are the options of a fast client.
var tuned = reprise.Tuned(reprise.Transport{SkipChecksums: true})

// start starts a contender that consumes q through client.
type start func(name string, q *canned.Queue, client reprise.Client) (*contender, error)

func rawLoops(k int) start {
	return func(name string, q *canned.Queue, client reprise.Client) (*contender, error) {
		return startRawLoop(name, q, client, canned.URL, k, inTurn), nil
	}
}

func consumer(concurrency int) start {
	return func(name string, q *canned.Queue, client reprise.Client) (*contender, error) {
		return startConsumer(name, q, client, canned.URL, concurrency)
	}
}

// overSDK compares the consumer and the raw loop over the SDK, with canned
// replies below net/http.
func overSDK(w io.Writer, s scale) error {
	var contenders []*contender
	for _, c := range []struct {
		name  string
		opts  []func(*sqs.Options)
		start start
	}{
		{"raw loop, 4 pollers, tuned", []func(*sqs.Options){tuned}, rawLoops(4)},
		{"consumer, concurrency 10, tuned", []func(*sqs.Options){tuned}, consumer(10)},
		{"consumer, concurrency 100, tuned", []func(*sqs.Options){tuned}, consumer(100)},
		{"raw loop, 4 pollers", nil, rawLoops(4)},
		{"consumer, concurrency 10", nil, consumer(10)},
	} {
		q := canned.New()
		started, err := c.start(c.name, q, q.SDK(c.opts...))
		if err != nil {
			return err
		}
		contenders = append(contenders, started)
	}
	return compare(w, "Over the SDK, replies canned below net/http (aim: 1.1 of the tuned raw loop)", contenders, s.rounds, s.sdk)
}

// overTCP compares them over loopback. The server is in this process, so its
// processor time is in every row. Untuned clients are left out: they lose replies, and with them
// messages that this queue does not return again.
func overTCP(w io.Writer, s scale) error {
	var contenders []*contender
	var servers []*server
	for _, c := range []struct {
		name  string
		start start
	}{
		{"raw loop, 4 pollers", rawLoops(4)},
		{"consumer, concurrency 10", consumer(10)},
		{"consumer, concurrency 100", consumer(100)},
	} {
		q := canned.New()
		server, err := serve(q)
		if err != nil {
			return err
		}
		defer server.Close()
		started, err := c.start(c.name, q, canned.Client(server.url, tuned))
		if err != nil {
			return err
		}
		contenders, servers = append(contenders, started), append(servers, server)
	}
	if err := compare(w, "Over TCP on loopback, tuned, the server's work included", contenders, s.rounds, s.sdk); err != nil {
		return err
	}
	for i, c := range contenders {
		fmt.Fprintf(w, "%s: %d connections for %d calls\n", c.name, servers[i].connections.Load(), c.queue.Calls())
	}
	_, err := fmt.Fprintln(w)
	return err
}

// inProcess shows the consumer's own speed: no HTTP, no JSON, no SDK.
func inProcess(w io.Writer, s scale) error {
	q := canned.New()
	contenders := []*contender{startRawLoop("raw loop, 4 pollers", q, q.Direct(), canned.URL, 4, inTurn)}
	consumers, err := startConsumers([]int{1, 10, 100}, (*canned.Queue).Direct)
	if err != nil {
		return err
	}
	contenders = append(contenders, consumers...)
	return compare(w, "In the process, without HTTP (aim: 2.5 M messages/s)", contenders, s.rounds, s.direct)
}

// callsEach shows the billed calls per message while there is a backlog.
func callsEach(w io.Writer, s scale) error {
	contenders, err := startConsumers([]int{1, 4, 10, 100}, func(q *canned.Queue) reprise.Client { return q.SDK() })
	if err != nil {
		return err
	}
	return compare(w, "Calls per message (aims: 0.35, 0.25, 0.21, 0.21)", contenders, 1, s.sdk)
}

// startConsumers starts a consumer of each concurrency, each with its own queue.
func startConsumers(concurrencies []int, client func(*canned.Queue) reprise.Client) ([]*contender, error) {
	var consumers []*contender
	for _, n := range concurrencies {
		q := canned.New()
		c, err := startConsumer(fmt.Sprintf("consumer, concurrency %d", n), q, client(q), canned.URL, n)
		if err != nil {
			return nil, err
		}
		consumers = append(consumers, c)
	}
	return consumers, nil
}

// compare measures and stops the contenders, and prints a table. The others are compared with the
// first one.
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
