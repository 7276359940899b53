package sqsserver_test

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// bareJournal keeps the bodies and takes its time to sync: what remains is the
// server's own part.
type bareJournal struct {
	sync time.Duration

	mu   sync.RWMutex
	data map[string][]byte
}

func (j *bareJournal) Scan([]byte, func(key, value []byte) error) error { return nil }

func (j *bareJournal) Get(keys [][]byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for _, key := range keys {
			if !yield(j.get(key)) {
				return
			}
		}
	}
}

func (j *bareJournal) get(key []byte) ([]byte, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	value, found := j.data[string(key)]
	if !found {
		return nil, fmt.Errorf("get %q: %w", key, sqsserver.ErrNotInJournal)
	}
	return value, nil
}

func (j *bareJournal) Commit(b *sqsserver.Batch, sync bool) error {
	j.mu.Lock()
	b.Each(func(op sqsserver.BatchOp, key, value []byte) {
		switch {
		case key[0] != 'b':
		case op == sqsserver.BatchSet:
			j.data[string(key)] = append([]byte(nil), value...)
		case op == sqsserver.BatchDelete || op == sqsserver.BatchDeleteOnce:
			delete(j.data, string(key))
		}
	})
	j.mu.Unlock()
	if sync && j.sync > 0 {
		time.Sleep(j.sync)
	}
	return nil
}

func (j *bareJournal) Close() error { return nil }

// The typed methods with and without a journal, by the number of clients, and the
// ratio of the two. An operation is ten messages of 1 KiB sent, received and
// deleted.
func BenchmarkKept(b *testing.B) {
	type kind struct {
		name    string
		journal func() sqsserver.Journal
	}
	kinds := []kind{
		{"memory", func() sqsserver.Journal { return nil }},
		{"sync=0", func() sqsserver.Journal { return &bareJournal{data: map[string][]byte{}} }},
		{"sync=1ms", func() sqsserver.Journal { return &bareJournal{data: map[string][]byte{}, sync: time.Millisecond} }},
	}
	var memory [2]float64 // sent and worked a second, with as many clients
	for _, clients := range []int{1, 16, 128} {
		for _, k := range kinds {
			name := fmt.Sprintf("clients=%d/%s", clients, k.name)
			b.Run(name, func(b *testing.B) {
				config := sqsserver.Config{Logger: slog.New(slog.DiscardHandler)}
				s := sqsserver.New(config)
				if journal := k.journal(); journal != nil {
					var err error
					if s, err = sqsserver.Open(journal, config); err != nil {
						b.Fatal(err)
					}
				}
				defer s.Close()
				if _, err := s.CreateQueue(b.Context(), &sqsserver.CreateQueueInput{QueueName: "q"}); err != nil {
					b.Fatal(err)
				}
				send, work := crowd(b, s, clients)
				n := float64(10 * b.N)
				b.ReportMetric(n/send.Seconds(), "sent/s")
				b.ReportMetric(n/work.Seconds(), "worked/s")
				if k.name == "memory" {
					memory = [2]float64{n / send.Seconds(), n / work.Seconds()}
				}
				if memory[0] > 0 { // it runs first, unless it was not asked for
					b.ReportMetric(n/send.Seconds()/memory[0], "sent/memory")
					b.ReportMetric(n/work.Seconds()/memory[1], "worked/memory")
				}
			})
		}
	}
}

// crowd has clients send b.N batches, and then receive and delete them.
func crowd(b *testing.B, s *sqsserver.Server, clients int) (send, work time.Duration) {
	each := func(do func() error) time.Duration {
		var left atomic.Int64
		left.Store(int64(b.N))
		var group sync.WaitGroup
		start := time.Now()
		for range clients {
			group.Go(func() {
				for left.Add(-1) >= 0 {
					if err := do(); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		group.Wait()
		return time.Since(start)
	}
	b.ResetTimer()
	batch := benchBatch()
	send = each(func() error {
		_, err := s.SendMessageBatch(b.Context(), batch)
		return err
	})
	work = each(func() error {
		out, err := s.ReceiveMessage(b.Context(), &sqsserver.ReceiveMessageInput{QueueUrl: benchURL, MaxNumberOfMessages: sqsserver.Int(10)})
		if err != nil || len(out.Messages) != 10 {
			return errors.Join(err, fmt.Errorf("received %d", len(out.Messages)))
		}
		remove := &sqsserver.DeleteMessageBatchInput{QueueUrl: benchURL, Entries: make([]sqsserver.DeleteMessageBatchRequestEntry, 10)}
		for i := range out.Messages {
			remove.Entries[i] = sqsserver.DeleteMessageBatchRequestEntry{Id: batch.Entries[i].Id, ReceiptHandle: out.Messages[i].ReceiptHandle}
		}
		_, err = s.DeleteMessageBatch(b.Context(), remove)
		return err
	})
	return send, work
}

// forgetful is a journal that has nothing.
type forgetful struct{ bareJournal }

func (*forgetful) Commit(*sqsserver.Batch, bool) error { return nil }

// BenchmarkColdMemory reports the heap's bytes per message of 1 KiB that waits
// with its body in the journal only.
func BenchmarkColdMemory(b *testing.B) {
	const batches = 100_000
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		s, err := sqsserver.Open(new(forgetful), sqsserver.Config{BodyCache: -1})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.CreateQueue(b.Context(), &sqsserver.CreateQueueInput{QueueName: "q"}); err != nil {
			b.Fatal(err)
		}
		batch := benchBatch()
		for range batches {
			if _, err := s.SendMessageBatch(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		s.Close()
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(10*batches), "B/message")
}
