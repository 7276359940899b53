package idempotency_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestStoreDownAtABatch: its messages are retried later, as unavailable; or run, if that
// was chosen.
func TestStoreDownAtABatch(t *testing.T) {
	for _, run := range []bool{false, true} {
		t.Run(fmt.Sprint("run ", run), func(t *testing.T) {
			store := newGate()
			store.fail("acquire", errDown, nil)
			once, seen := guardBatch(t, store, idempotency.Config{RunWithoutStore: run})
			ran := 0
			errs := once(batchHandler(func(ctx context.Context, m *reprise.Message) error {
				ran++
				if claim, _, ok := idempotency.ClaimFrom(ctx); ok {
					t.Errorf("an unprotected run has the claim %v", claim)
				}
				if m.ID == "b" {
					return errDown
				}
				return idempotency.SetResult(ctx, []byte("result"))
			})).HandleBatch(t.Context(), messages("a", "b"))
			want := map[string]idempotency.Kind{"a": idempotency.KindUnavailable, "b": idempotency.KindUnavailable}
			if run {
				want = map[string]idempotency.Kind{"a": idempotency.KindUnprotected, "b": idempotency.KindUnprotected}
			}
			if diff := cmp.Diff(want, seen()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if !run && (ran != 0 || !reprise.IsUnavailable(errs[0]) || !reprise.IsUnavailable(errs[1])) || run && (ran != 2 || errs[0] != nil || errs[1] != errDown) {
				t.Errorf("%d ran, verdicts %v", ran, errs)
			}
		})
	}
}

// TestBatchIsRecordedThroughAnOutage that is shorter than the patience. After a longer
// one its messages come back, and are recorded then, in one trip, instead of run.
func TestBatchIsRecordedThroughAnOutage(t *testing.T) {
	for _, outage := range []time.Duration{8 * time.Second, 20 * time.Second} {
		t.Run(outage.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newGate()
				store.latency = 10 * time.Millisecond
				once, seen := guardBatch(t, store, idempotency.Config{})
				store.fail("complete", errDown, nil)
				time.AfterFunc(outage, func() { store.fail("complete", nil, nil) })
				ms := messages(numbered(20)...)
				ran := 0
				handler := once(batchHandler(func(context.Context, *reprise.Message) error { ran++; return nil }))
				errs := handler.HandleBatch(t.Context(), ms)
				kind := idempotency.KindDone
				for _, err := range errs {
					if outage > 10*time.Second {
						kind = idempotency.KindUnrecorded
						if !reprise.IsUnavailable(err) {
							t.Errorf("a verdict is %v, want it unavailable", err)
						}
					} else if err != nil {
						t.Error(err)
					}
				}
				for id, got := range seen() {
					if got != kind {
						t.Errorf("message %s is %v, want %v", id, got, kind)
					}
				}
				time.Sleep(outage)
				store.mu.Lock()
				store.trips["complete"] = nil
				store.mu.Unlock()
				for _, err := range handler.HandleBatch(t.Context(), ms) {
					if err != nil {
						t.Errorf("when they come again: %v", err)
					}
				}
				if kind == idempotency.KindUnrecorded && !slices.Equal(store.trips["complete"], []int{20}) {
					t.Errorf("they were recorded in trips of %v, want one of 20", store.trips["complete"])
				}
				if ran != 20 {
					t.Errorf("%d were run, want each of 20 once", ran)
				}
				for id, got := range seen() {
					if got != idempotency.KindDuplicate {
						t.Errorf("message %s is %v when it comes again", id, got)
					}
				}
			})
		})
	}
}

// TestBatchesOfAFleetHappenOnce: two consumers share a store that fails now and then, of
// a FIFO queue and of a standard one, whose producers send each piece of work three times.
// Handlers fail, panic and lose leases, requests are refused and replies are lost.
// Each piece has one effect, and in a group they come in order.
func TestBatchesOfAFleetHappenOnce(t *testing.T) {
	for _, fifo := range []string{"false", "true"} {
		for seed := range uint64(5) {
			t.Run(fmt.Sprint("fifo ", fifo, " seed ", seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { batchFleet(t, fifo == "true", seed) })
			})
		}
	}
}

// drawn is a chance that a seed gives to what is asked.
func drawn(seed uint64, about string) float64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, seed, about) // it cannot fail
	return float64(h.Sum64()%1000) / 1000
}

func batchFleet(t *testing.T, fifo bool, seed uint64) {
	attributes := map[string]string{}
	if fifo {
		attributes["FifoQueue"] = "true"
	}
	q := reprisetest.NewQueue(t, attributes)
	dead := q.NewDeadLetterQueue(1000)
	store := newGate()
	store.latency, store.reply = 20*time.Millisecond, 20*time.Millisecond
	var mu sync.Mutex
	tries, effects := make(map[string]int), make(map[string]int)
	order := make(map[string][]string)
	for range 2 {
		once, _ := guardBatch(t, store, idempotency.Config{Key: idempotency.ByBody})
		q.ConsumeBatch(once(reprise.BatchHandlerFunc(func(ctx context.Context, ms []*reprise.Message) []error {
			errs := make([]error, len(ms))
			stopped := make(map[string]bool)
			for i, m := range ms {
				time.Sleep(100 * time.Millisecond)
				mu.Lock()
				tries[m.Body]++
				chance := drawn(seed, fmt.Sprint(m.Body, tries[m.Body]))
				mu.Unlock()
				if chance < 0.02 {
					panic("bad luck")
				}
				alive := idempotency.MessageContext(ctx, m).Err() == nil
				if chance < 0.3 || !alive || fifo && stopped[m.GroupID] {
					errs[i], stopped[m.GroupID] = errDown, true
					continue
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for i, m := range ms { // all effects at once, as in a transaction
				if errs[i] == nil {
					effects[m.Body]++
					order[m.GroupID] = append(order[m.GroupID], m.Body)
				}
			}
			return errs
		})), reprise.BatchConfig{
			Size: 7,
			Config: reprise.Config{
				Concurrency: 3,
				Lease:       10 * time.Second,
				Retry:       retry.Policy{Backoff: retry.Constant(5 * time.Second), MaxAttempts: -1},
			},
		})
	}
	q.Fault(
		sqsserver.Fault{Kind: sqsserver.FaultLoseReply, Action: "DeleteMessageBatch", Every: 5},
		sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Every: 7},
	)
	const pieces = 40
	for n := range pieces {
		for copied := range 3 {
			m := sqsserver.SendMessageEntry{MessageBody: fmt.Sprintf("%02d", n)}
			if fifo {
				m.MessageGroupId, m.MessageDeduplicationId = string('a'+rune(n%4)), fmt.Sprint(n, "-", copied)
			}
			q.SendMessage(m)
		}
		if n%10 == 9 {
			store.fail("release", errDown, nil)
			time.Sleep(3 * time.Second)
			store.fail("release", nil, nil)
		}
	}
	q.WaitEmpty(24 * time.Hour)
	if len(effects) != pieces || len(dead.Messages()) != 0 {
		t.Errorf("%d pieces were done, %d given up; want %d and none", len(effects), len(dead.Messages()), pieces)
	}
	for body, n := range effects {
		if n != 1 {
			t.Errorf("%s had %d effects", body, n)
		}
	}
	if fifo {
		for group, bodies := range order {
			if !slices.IsSorted(bodies) {
				t.Errorf("group %s happened in the order %v", group, bodies)
			}
		}
	}
}
