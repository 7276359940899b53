package engine_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

var backlogs = []int{1_000, 1_000_000}

// fill sends n messages, one a microsecond, over that many groups (0: none).
func fill(e *engine.Engine, q *engine.Queue, n, groups int) time.Time {
	names := groupNames(groups)
	now := epoch
	for i := range n {
		now = now.Add(time.Microsecond)
		e.Send(now, q, numbered(i, names))
	}
	return now
}

func groupNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("group-%d", i)
	}
	return names
}

func numbered(i int, groups []string) engine.Message {
	m := engine.Message{Delay: -1}
	binary.BigEndian.PutUint64(m.ID[:], uint64(i))
	if len(groups) > 0 {
		m.Group = groups[i%len(groups)]
		m.Dedup = string(m.ID[:8])
	}
	return m
}

func BenchmarkSend(b *testing.B) {
	for _, backlog := range backlogs {
		b.Run(fmt.Sprintf("backlog=%d", backlog), func(b *testing.B) {
			e := engine.New()
			q := e.Create(epoch, mainQueue, engine.Settings{})
			now := fill(e, q, backlog, 0)
			m := numbered(0, nil)
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Microsecond)
				e.Send(now, q, m)
			}
		})
	}
}

// BenchmarkReceiveDelete receives ten, deletes them and sends ten, so that the
// backlog stays as it is; an operation is ten messages.
func BenchmarkReceiveDelete(b *testing.B) {
	for _, test := range []struct {
		name   string
		fifo   bool
		groups int
	}{{name: "standard"}, {"fifo-1000-groups", true, 1000}} {
		for _, backlog := range backlogs {
			b.Run(fmt.Sprintf("%s/backlog=%d", test.name, backlog), func(b *testing.B) {
				e := engine.New()
				q := e.Create(epoch, mainQueue, engine.Settings{FIFO: test.fifo, Visibility: time.Minute})
				now := fill(e, q, backlog, test.groups)
				names := groupNames(test.groups)
				next := backlog
				var got []engine.Delivery
				b.ReportAllocs()
				for b.Loop() {
					now = now.Add(time.Millisecond)
					got, _ = e.Receive(now, q, 10, -1, got[:0])
					if len(got) != 10 {
						b.Fatalf("received %d", len(got))
					}
					for _, d := range got {
						if err := e.Delete(now, q, d.Receipt); err != nil {
							b.Fatal(err)
						}
						e.Send(now, q, numbered(next, names))
						next++
					}
				}
			})
		}
	}
}

// BenchmarkReceiveBesideBackoff receives and deletes one fresh message while
// the rest of the queue is hidden for hours.
func BenchmarkReceiveBesideBackoff(b *testing.B) {
	for _, backlog := range backlogs {
		b.Run(fmt.Sprintf("hidden=%d", backlog), func(b *testing.B) {
			e, q, now, _ := inBackoff(b, backlog)
			m := numbered(backlog, nil)
			var got []engine.Delivery
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Microsecond)
				e.Send(now, q, m)
				got, _ = e.Receive(now, q, 10, time.Minute, got[:0])
				if len(got) != 1 || e.Delete(now, q, got[0].Receipt) != nil {
					b.Fatalf("received %d", len(got))
				}
			}
		})
	}
}

func BenchmarkChangeVisibility(b *testing.B) {
	for _, backlog := range backlogs {
		b.Run(fmt.Sprintf("hidden=%d", backlog), func(b *testing.B) {
			e, q, now, receipts := inBackoff(b, backlog)
			r := rand.New(rand.NewPCG(1, 2))
			b.ReportAllocs()
			for b.Loop() {
				d := time.Duration(1 + r.Int64N(int64(11*time.Hour)))
				if err := e.ChangeVisibility(now, q, receipts[r.IntN(len(receipts))], d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// inBackoff is a queue whose messages are all hidden for up to 11 hours.
func inBackoff(b *testing.B, n int) (*engine.Engine, *engine.Queue, time.Time, []engine.Receipt) {
	e := engine.New()
	q := e.Create(epoch, mainQueue, engine.Settings{InFlightLimit: -1})
	now := fill(e, q, n, 0)
	r := rand.New(rand.NewPCG(3, 4))
	var receipts []engine.Receipt
	for range n {
		lease := time.Hour + time.Duration(r.Int64N(int64(10*time.Hour)))
		got, err := e.Receive(now, q, 1, lease, nil)
		if err != nil || len(got) != 1 {
			b.Fatalf("received %d, %v", len(got), err)
		}
		receipts = append(receipts, got[0].Receipt)
	}
	return e, q, now, receipts
}

// BenchmarkReceiveBesideBlockedGroup receives from a small group beside one
// whose first message is in flight.
func BenchmarkReceiveBesideBlockedGroup(b *testing.B) {
	for _, backlog := range backlogs {
		b.Run(fmt.Sprintf("blocked=%d", backlog), func(b *testing.B) {
			e := engine.New()
			q := e.Create(epoch, mainQueue, engine.Settings{FIFO: true, Visibility: 12 * time.Hour})
			now := fill(e, q, backlog, 1)
			var got []engine.Delivery
			got, _ = e.Receive(now, q, 1, -1, got)
			small := numbered(0, []string{"small"})
			next := uint64(1 << 40)
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Microsecond)
				next++
				var dedup [8]byte
				binary.BigEndian.PutUint64(dedup[:], next)
				small.Dedup = string(dedup[:])
				e.Send(now, q, small)
				got, _ = e.Receive(now, q, 10, time.Hour, got[:0])
				if len(got) != 1 || e.Delete(now, q, got[0].Receipt) != nil {
					b.Fatalf("received %d", len(got))
				}
			}
		})
	}
}

// BenchmarkMemory reports the heap's bytes per waiting message.
func BenchmarkMemory(b *testing.B) {
	const n = 1_000_000
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		e := engine.New()
		q := e.Create(epoch, mainQueue, engine.Settings{})
		fill(e, q, n, 0)
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(e)
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/message")
}

// BenchmarkReceiveBesideNoisyTenant receives a quiet tenant's message beside the
// backlog of a noisy one.
func BenchmarkReceiveBesideNoisyTenant(b *testing.B) {
	for _, backlog := range backlogs {
		b.Run(fmt.Sprintf("backlog=%d", backlog), func(b *testing.B) {
			e := engine.New()
			q := e.Create(epoch, mainQueue, engine.Settings{Visibility: time.Hour})
			now := fill(e, q, backlog, 1)
			for range 40 {
				_, _ = e.Receive(now, q, 1, -1, nil)
			}
			m := numbered(0, []string{"quiet"})
			var got []engine.Delivery
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Microsecond)
				e.Send(now, q, m)
				got, _ = e.Receive(now, q, 1, -1, got[:0])
				if len(got) != 1 || got[0].Group != "quiet" {
					b.Fatalf("received %v", got)
				}
				_ = e.Delete(now, q, got[0].Receipt)
			}
		})
	}
}
