package kit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// ErrUnavailable is a handler's error.
var ErrUnavailable = errors.New("the warehouse is closed")

// Journal records the messages of a handler. It is safe for concurrent use.
type Journal struct {
	mu   sync.Mutex
	runs []Run
}

// Run is one run of a handler.
type Run struct {
	Body     string
	Attempt  int
	Started  time.Time
	Receives int
}

// Add records a run that begins now.
func (j *Journal) Add(m *reprise.Message) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.runs = append(j.runs, Run{m.Body, m.Attempt, time.Now(), m.Receives})
}

// All returns the runs in the order of their starts.
func (j *Journal) All() []Run {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.runs)
}

// Of returns the runs of messages with that body.
func (j *Journal) Of(body string) []Run {
	return slices.DeleteFunc(j.All(), func(r Run) bool { return r.Body != body })
}

// Bodies returns the bodies in the order of their runs.
func (j *Journal) Bodies() (bodies []string) {
	for _, r := range j.All() {
		bodies = append(bodies, r.Body)
	}
	return bodies
}

// Handler records each run and calls f for the result.
func (j *Journal) Handler(f func(ctx context.Context, m *reprise.Message) error) reprise.Handler {
	return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		j.Add(m)
		return f(ctx, m)
	})
}

// Succeed is a handler that always succeeds.
func Succeed(context.Context, *reprise.Message) error { return nil }

// Groups sends n messages to each of the groups a, b, ... in turn: a1, b1, a2 ...
func Groups(q *reprisetest.Queue, names string, n int) {
	for i := range n {
		for _, g := range strings.Split(names, "") {
			body := fmt.Sprintf("%s%02d", g, i+1)
			q.SendMessage(sqsserver.SendMessageEntry{MessageBody: body, MessageGroupId: g, MessageDeduplicationId: body})
		}
	}
}

// FIFOQueue are the attributes of a FIFO queue.
var FIFOQueue = map[string]string{"FifoQueue": "true"}

// FailFirst fails the first n attempts at the message with this body.
func FailFirst(body string, n int) func(context.Context, *reprise.Message) error {
	return func(_ context.Context, m *reprise.Message) error {
		if m.Body == body && m.Attempt <= n {
			return ErrUnavailable
		}
		return nil
	}
}

// UntilStopped is a handler that is interrupted by a stop.
func UntilStopped(ctx context.Context, _ *reprise.Message) error {
	<-ctx.Done()
	return ctx.Err()
}

// Tenant returns the key of a message: the part of its body before the colon.
func Tenant(m *reprise.Message) string {
	name, _, _ := strings.Cut(m.Body, ":")
	return name
}

// EveryMinute retries after exactly a minute, up to the given number of attempts.
func EveryMinute(attempts int) retry.Policy {
	return retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None, MaxAttempts: attempts, MaxAge: -1}
}

// Numbered returns the bodies 1 to n.
func Numbered(n int) []string {
	bodies := make([]string, n)
	for i := range bodies {
		bodies[i] = strconv.Itoa(i + 1)
	}
	return bodies
}

// FailsFirst is a handler that fails the first attempt of every message but "one more" with err.
func FailsFirst(err error) reprise.Handler {
	return reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
		if m.Attempt == 1 && m.Body != "one more" {
			return err
		}
		return nil
	})
}
