package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go/middleware"
)

// gate is the first middleware of a client. It passes receives to the server only while there are
// messages to receive, so that a consumer neither starts before the measurement nor waits for the
// server after it; it answers other receives like an empty long poll. It also counts calls; a call
// that the SDK retries counts once.
type gate struct {
	calls atomic.Int64

	mu      sync.Mutex
	allowed int           // messages that may be received
	opened  chan struct{} // closed when more are allowed
	closed  bool
	left    int           // to be deleted before done gets a signal
	done    chan struct{} // capacity 1
}

func newGate() *gate { return &gate{opened: make(chan struct{}), done: make(chan struct{}, 1)} }

// longPoll is how long a receive is held if there are no messages.
const longPoll = 20 * time.Second

// install puts the gate into the options of a new client.
func (g *gate) install(o *sqs.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("gate", g.call), middleware.Before)
	})
}

// call passes on a call, or holds it.
func (g *gate) call(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	receive, ok := in.Parameters.(*sqs.ReceiveMessageInput)
	if !ok {
		g.calls.Add(1)
		out, metadata, err := next.HandleInitialize(ctx, in)
		if err == nil {
			g.settled(out.Result)
		}
		return out, metadata, err
	}
	n, err := g.reserve(ctx, max(1, int(receive.MaxNumberOfMessages)))
	if err != nil || n == 0 {
		return middleware.InitializeOutput{Result: &sqs.ReceiveMessageOutput{}}, middleware.Metadata{}, err
	}
	g.calls.Add(1)
	out, metadata, err := next.HandleInitialize(ctx, in)
	got := 0
	if received, ok := out.Result.(*sqs.ReceiveMessageOutput); ok && err == nil {
		got = len(received.Messages)
	}
	g.allow(n - got) // negative if it got messages that another receive has reserved
	return out, metadata, err
}

// reserve waits until messages may be received and reserves up to most of them.
// It returns zero if the poll has ended.
func (g *gate) reserve(ctx context.Context, most int) (int, error) {
	var end <-chan time.Time
	for {
		g.mu.Lock()
		if n := min(most, g.allowed); n > 0 {
			g.allowed -= n
			g.mu.Unlock()
			return n, nil
		}
		opened, closed := g.opened, g.closed
		g.mu.Unlock()
		if closed {
			return 0, ctx.Err()
		}
		if end == nil {
			end = time.After(longPoll)
		}
		select {
		case <-opened:
		case <-end:
			return 0, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// allow lets n more messages be received.
func (g *gate) allow(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.allowed += n; n > 0 {
		close(g.opened)
		g.opened = make(chan struct{})
	}
}

// close ends the receives that are held, and every later one.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	close(g.opened)
	g.opened = make(chan struct{})
}

// settled counts the deletes that a reply confirms.
func (g *gate) settled(reply any) {
	n := 0
	switch reply := reply.(type) {
	case *sqs.DeleteMessageOutput:
		n = 1
	case *sqs.DeleteMessageBatchOutput:
		n = len(reply.Successful)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.left > 0 && n > 0 {
		if g.left -= n; g.left <= 0 {
			g.left = 0
			g.done <- struct{}{}
		}
	}
}

// work lets n messages through and waits until n are deleted.
func (g *gate) work(n int, patience time.Duration) error {
	g.mu.Lock()
	g.left = n
	g.mu.Unlock()
	g.allow(n)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-g.done:
		return nil
	case <-timer.C:
		g.mu.Lock()
		defer g.mu.Unlock()
		return fmt.Errorf("of %d messages %d are not deleted after %v", n, g.left, patience)
	}
}
