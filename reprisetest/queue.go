// Package reprisetest provides an SQS for tests, as net/http/httptest provides HTTP servers. It
// works inside testing/synctest bubbles, where days of retries pass in milliseconds, and outside.
//
// Each [NewQueue] has a server of its own, in the test's process and memory. The
// real AWS SDK reaches it through [Queue.Client], without a network; for tests with tens of
// thousands of calls, [Queue.Direct] works without the SDK.
package reprisetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// Queue is an SQS queue for one test.
type Queue struct {
	tb     testing.TB
	server *sqsserver.Server
	family *family
	info   sqsserver.QueueInfo

	pool  *reprise.Pool // of its consumers; nil: none
	share reprise.Share // of that
}

// family is the state that the queues of one server share.
type family struct {
	queues atomic.Int64 // created so far: numbers their names
	sends  atomic.Int64 // numbers the deduplication ids of Send
}

// NewQueue creates a queue on a server of its own, which is closed when the test
// ends. The attributes are those of the CreateQueue action, such as
// {"VisibilityTimeout": "30"}; a queue with "FifoQueue": "true" is a FIFO queue.
// The test fails at once if they are not valid.
//
// The server's ids and faults are seeded, so that they repeat, and it does not
// enforce the rules of SQS that make a client wait for 60 seconds.
func NewQueue(tb testing.TB, attributes map[string]string) *Queue {
	tb.Helper()
	server := sqsserver.New(sqsserver.Config{
		Seed:       1,
		NoCooldown: true,
		Logger:     slog.New(slog.NewTextHandler(tb.Output(), nil)),
	})
	tb.Cleanup(func() { _ = server.Close() }) // it cannot fail
	return newQueue(tb, server, new(family), attributes)
}

// NewQueueOn creates a queue on the given server, for tests that need other settings, or that share a
// server. It is a queue of its own, also where another test whose name begins alike has made one.
func NewQueueOn(tb testing.TB, server *sqsserver.Server, attributes map[string]string) *Queue {
	tb.Helper()
	return newQueue(tb, server, new(family), attributes)
}

// NewQueue creates another queue on the same server.
func (q *Queue) NewQueue(attributes map[string]string) *Queue {
	q.tb.Helper()
	return newQueue(q.tb, q.server, q.family, attributes)
}

// NewDeadLetterQueue creates a queue on the same server and makes it the
// dead-letter queue of q: messages go there instead of being delivered more than
// maxReceives times.
func (q *Queue) NewDeadLetterQueue(maxReceives int) *Queue {
	q.tb.Helper()
	attributes := map[string]string{"MessageRetentionPeriod": "1209600"}
	if q.info.FIFO {
		attributes["FifoQueue"] = "true"
	}
	dead := q.NewQueue(attributes)
	q.SetAttributes(map[string]string{
		"RedrivePolicy": fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, dead.ARN(), maxReceives),
	})
	return dead
}

func newQueue(tb testing.TB, server *sqsserver.Server, f *family, attributes map[string]string) *Queue {
	tb.Helper()
	creating.Lock()
	defer creating.Unlock()
	name := queueName(tb.Name(), f.queues.Add(1), attributes["FifoQueue"] == "true")
	for hasQueue(server, name) { // CreateQueue would return it
		name = queueName(tb.Name(), f.queues.Add(1), attributes["FifoQueue"] == "true")
	}
	_, err := server.CreateQueue(calm, &sqsserver.CreateQueueInput{QueueName: name, Attributes: attributes})
	if err != nil {
		tb.Fatalf("reprisetest: create a queue with the attributes %v: %v", attributes, err)
	}
	queues := server.Queues()
	i := slices.IndexFunc(queues, func(info sqsserver.QueueInfo) bool { return info.Name == name })
	return &Queue{tb: tb, server: server, family: f, info: queues[i]}
}

// creating is held while a queue gets a name that its server has not: tests that share a server may run in parallel.
var creating sync.Mutex

func hasQueue(server *sqsserver.Server, name string) bool {
	_, err := server.GetQueueUrl(calm, &sqsserver.GetQueueUrlInput{QueueName: name})
	return err == nil
}

// calm is the context of the test's own calls: no fault strikes them.
var calm = sqsserver.WithoutFaults(context.Background())

// queueName makes a name that SQS accepts from the test's name. The name of a server's nth queue
// ends in -n, except for the first.
func queueName(test string, n int64, fifo bool) string {
	suffix := ""
	if n > 1 {
		suffix = "-" + strconv.FormatInt(n, 10)
	}
	if fifo {
		suffix += ".fifo"
	}
	name := strings.Map(func(c rune) rune {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' {
			return c
		}
		return '-'
	}, test)
	const maxLength = 80
	return name[:min(len(name), maxLength-len(suffix))] + suffix
}

