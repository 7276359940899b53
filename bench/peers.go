package main

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/bench/canned"
)

// peerScale sets how much the comparisons with other consumers measure.
type peerScale struct {
	canned, served int // messages for each sample, from canned replies and from a server

	retries int // whose lateness is measured
	span    time.Duration

	leased int // messages held at once
	lease  time.Duration
	watch  time.Duration // the duration of that
}

var (
	wholePeers = peerScale{
		canned: 40_000, served: 10_000,
		retries: 10_000, span: time.Minute,
		leased: 100_000, lease: 10 * time.Second, watch: 90 * time.Second,
	}
	shortPeers = peerScale{
		canned: 500, served: 200,
		retries: 100, span: time.Second,
		leased: 1_000, lease: 2 * time.Second, watch: 3 * time.Second,
	}
)

// site is the source of a consumer's messages: a queue and the constructor of its client.
type site struct {
	workload
	name, url string
	client    func(...func(*sqs.Options)) *sqs.Client
	failed    func() error // returns why its messages could not be handled
}

// peer is a way to consume a queue, with a trivial handler.
type peer struct {
	name  string
	opts  []func(*sqs.Options) // for its client
	start func(name string, at site, client *sqs.Client) (*contender, error)
}

const (
	rawTuned      = "raw loop, 4 pollers, tuned"
	rawPlain      = "raw loop, 4 pollers"
	rawAtOnce     = "raw loop, 4 pollers, a goroutine a message, tuned"
	consumerTuned = "consumer, concurrency 100, tuned"
	consumerPlain = "consumer, concurrency 100"
)

// peers returns all consumers that are compared. Each is measured as its documentation shows it, and
// with our client, to separate the gain of the client from the gain of the consumer.
func peers() []peer {
	fast := []func(*sqs.Options){tuned}
	gocloud := "gocloud.dev " + version("gocloud.dev") + ", 16 receivers"
	watermill := "watermill-aws " + version("github.com/ThreeDotsLabs/watermill-aws") + ", 16 subscriptions"
	patron := "patron " + version("github.com/beatlabs/patron") + ", 4 components, ten a receive"
	return []peer{
		{rawTuned, fast, peerRawLoop(inTurn)},
		{rawPlain, nil, peerRawLoop(inTurn)},
		{consumerTuned, fast, peerConsumer(100)},
		{consumerPlain, nil, peerConsumer(100)},
		{"consumer, concurrency 10, tuned", fast, peerConsumer(10)},
		{gocloud, nil, startGocloud(false)},
		{gocloud + ", raw bodies", nil, startGocloud(true)},
		{gocloud + ", raw bodies, tuned", fast, startGocloud(true)},
		{watermill, nil, startWatermill(1)},
		{watermill + ", ten a receive", nil, startWatermill(10)},
		{watermill + ", ten a receive, tuned", fast, startWatermill(10)},
		{patron, nil, startPatron},
		{patron + ", tuned", fast, startPatron},
		{rawAtOnce, fast, peerRawLoop(atOnce)},
	}
}

// version returns the version of a module that this program is built with.
func version(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(version unknown)"
	}
	for _, m := range info.Deps {
		if m.Path == module {
			return m.Version
		}
	}
	return "(version unknown)"
}

func peerRawLoop(handled func([]types.Message)) func(string, site, *sqs.Client) (*contender, error) {
	return func(name string, at site, client *sqs.Client) (*contender, error) {
		return startRawLoop(name, at.workload, client, at.url, 4, handled), nil
	}
}

func peerConsumer(concurrency int) func(string, site, *sqs.Client) (*contender, error) {
	return func(name string, at site, client *sqs.Client) (*contender, error) {
		return startConsumer(name, at.workload, client, at.url, concurrency)
	}
}

// peersCanned compares all consumers on replies canned below net/http.
func peersCanned(w io.Writer, s scale) error {
	at := func(int) (site, error) {
		q := canned.New()
		return site{q, canned.Name, canned.URL, q.SDK, func() error { return nil }}, nil
	}
	return comparePeers(w, "Beside other consumers, replies canned below net/http", at, s.rounds, s.peers.canned)
}

// peersServed compares all consumers on a server in its own process, whose work is not in the figures.
// Each consumer has its own queue. An untuned client sometimes loses a reply; its messages become
// visible again after the queue's 5 s, which affects the rate of that round, but not the processor
// time.
func peersServed(w io.Writer, s scale, server *repriseServer) error {
	at := func(i int) (site, error) { return server.site(fmt.Sprintf("peer-%d", i)) }
	return comparePeers(w, "Beside other consumers, on reprise serve --memory, the server's work not included", at, s.rounds, s.peers.served)
}

// comparePeers measures all peers, each at its own site, and prints their figures relative to the raw
// loop and to our consumer.
func comparePeers(w io.Writer, title string, at func(i int) (site, error), rounds, n int) error {
	var contenders []*contender
	var sites []site
	for i, p := range peers() {
		where, err := at(i)
		if err != nil {
			return err
		}
		c, err := p.start(p.name, where, where.client(p.opts...))
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		contenders, sites = append(contenders, c), append(sites, where)
	}
	samples := interleave(contenders, rounds, n)
	var problems []error
	for i, c := range contenders {
		problems = append(problems, c.stop())
		if err := sites[i].failed(); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", c.name, err)) // a peer without figures gets no row
		}
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}

	named := map[string][]sample{}
	for i, c := range contenders {
		named[c.name] = samples[i]
	}
	fmt.Fprintf(w, "%s\nmedian of %d rounds of %d messages\n\n", title, rounds, n)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tmessages/s\tCPU µs each\tof the tuned raw loop\tof the tuned consumer\tallocs each\tcalls each\t")
	for _, c := range contenders {
		of := named[c.name]
		fmt.Fprintf(t, "%s\t%.0f\t%.1f\t%.2f\t%.2f\t%.1f\t%.3f\t\n", c.name,
			median(of, sample.rate), median(of, sample.cpuEach)/1000,
			medianRatio(of, named[rawTuned], sample.cpuEach), medianRatio(of, named[consumerTuned], sample.cpuEach),
			median(of, sample.allocs), median(of, sample.callsEach))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(w)
	return printAims(w, named)
}

// printAims compares the CPU time of a message with the aims.
func printAims(w io.Writer, named map[string][]sample) error {
	all := peers()
	gocloud, gocloudRaw, watermill, watermillTen := all[5].name, all[6].name, all[8].name, all[9].name
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CPU of\tto that of\tis\taim\t")
	for _, aim := range []struct {
		of, to string
		least  float64 // or at most, if below zero
	}{
		{consumerTuned, rawTuned, -1.1},
		{consumerPlain, rawPlain, -1.1},
		{consumerTuned, rawAtOnce, -1.1},
		{gocloud, consumerTuned, 2.5},
		{gocloud, consumerPlain, 2.5},
		{gocloudRaw, consumerPlain, 2.5},
		{watermill, consumerTuned, 4},
		{watermillTen, consumerTuned, 4},
		{watermillTen, consumerPlain, 4},
	} {
		is := medianRatio(named[aim.of], named[aim.to], sample.cpuEach)
		wanted, met := fmt.Sprintf("at least %.1f", aim.least), is >= aim.least
		if aim.least < 0 {
			wanted, met = fmt.Sprintf("at most %.1f", -aim.least), is <= -aim.least
		}
		verdict := "met"
		if !met {
			verdict = "MISSED"
		}
		fmt.Fprintf(t, "%s\t%s\t%.2f\t%s\t%s\n", aim.of, aim.to, is, wanted, verdict)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}
