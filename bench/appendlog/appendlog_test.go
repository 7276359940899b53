package appendlog_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/bench/appendlog"
	"github.com/reprise-sqs/reprise/sqsserver"
)

func create(t testing.TB, o appendlog.Options) *appendlog.Log {
	t.Helper()
	o.Dir = t.TempDir()
	log, err := appendlog.Create(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	return log
}

// A log with a reserve and one without it keep the values that are set, within the reserve and
// beyond it, and forget the deleted ones.
func TestLog(t *testing.T) {
	for _, reserve := range []int64{0, 50, 1 << 20} {
		t.Run(fmt.Sprint(reserve), func(t *testing.T) {
			log := create(t, appendlog.Options{Reserve: reserve})
			for _, changes := range []func(*sqsserver.Batch){
				func(b *sqsserver.Batch) {
					b.Set([]byte("a1"), []byte("old"))
					b.Set([]byte("a2"), []byte("two"))
					b.Set([]byte("a1"), []byte("one"))
				},
				func(b *sqsserver.Batch) {
					b.Set([]byte("b1"), nil)
					b.Set([]byte("c1"), []byte("gone"))
					b.Delete([]byte("c1"))
				},
				func(b *sqsserver.Batch) {
					for _, key := range []string{"d1", "d2", "d3"} {
						b.Set([]byte(key), []byte("value of "+key))
					}
					b.DeleteRange([]byte("d1"), []byte("d3"))
				},
			} {
				var b sqsserver.Batch
				changes(&b)
				if err := log.Commit(&b, true); err != nil {
					t.Fatal(err)
				}
			}
			want := [][2]string{{"a1", "one"}, {"a2", "two"}, {"b1", ""}, {"d3", "value of d3"}}
			var got [][2]string
			err := log.Scan(nil, func(key, value []byte) error {
				got = append(got, [2]string{string(key), string(value)})
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Errorf("scanned %q, want %q", got, want)
			}
			var values []string
			for value, err := range log.Get([][]byte{[]byte("a2"), []byte("d2"), []byte("d3")}) {
				if errors.Is(err, sqsserver.ErrNotInJournal) {
					value, err = []byte("deleted"), nil
				}
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, string(value))
			}
			if want := []string{"two", "deleted", "value of d3"}; !slices.Equal(values, want) {
				t.Errorf("got %q, want %q", values, want)
			}
		})
	}
}

// A server with this log does the same as with any other journal.
func TestServer(t *testing.T) {
	log, err := appendlog.Create(appendlog.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	server, err := sqsserver.Open(log, sqsserver.Config{BodyCache: -1}) // bodies are read from the log
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	queue, err := server.CreateQueue(ctx, &sqsserver.CreateQueueInput{QueueName: "q"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.SendMessage(ctx, &sqsserver.SendMessageInput{QueueUrl: queue.QueueUrl, SendMessageEntry: sqsserver.SendMessageEntry{MessageBody: "hello"}}); err != nil {
		t.Fatal(err)
	}
	out, err := server.ReceiveMessage(ctx, &sqsserver.ReceiveMessageInput{QueueUrl: queue.QueueUrl})
	if err != nil || len(out.Messages) != 1 || out.Messages[0].Body != "hello" {
		t.Fatalf("received %+v, %v", out, err)
	}
	if err := server.DeleteMessage(ctx, &sqsserver.DeleteMessageInput{QueueUrl: queue.QueueUrl, ReceiptHandle: out.Messages[0].ReceiptHandle}); err != nil {
		t.Fatal(err)
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkCommit commits groups of calls, each of ten messages of 1 KiB with their state, and
// deletes the messages that were sent eight groups before: the upper bound for a journal's own
// benchmark of the same shape.
func BenchmarkCommit(b *testing.B) {
	body, state := make([]byte, 1<<10), make([]byte, 48)
	for _, delay := range []time.Duration{0, time.Millisecond} {
		for _, group := range []int{1, 16, 128} {
			b.Run(fmt.Sprintf("sync=%v/calls=%d", delay, group), func(b *testing.B) {
				log := create(b, appendlog.Options{SyncDelay: delay, Reserve: 64 << 20})
				var batch sqsserver.Batch
				next, messages := 0, 10*group
				b.ReportAllocs()
				b.SetBytes(int64(messages * len(body)))
				for b.Loop() {
					batch.Reset()
					for range messages {
						batch.Set(fmt.Appendf(nil, "m%016d", next), state)
						batch.Set(fmt.Appendf(nil, "b%016d", next), body)
						if old := next - 8*messages; old >= 0 {
							batch.Delete(fmt.Appendf(nil, "m%016d", old))
							batch.Delete(fmt.Appendf(nil, "b%016d", old))
						}
						next++
					}
					if err := log.Commit(&batch, true); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(next)/b.Elapsed().Seconds(), "messages/s")
			})
		}
	}
}
