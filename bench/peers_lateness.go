package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
)

// retryLateness measures how late retries run, with a server that has no other work. Messages are
// sent over a time span; each fails once and asks for its own wait. Send times and waits are drawn
// from a seed.
func retryLateness(w io.Writer, s scale, server *repriseServer) error {
	url, client, err := server.create("lateness")
	if err != nil {
		return err
	}
	l := newLateness(client, url, s.peers.retries)
	if err := l.run(s.peers.span); err != nil {
		return err
	}
	return l.print(w, s.peers.span)
}

// lateness is the client and the handler of a consumer. They record when each message was due and
// when it was attempted again. The body of a message is its number.
type lateness struct {
	*sqs.Client
	url string

	mu      sync.Mutex
	numbers map[string]int // of messages, by receipt handle
	retries []lateRetry
	missing int
	all     chan struct{} // closed when all messages were attempted a second time
}

// lateRetry is the record of one message.
type lateRetry struct {
	at      time.Duration // when it is sent, from the beginning
	wait    time.Duration // that its first attempt asks for
	due     time.Time     // the end of that wait
	visible time.Time     // the end of the whole seconds of the request, from the start of the call
	came    time.Time
}

func newLateness(client *sqs.Client, url string, n int) *lateness {
	return &lateness{
		Client: client, url: url,
		numbers: map[string]int{}, retries: make([]lateRetry, n), missing: n, all: make(chan struct{}),
	}
}

const latenessSeed = 4

// run sends the messages over span and waits until each was attempted twice.
func (l *lateness) run(span time.Duration) error {
	random := rand.New(rand.NewPCG(latenessSeed, 0))
	const least = time.Second
	most := least + span*3/20
	for i := range l.retries {
		l.retries[i].at = time.Duration(random.Int64N(int64(span)))
		l.retries[i].wait = least + time.Duration(random.Int64N(int64(most-least)))
	}
	slices.SortFunc(l.retries, func(a, b lateRetry) int { return int(a.at - b.at) })

	consumer, err := reprise.New(l, l.url, l, reprise.Config{
		StopBudget: time.Second, // only a long poll is left then
		Logger:     slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), span+most+time.Minute)
	defer cancel()
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- consumer.Run(running) }()

	err = l.send(ctx)
	if err == nil {
		select {
		case <-l.all:
		case <-ctx.Done():
			l.mu.Lock()
			err = fmt.Errorf("%d of %d messages were not attempted a second time within %v", l.missing, len(l.retries), span+most+time.Minute)
			l.mu.Unlock()
		}
	}
	stop()
	return errors.Join(err, <-ended)
}

// send sends every message at its time.
func (l *lateness) send(ctx context.Context) error {
	began := time.Now()
	for i := range l.retries {
		time.Sleep(time.Until(began.Add(l.retries[i].at)))
		body := strconv.Itoa(i)
		if _, err := l.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &l.url, MessageBody: &body}); err != nil {
			return err
		}
	}
	return nil
}

var errFirst = errors.New("every first attempt fails")

// Handle fails the first attempt at a message and records the time of the second.
func (l *lateness) Handle(_ context.Context, m *reprise.Message) error {
	now := time.Now()
	n, err := strconv.Atoi(m.Body)
	if err != nil {
		return reprise.Permanent(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := &l.retries[n]
	if r.due.IsZero() {
		r.due = now.Add(r.wait)
		return reprise.RetryAfter(r.wait, errFirst)
	}
	if r.came.IsZero() {
		r.came = now
		if l.missing--; l.missing == 0 {
			close(l.all)
		}
	}
	return nil
}

// ReceiveMessage records which message each receipt handle belongs to.
func (l *lateness) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, opts ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	out, err := l.Client.ReceiveMessage(ctx, in, opts...)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range out.Messages {
		if l.numbers[*m.ReceiptHandle], err = strconv.Atoi(*m.Body); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ChangeMessageVisibilityBatch records until when messages are hidden.
func (l *lateness) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, opts ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	now := time.Now()
	l.mu.Lock()
	for _, e := range in.Entries {
		l.retries[l.numbers[*e.ReceiptHandle]].visible = now.Add(time.Duration(e.VisibilityTimeout) * time.Second)
	}
	l.mu.Unlock()
	return l.Client.ChangeMessageVisibilityBatch(ctx, in, opts...)
}

// print prints how late the retries were. An early retry is an error.
func (l *lateness) print(w io.Writer, span time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var late, rounded, beyond []time.Duration
	early := 0
	for _, r := range l.retries {
		late = append(late, r.came.Sub(r.due))
		rounded = append(rounded, r.visible.Sub(r.due))
		beyond = append(beyond, r.came.Sub(r.visible))
		if r.came.Before(r.due) {
			early++
		}
	}
	fmt.Fprintf(w, "Lateness of %d retries of messages sent over %v, on reprise serve --memory, seed %d\n\n", len(l.retries), span, latenessSeed)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tp50\tp99\tmost\t")
	for _, row := range []struct {
		name string
		of   []time.Duration
	}{
		{"attempted, after it was due", late},
		{"of which SQS's whole seconds", rounded},
		{"and beyond them (aim: p99 at most 50ms)", beyond},
	} {
		fmt.Fprintf(t, "%s\t%v\t%v\t%v\t\n", row.name, percentile(row.of, 50), percentile(row.of, 99), percentile(row.of, 100))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "early: %d\n\n", early)
	if early > 0 {
		return fmt.Errorf("%d of %d retries came before they were due", early, len(l.retries))
	}
	return nil
}

// percentile returns the least value that p per cent of all do not exceed, in tenths
// of milliseconds. It sorts the values.
func percentile(values []time.Duration, p int) time.Duration {
	slices.Sort(values)
	return values[max(0, (len(values)*p+99)/100-1)].Round(100 * time.Microsecond)
}
