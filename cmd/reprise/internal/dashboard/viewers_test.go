//go:build unix

package dashboard_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// BenchmarkViewers is what 50 viewers of a live page take of all processors, in percent: the throughput that they cost
// a process that is busy. It is what the process uses beyond what its messages take without viewers in the same run, so
// load from other processes leaves it about as it is. The clients of the viewers count, too: the true cost is lower.
func BenchmarkViewers(b *testing.B) {
	for name, path := range map[string]string{"overview": "/?live=1", "queue": "/ui/queues/orders?live=1"} {
		b.Run(name, func(b *testing.B) {
			s := serve(b, nil)
			for i := range 20 {
				s.create(fmt.Sprintf("queue-%02d", i), nil)
			}
			var cost []float64
			for b.Loop() {
				alone := s.work(2 * time.Second)
				leave := s.view(path, 50)
				watched := s.work(2 * time.Second)
				leave()
				perMessage := alone.processor.Seconds() / alone.messages
				viewers := watched.processor.Seconds() - watched.messages*perMessage
				cost = append(cost, 100*viewers/watched.span.Seconds()/float64(runtime.GOMAXPROCS(0)))
			}
			b.ReportMetric(median(cost), "%cost")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// view has viewers of a page, until leave is called; it returns when each has seen it.
func (s *served) view(path string, viewers int) (leave func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	var seen, all sync.WaitGroup
	seen.Add(viewers)
	for range viewers {
		all.Go(func() {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, http.NoBody)
			if err != nil {
				panic(err)
			}
			response, err := s.http.Do(r)
			if err == nil && response.StatusCode == http.StatusOK {
				_, err = response.Body.Read(make([]byte, 1))
			}
			if err != nil {
				s.t.Errorf("%s: %v", path, err)
			}
			seen.Done()
			if err == nil {
				_, _ = io.Copy(io.Discard, response.Body) // until it is cancelled
				response.Body.Close()
			}
		})
	}
	seen.Wait()
	return func() { cancel(); all.Wait() }
}

// worked is what a process has done in a time.
type worked struct {
	messages        float64 // that were sent, received and deleted
	span, processor time.Duration
}

// work has all processors send, receive and delete messages for a time.
func (s *served) work(span time.Duration) worked {
	s.t.Helper()
	var messages atomic.Int64
	var workers sync.WaitGroup
	start, used := time.Now(), processorTime(s.t)
	end := start.Add(span)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			in := &sqsserver.SendMessageInput{QueueUrl: "orders"}
			in.MessageBody = `{"order":1}`
			for time.Now().Before(end) {
				if _, err := s.sqs.SendMessage(s.t.Context(), in); err != nil {
					s.t.Error(err)
					return
				}
				got, err := s.sqs.ReceiveMessage(s.t.Context(), &sqsserver.ReceiveMessageInput{QueueUrl: "orders"})
				if err != nil {
					s.t.Error(err)
					return
				}
				for _, m := range got.Messages {
					if err := s.sqs.DeleteMessage(s.t.Context(), &sqsserver.DeleteMessageInput{QueueUrl: "orders", ReceiptHandle: m.ReceiptHandle}); err != nil {
						s.t.Error(err)
						return
					}
					messages.Add(1)
				}
			}
		})
	}
	workers.Wait()
	return worked{float64(messages.Load()), time.Since(start), processorTime(s.t) - used}
}

func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func median(of []float64) float64 {
	of = slices.Sorted(slices.Values(of))
	return of[len(of)/2]
}

// BenchmarkMillion is how long pages take to answer, and how much processor time the process uses meanwhile, when queues
// have a million messages: visible ones, delayed ones, and dead letters. The groups of the latter are made once.
func BenchmarkMillion(b *testing.B) {
	s := serve(b, nil)
	s.create("later", nil)
	s.create("dead", nil)
	s.fill("orders", func(i int, e *sqsserver.SendMessageBatchRequestEntry) {
		e.MessageBody = fmt.Sprintf(`{"order":%d}`, i)
	})
	s.fill("later", func(i int, e *sqsserver.SendMessageBatchRequestEntry) {
		e.MessageBody, e.DelaySeconds = fmt.Sprintf(`{"order":%d}`, i), sqsserver.Int(int32(600+i%300))
	})
	s.fill("dead", func(i int, e *sqsserver.SendMessageBatchRequestEntry) {
		e.MessageBody = fmt.Sprintf(`{"order":%d}`, i)
		e.MessageAttributes = []sqsserver.MessageAttribute{{Name: reprise.StoryAttribute, DataType: "String", StringValue: fmt.Sprintf(
			`{"reason":"attempts","attempts":20,"error":"order %d: the target answered %d: try later","source":"arn:aws:sqs:us-east-1:000000000000:orders","last":"2026-11-24T11:00:00Z"}`, i, 500+i%4)}}
	})
	all, err := s.sqs.Messages("orders", sqsserver.Page{Limit: 1})
	if err != nil || len(all) != 1 {
		b.Fatal(err)
	}
	queue := "/ui/queues/orders"
	for _, path := range []string{
		"/", queue, queue + "/messages", queue + "/messages?text=none", queue + "/due", queue + "/messages/" + all[0].ID, queue + "/messages/" + all[0].ID + "/story",
		"/ui/queues/later/due", "/ui/queues/later/messages?state=visible", "/ui/dead", "/ui/dead/dead", "/ui/dead/dead/groups",
	} {
		b.Run(strings.ReplaceAll(strings.TrimPrefix(strings.Replace(path, all[0].ID, "ID", 1), "/"), "/", "_"), func(b *testing.B) {
			used := processorTime(b)
			for b.Loop() {
				if got := s.do("GET", path, nil); got.StatusCode != http.StatusOK {
					b.Fatalf("%d %s", got.StatusCode, got.text)
				}
			}
			b.ReportMetric(float64((processorTime(b)-used).Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}

// fill sends a million messages to a queue.
func (s *served) fill(queue string, message func(i int, e *sqsserver.SendMessageBatchRequestEntry)) {
	s.t.Helper()
	const batch = 10
	for first := 0; first < 1_000_000; first += batch {
		in := &sqsserver.SendMessageBatchInput{QueueUrl: queue}
		for i := range batch {
			e := sqsserver.SendMessageBatchRequestEntry{Id: fmt.Sprint(i)}
			message(first+i, &e)
			in.Entries = append(in.Entries, e)
		}
		if _, err := s.sqs.SendMessageBatch(s.t.Context(), in); err != nil {
			s.t.Fatal(err)
		}
	}
}