// Name returns the queue's name, which is made from the test's name.
func (q *Queue) Name() string { return q.info.Name }

// URL returns the queue's URL, for clients of [Queue.Client] and [Queue.Direct].
func (q *Queue) URL() string { return q.info.URL }

// ARN returns the queue's ARN.
func (q *Queue) ARN() string { return q.info.ARN }

// Server returns the server that has the queue.
func (q *Queue) Server() *sqsserver.Server { return q.server }

// SetAttributes changes attributes of the queue, as SetQueueAttributes does.
func (q *Queue) SetAttributes(attributes map[string]string) {
	q.tb.Helper()
	err := q.server.SetQueueAttributes(calm, &sqsserver.SetQueueAttributesInput{QueueUrl: q.URL(), Attributes: attributes})
	if err != nil {
		q.tb.Fatalf("reprisetest: set the attributes %v: %v", attributes, err)
	}
}

// Send sends a message for each body and returns their ids. On a FIFO queue they belong to one
// group, "group", and none counts as a duplicate.
func (q *Queue) Send(bodies ...string) []string {
	q.tb.Helper()
	ids := make([]string, len(bodies))
	for i, body := range bodies {
		m := sqsserver.SendMessageEntry{MessageBody: body}
		if q.info.FIFO {
			m.MessageGroupId = "group"
			m.MessageDeduplicationId = "send-" + strconv.FormatInt(q.family.sends.Add(1), 10)
		}
		ids[i] = q.SendMessage(m)
	}
	return ids
}

// SendMessage sends a message and returns its id.
func (q *Queue) SendMessage(m sqsserver.SendMessageEntry) string {
	q.tb.Helper()
	out, err := q.server.SendMessage(calm, &sqsserver.SendMessageInput{QueueUrl: q.URL(), SendMessageEntry: m})
	if err != nil {
		q.tb.Fatalf("reprisetest: send %+v: %v", m, err)
	}
	return out.MessageId.String()
}

// Fault sets faults of the queue, in place of those set before; no arguments end them. They do not
// strike the methods of Queue.
func (q *Queue) Fault(faults ...sqsserver.Fault) {
	q.tb.Helper()
	if err := q.server.SetFaults(q.Name(), faults...); err != nil {
		q.tb.Fatalf("reprisetest: %v", err)
	}
}

// Release makes a message in flight visible: its receiver loses the lease without notice.
func (q *Queue) Release(messageID string) {
	q.tb.Helper()
	if err := q.server.Release(q.ARN(), messageID); err != nil {
		q.tb.Fatalf("reprisetest: %v", err)
	}
}

// Messages returns all messages of the queue, visible, delayed and in flight,
// without receiving them.
func (q *Queue) Messages() []sqsserver.MessageInfo {
	q.tb.Helper()
	messages, err := q.server.Messages(q.ARN(), sqsserver.Page{})
	if err != nil {
		q.tb.Fatalf("reprisetest: %v", err)
	}
	return messages
}

// WaitEmpty waits until the queue has no message: none visible, delayed or in flight. If it still
// has messages after limit, the test fails and lists them; in a bubble limit is virtual time. In a
// bubble it returns a nanosecond after the last message was deleted, so that the consumer has
// finished its work on the delete.
func (q *Queue) WaitEmpty(limit time.Duration) {
	q.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err := q.server.WaitEmpty(ctx, q.ARN())
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		q.tb.Fatalf("reprisetest: after %v queue %s still has %s", limit, q.Name(), describe(q.Messages()))
	case err != nil:
		q.tb.Fatalf("reprisetest: %v", err)
	}
	time.Sleep(time.Nanosecond) // a bubble's time advances when all goroutines wait
}

// describe names the first messages and counts the rest.
func describe(messages []sqsserver.MessageInfo) string {
	const named, bodyLength = 5, 40
	var b strings.Builder
	b.WriteString(plural.Of(len(messages), "message"))
	for _, m := range messages[:min(len(messages), named)] {
		body := m.Body
		if len(body) > bodyLength {
			body = strings.ToValidUTF8(body[:bodyLength], "") + "..."
		}
		fmt.Fprintf(&b, "\n\t%s %q: %s, received %s", m.ID, body, m.State, plural.Of(m.Receives, "time"))
		if !m.Due.IsZero() {
			fmt.Fprintf(&b, ", visible again at %v", m.Due)
		}
	}
	if len(messages) > named {
		fmt.Fprintf(&b, "\n\tand %d more", len(messages)-named)
	}
	return b.String()
}
