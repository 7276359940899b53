package sqsserver_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestDueIsTheNaiveCount: what Due counts is what the list of all messages says, whatever is delayed,
// in flight, visible again, deleted or new.
func TestDueIsTheNaiveCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestServer(t, nil)
		random := rand.New(rand.NewPCG(3, 4))
		ends := []time.Duration{time.Minute, 5 * time.Minute, 10 * time.Minute}
		for round := range 6 {
			for i := range 2000 {
				b.send(fmt.Sprint(round, i), func(in *sqsserver.SendMessageInput) {
					in.DelaySeconds = sqsserver.Int(int32(random.IntN(3) * random.IntN(450)))
				})
			}
			for range 30 {
				in := &sqsserver.ReceiveMessageInput{QueueUrl: "q", MaxNumberOfMessages: sqsserver.Int(10), VisibilityTimeout: sqsserver.Int(int32(1 + random.IntN(1200)))}
				got, err := b.server.ReceiveMessage(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				if len(got.Messages) > 0 {
					b.mustDelete(got.Messages[0])
				}
			}
			const sample = 50
			now, spans, err := b.server.Due("q", ends, sample)
			if err != nil || len(spans) != len(ends)+1 {
				t.Fatal(spans, err)
			}
			all, err := b.server.Messages("q", sqsserver.Page{})
			if err != nil {
				t.Fatal(err)
			}
			want, numbers := make([]sqsserver.DueSpan, len(ends)+1), make([][]uint64, len(ends)+1)
			for i := range all {
				m := &all[i]
				if m.State == sqsserver.Visible {
					continue
				}
				at := 0
				for at < len(ends) && m.Due.Sub(now) >= ends[at] {
					at++
				}
				numbers[at] = append(numbers[at], m.Number)
				w := &want[at]
				w.Messages++
				if w.First.IsZero() || m.Due.Before(w.First) {
					w.First = m.Due
				}
				if m.Due.After(w.Last) {
					w.Last = m.Due
				}
			}
			for i := range spans {
				if n := len(spans[i].Sample); n > sample || n < min(sample/2, spans[i].Messages) {
					t.Errorf("round %d, span %d: a sample of %d of %d", round, i, n, spans[i].Messages)
				}
				for _, number := range spans[i].Sample {
					if !slices.Contains(numbers[i], number) {
						t.Errorf("round %d, span %d: %d of the sample is not in the span", round, i, number)
					}
				}
				spans[i].Sample = nil
			}
			if diff := cmp.Diff(want, spans); diff != "" {
				t.Errorf("round %d (-want +got):\n%s", round, diff)
			}
			if want[0].Messages < 100 || want[3].Messages < 10 {
				t.Fatalf("%+v: the test shows nothing", want)
			}
			time.Sleep(time.Duration(random.IntN(200)) * time.Second)
		}
	})
}

// TestDueSample: few messages are all in the sample; a sample is at most as large as asked for.
func TestDueSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestServer(t, nil)
		for i := range 9 {
			b.send(fmt.Sprint(i), func(in *sqsserver.SendMessageInput) { in.DelaySeconds = sqsserver.Int(60) })
		}
		for sample, want := range map[int]int{0: 0, 1: 1, 2: 2, 3: 3, 8: 5, 9: 9, 100: 9} {
			_, spans, err := b.server.Due("q", nil, sample)
			if err != nil || len(spans) != 1 || spans[0].Messages != 9 || len(spans[0].Sample) > sample || len(spans[0].Sample) < min(want, 2) {
				t.Errorf("a sample of %d: %+v, %v", sample, spans, err)
			}
			if sample >= 9 && len(spans[0].Sample) != 9 {
				t.Errorf("a sample of %d has %d of 9", sample, len(spans[0].Sample))
			}
		}
		if _, _, err := b.server.Due("none", nil, 1); err == nil {
			t.Error("a queue that does not exist has something due")
		}
	})
}

// TestWalk: the workers see every message once, as Messages shows it, and the error of a context ends it.
func TestWalk(t *testing.T) {
	b := newTestServer(t, nil)
	for i := range 1000 {
		b.send(fmt.Sprint("body ", i))
	}
	all, err := b.server.Messages("q", sqsserver.Page{})
	if err != nil {
		t.Fatal(err)
	}
	for _, withoutBodies := range []bool{true, false} {
		var mu sync.Mutex
		got := make(map[string]sqsserver.MessageInfo)
		err := b.server.Walk(t.Context(), "q", sqsserver.Page{WithoutBodies: withoutBodies}, 3, func(worker int, part []sqsserver.MessageInfo) {
			mu.Lock()
			defer mu.Unlock()
			for _, m := range part {
				if _, again := got[m.ID]; again || worker < 0 || worker > 2 {
					t.Errorf("worker %d sees %s again: %v", worker, m.ID, again)
				}
				got[m.ID] = m
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range all {
			if withoutBodies {
				want.Body = ""
			}
			if diff := cmp.Diff(want, got[want.ID]); diff != "" {
				t.Fatalf("a message (-want +got):\n%s", diff)
			}
		}
		if len(got) != len(all) {
			t.Errorf("%d messages, want %d", len(got), len(all))
		}
	}
	ended, end := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	if err := b.server.Walk(ended, "q", sqsserver.Page{}, 2, func(int, []sqsserver.MessageInfo) { end(enough) }); !errors.Is(err, enough) {
		t.Errorf("a walk whose context has ended: %v", err)
	}
	if err := b.server.Walk(t.Context(), "none", sqsserver.Page{}, 2, nil); err == nil {
		t.Error("a queue that does not exist is walked")
	}
}

// TestWalkLetsOthersIn: while a worker looks at a part, a message can be sent and received.
func TestWalkLetsOthersIn(t *testing.T) {
	b := newTestServer(t, nil)
	for i := range 200 {
		b.send(fmt.Sprint("body ", i))
	}
	parts := 0
	err := b.server.Walk(t.Context(), "q", sqsserver.Page{}, 1, func(int, []sqsserver.MessageInfo) {
		if parts++; parts == 1 {
			b.send("another")
			b.mustDelete(b.receiveOne()[0])
		}
	})
	if err != nil || parts < 3 {
		t.Errorf("%d parts: %v", parts, err)
	}
}

func (b *testServer) mustDelete(m sqsserver.Message) {
	b.Helper()
	if err := b.delete(m.ReceiptHandle); err != nil {
		b.Fatal(err)
	}
}
