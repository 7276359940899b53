package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/bench/canned"
	"github.com/reprise-sqs/reprise/bench/process"
)

// onServer runs the comparisons that need a server, one after another.
func onServer(w io.Writer, s scale) error {
	server, err := startServer()
	if err != nil {
		return err
	}
	for _, comparison := range []func(io.Writer, scale, *repriseServer) error{peersServed, retryLateness} {
		if err := comparison(w, s, server); err != nil {
			return errors.Join(err, server.stop())
		}
	}
	return server.stop()
}

// repriseServer is a reprise serve --memory in its own process.
type repriseServer struct {
	process *process.Process
	dir     string // contains the program
}

// startServer builds the program and starts it as a server on loopback.
func startServer() (*repriseServer, error) {
	dir, err := os.MkdirTemp("", "reprise-bench-")
	if err != nil {
		return nil, err
	}
	s := &repriseServer{dir: dir}
	if err := s.start(); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *repriseServer) start() error {
	file, err := process.Build(s.dir, "reprise", "github.com/reprise-sqs/reprise/cmd/reprise")
	if err != nil {
		return err
	}
	addr, err := process.FreeAddr()
	if err != nil {
		return err
	}
	s.process, err = process.Start(addr, exec.Command(file, "serve", "--memory", "--addr", addr))
	return err
}

// stop ends the server.
func (s *repriseServer) stop() error {
	if s.process != nil {
		s.process.Stop()
	}
	return os.RemoveAll(s.dir)
}

// create makes a queue and returns its URL, and a client without a gate.
func (s *repriseServer) create(queue string) (url string, client *sqs.Client, err error) {
	client = canned.Client(s.process.URL(), tuned)
	made, err := client.CreateQueue(context.Background(), &sqs.CreateQueueInput{
		QueueName:  &queue,
		Attributes: map[string]string{"VisibilityTimeout": "5"}, // for clients that request none
	})
	if err != nil {
		return "", nil, err
	}
	return *made.QueueUrl, client, nil
}

// site makes a queue for a consumer whose client has a gate.
func (s *repriseServer) site(queue string) (site, error) {
	url, sender, err := s.create(queue)
	if err != nil {
		return site{}, err
	}
	q := &served{gate: newGate(), sender: sender, url: url}
	client := func(opts ...func(*sqs.Options)) *sqs.Client {
		return canned.Client(s.process.URL(), append(opts, q.gate.install)...)
	}
	return site{q, queue, url, client, func() error { return q.err }}, nil
}

// served is a queue of a server as a workload.
type served struct {
	gate   *gate
	sender *sqs.Client
	url    string
	err    error // of the first Fill or Work that failed
}

// Fill sends n messages.
func (q *served) Fill(n int) {
	const senders = 4
	var sending sync.WaitGroup
	errs := make(chan error, senders)
	for i := range senders {
		sending.Go(func() { errs <- q.send(i, senders, n) })
	}
	sending.Wait()
	close(errs)
	for err := range errs {
		q.fail(err)
	}
}

// send sends its share of n messages in batches of ten: from batch first on, one batch of every ones.
func (q *served) send(first, every, n int) error {
	for at := 10 * first; at < n; at += 10 * every {
		in := &sqs.SendMessageBatchInput{QueueUrl: &q.url}
		for i := at; i < min(at+10, n); i++ {
			id, body := strconv.Itoa(i), canned.Body(i)
			in.Entries = append(in.Entries, types.SendMessageBatchRequestEntry{Id: &id, MessageBody: &body})
		}
		out, err := q.sender.SendMessageBatch(context.Background(), in)
		if err != nil {
			return err
		}
		if len(out.Failed) > 0 {
			return fmt.Errorf("%d of %d messages could not be sent, the first for %s", len(out.Failed), len(in.Entries), *out.Failed[0].Code)
		}
	}
	return nil
}

// Work lets the consumer receive n messages.
func (q *served) Work(n int) {
	if q.err != nil {
		return
	}
	q.fail(q.gate.work(n, 2*time.Minute))
}

// fail remembers the first error.
func (q *served) fail(err error) {
	if q.err == nil {
		q.err = err
	}
}

// Calls returns how many calls the consumer has made.
func (q *served) Calls() int64 { return q.gate.calls.Load() }

// Close ends the receives that the gate holds.
func (q *served) Close() { q.gate.close() }
