// Package load sends, receives and deletes messages over HTTP as fast as a server
// answers. It is as small as possible, because it shares the machine with the server: prepared
// requests on raw connections, replies that are searched rather than parsed, no SDK. It counts the
// results in the replies: a message is sent, received or deleted if the server confirms it, and
// anything else is an error.
package load

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// BatchSize is how many messages a call sends, receives or deletes at most.
const BatchSize = 10

// BodySize is the size of a message's body in bytes.
const BodySize = 1 << 10

// Client loads one queue.
type Client struct {
	connections []*connection
	requests    *requests
}

// Open returns a client of the server at addr that uses the given number of connections. They are
// opened when they are needed.
func Open(addr, queueURL string, connections int) *Client {
	c := &Client{requests: newRequests(addr, queueURL)}
	for range connections {
		c.connections = append(c.connections, &connection{addr: addr})
	}
	return c
}

// Close closes the connections.
func (c *Client) Close() {
	for _, conn := range c.connections {
		conn.close()
	}
}

// Report is the duration of an operation and of its calls.
type Report struct {
	Messages int
	Wall     time.Duration
	Calls    []time.Duration // how long each took, in no order
}

// Add adds the report of a later operation.
func (r *Report) Add(other Report) {
	r.Messages += other.Messages
	r.Wall += other.Wall
	r.Calls = append(r.Calls, other.Calls...)
}

// Quantile is the time in which the share q of the calls was answered.
func (r *Report) Quantile(q float64) time.Duration {
	if len(r.Calls) == 0 {
		return 0
	}
	calls := slices.Sorted(slices.Values(r.Calls))
	return calls[min(len(calls)-1, int(q*float64(len(calls))))]
}

// Send sends n messages, a multiple of BatchSize.
func (c *Client) Send(n int) (Report, error) {
	var left atomic.Int64
	left.Store(int64(n))
	return c.all(n, func(conn *connection) error {
		for left.Add(-BatchSize) >= 0 {
			if err := conn.send(c.requests.send); err != nil {
				return err
			}
		}
		return nil
	})
}

// Receive receives n messages, and keeps their receipt handles for Delete.
func (c *Client) Receive(n int) (Report, error) {
	return c.drain(n, func(conn *connection) (int, error) { return conn.receive(c.requests.receive) })
}

// Delete deletes the messages that Receive has received.
func (c *Client) Delete() (Report, error) {
	n := 0
	for _, conn := range c.connections {
		n += len(conn.handles)
	}
	return c.all(n, func(conn *connection) error {
		for len(conn.handles) > 0 {
			if _, err := conn.delete(c.requests); err != nil {
				return err
			}
		}
		return nil
	})
}

// Work receives n messages and deletes each batch before it receives the next.
func (c *Client) Work(n int) (Report, error) {
	return c.drain(n, func(conn *connection) (int, error) {
		if n, err := conn.receive(c.requests.receive); n == 0 || err != nil {
			return 0, err
		}
		return conn.delete(c.requests)
	})
}

// patience is how long a drain waits for messages that do not come.
const patience = 30 * time.Second

// drain makes every connection take messages, a batch at a time, until there have been n.
func (c *Client) drain(n int, take func(*connection) (int, error)) (Report, error) {
	var left atomic.Int64 // messages that no connection is about to take
	left.Store(int64(n))
	return c.all(n, func(conn *connection) error {
		since := time.Now()
		for {
			if left.Add(-BatchSize) <= -BatchSize {
				left.Add(BatchSize)
				return nil
			}
			taken, err := take(conn)
			if err != nil {
				return err
			}
			left.Add(int64(BatchSize - taken))
			switch {
			case taken > 0:
				since = time.Now()
			case time.Since(since) > patience:
				return fmt.Errorf("messages have not come for %v", patience)
			default:
				time.Sleep(time.Millisecond) // do not slow down a slow server
			}
		}
	})
}

// all makes every connection do its part of n messages.
func (c *Client) all(n int, part func(*connection) error) (Report, error) {
	errs := make([]error, len(c.connections))
	for _, conn := range c.connections {
		conn.took = conn.took[:0]
	}
	began := time.Now()
	var parts sync.WaitGroup
	for i, conn := range c.connections {
		parts.Go(func() { errs[i] = part(conn) })
	}
	parts.Wait()
	report := Report{Messages: n, Wall: time.Since(began)}
	for _, conn := range c.connections {
		report.Calls = append(report.Calls, conn.took...)
	}
	return report, errors.Join(errs...)
}

// Body is a document of BodySize bytes, with quotes to escape, as in all JSON that is sent within
// JSON.
func Body(i int) string {
	const line = `{"sku":"A-10442","quantity":2,"price":"19.90"},`
	head := fmt.Sprintf(`{"order":%d,"customer":"Ada","lines":[`, i)
	lines := (BodySize - len(head)) / len(line)
	body := head + strings.Repeat(line, lines)
	return body + strings.Repeat("x", BodySize-len(body))
}
