package idempotency_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/idempotency/idempotencytest"
)

func TestMemory(t *testing.T) {
	idempotencytest.Run(t, idempotencytest.Config{
		Open:    func(*testing.T) idempotency.Store { return idempotency.NewMemory(idempotency.MemoryConfig{}) },
		Virtual: true,
	})
}

// fill claims a key in m with a lease and completes it with a result, unless that
// is "-".
func fill(t *testing.T, m *idempotency.Memory, key string, lease time.Duration, result string) error {
	t.Helper()
	answers, err := m.Acquire(t.Context(), []idempotency.Request{{Key: key, Lease: lease, Retention: time.Hour}})
	if err != nil || result == "-" {
		return err
	}
	_, err = m.Complete(t.Context(), []idempotency.Completion{{
		Claim: idempotency.Claim{Key: key, Token: answers[0].Token}, Result: []byte(result), Retention: time.Hour,
	}})
	return err
}

// TestMemoryIsBounded in records and in bytes: the oldest completed goes, is counted,
// and nothing else goes.
func TestMemoryIsBounded(t *testing.T) {
	large := strings.Repeat("x", 10_000)
	for name, c := range map[string]struct {
		cfg    idempotency.MemoryConfig
		result string
	}{
		"records": {idempotency.MemoryConfig{MaxRecords: 10}, ""},
		"bytes":   {idempotency.MemoryConfig{MaxBytes: 105_000}, large},
	} {
		t.Run(name, func(t *testing.T) {
			m := idempotency.NewMemory(c.cfg)
			if err := fill(t, m, "in progress", time.Hour, "-"); err != nil {
				t.Fatal(err)
			}
			for n := range 100 {
				if err := fill(t, m, fmt.Sprint(n), time.Hour, c.result); err != nil {
					t.Fatal(err)
				}
			}
			s := m.Stats()
			if s.Records != 10 && s.Records != 11 || s.Forgotten != 101-s.Records || s.Bytes > 105_000 {
				t.Errorf("%+v", s)
			}
			for key, want := range map[string]idempotency.State{"in progress": idempotency.InProgress, "99": idempotency.Completed, "0": idempotency.Acquired} {
				answers, err := m.Acquire(t.Context(), []idempotency.Request{{Key: key, Lease: time.Hour, Retention: time.Hour}})
				if err != nil || answers[0].State != want {
					t.Errorf("key %q: %v, %v; want %v", key, answers, err, want)
				}
			}
		})
	}
}

// TestMemoryFullOfClaims says so, and has room again when their leases have ended.
func TestMemoryFullOfClaims(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := idempotency.NewMemory(idempotency.MemoryConfig{MaxRecords: 3})
		for n := range 3 {
			if err := fill(t, m, fmt.Sprint(n), time.Minute, "-"); err != nil {
				t.Fatal(err)
			}
		}
		if err := fill(t, m, "one more", time.Minute, "-"); err == nil || !strings.Contains(err.Error(), "MaxRecords") {
			t.Errorf("the fourth of three claims: %v", err)
		}
		time.Sleep(time.Minute)
		if err := fill(t, m, "one more", time.Minute, "-"); err != nil {
			t.Errorf("after the leases: %v", err)
		}
		if s := m.Stats(); s.Records != 1 || s.Forgotten != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestMemoryDropsWhatIsOver without being full.
func TestMemoryDropsWhatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := idempotency.NewMemory(idempotency.MemoryConfig{})
		for n := range 1000 {
			if err := fill(t, m, fmt.Sprint(n), time.Minute, "result"); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour)
		if err := fill(t, m, "one more", time.Minute, ""); err != nil {
			t.Fatal(err)
		}
		if s := m.Stats(); s.Records != 1 || s.Forgotten != 0 || s.Bytes > 1000 {
			t.Errorf("%+v, want one record", s)
		}
	})
}

// TestMemoryKeepsItsOwnResult: a caller may use its slice again.
func TestMemoryKeepsItsOwnResult(t *testing.T) {
	m := idempotency.NewMemory(idempotency.MemoryConfig{})
	request := []idempotency.Request{{Key: "m", Lease: time.Minute, Retention: time.Hour}}
	answers, err := m.Acquire(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	result := []byte("shipped")
	done := idempotency.Completion{Claim: idempotency.Claim{Key: "m", Token: answers[0].Token}, Result: result, Retention: time.Hour}
	if _, err := m.Complete(t.Context(), []idempotency.Completion{done}); err != nil {
		t.Fatal(err)
	}
	copy(result, "another")
	for range 2 {
		answers, err := m.Acquire(t.Context(), request)
		if err != nil || string(answers[0].Result) != "shipped" {
			t.Fatalf("the result is %q (%v), want it as it was recorded", answers[0].Result, err)
		}
		copy(answers[0].Result, "another")
	}
}

// TestDuplicateCostsNoAllocation with the store in memory, and a new message few.
func TestDuplicateCostsNoAllocation(t *testing.T) {
	once, err := idempotency.New(idempotency.NewMemory(idempotency.MemoryConfig{}), idempotency.Config{Key: byID})
	if err != nil {
		t.Fatal(err)
	}
	h := once(handler(func(context.Context, *reprise.Message) error { return nil }))
	m := message("m")
	work := func() {
		if err := h.Handle(context.Background(), m); err != nil {
			t.Fatal(err)
		}
	}
	work()
	if n := testing.AllocsPerRun(100, work); n != 0 {
		t.Errorf("%v allocations for a duplicate, want none", n)
	}
	next := 0
	ids := make([]string, 1001)
	for i := range ids {
		ids[i] = fmt.Sprint("new-", i)
	}
	if n := testing.AllocsPerRun(1000, func() {
		m.OriginID = ids[next]
		next++
		work()
	}); n > 9 {
		t.Errorf("%v allocations for a new message, want at most 9", n)
	}
}
