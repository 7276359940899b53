package idempotency

import (
	"bytes"
	"container/list"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

// MemoryConfig are the limits of a [Memory].
type MemoryConfig struct {
	// MaxRecords is how many keys are remembered. Default: 100,000.
	MaxRecords int
	// MaxBytes is the estimated memory that the records may take, with keys and results. Default:
	// 64 MiB.
	MaxBytes int
}

// Memory is a [Store] in this process's memory. It protects only from duplicates that come to this
// process while it lives: for tests, and for programs that run once. Its clock is the process's
// own.
//
// It is bounded: when it is full, it forgets the key that was completed first, before its retention
// has ended, and [Memory.Stats] counts it. Claims in progress are not forgotten; if they alone fill
// the store, Acquire fails.
type Memory struct {
	cfg MemoryConfig

	mu        sync.Mutex
	records   map[string]*record
	completed list.List // of *record, in the order of completion
	token     Token     // the last one issued
	bytes     int
	forgotten int
}

// record is the state of a key. A released key has no record.
type record struct {
	key     string
	token   Token
	digest  []byte
	until   time.Time     // the end of the lease
	done    *list.Element // its place in Memory.completed; nil while in progress
	expires time.Time     // the end of the retention, once it is done
	result  []byte
}

// recordOverhead is the estimated memory of a record without its bytes: the struct, its entries in
// the map and the list, and unused capacity.
const recordOverhead = 300

func (r *record) size() int {
	return recordOverhead + len(r.key) + len(r.digest) + len(r.result)
}

// NewMemory returns an empty store.
func NewMemory(cfg MemoryConfig) *Memory {
	if cfg.MaxRecords <= 0 {
		cfg.MaxRecords = 100_000
	}
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = 64 << 20
	}
	return &Memory{cfg: cfg, records: make(map[string]*record)}
}

// MemoryStats are the contents of a [Memory] in numbers.
type MemoryStats struct {
	Records int
	Bytes   int // by estimate
	// Forgotten is how many completed keys were removed before their retention ended: if it grows,
	// raise the bounds or shorten the retention.
	Forgotten int
}

// Stats returns the contents of m in numbers.
func (m *Memory) Stats() MemoryStats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return MemoryStats{Records: len(m.records), Bytes: m.bytes, Forgotten: m.forgotten}
}

// Acquire implements [Store].
func (m *Memory) Acquire(ctx context.Context, batch []Request) ([]Answer, error) {
	return each(m, ctx, batch, m.acquire)
}

// Complete implements [Store].
func (m *Memory) Complete(ctx context.Context, batch []Completion) ([]bool, error) {
	return each(m, ctx, batch, m.complete)
}

// Release implements [Store].
func (m *Memory) Release(ctx context.Context, batch []Claim) ([]bool, error) {
	return each(m, ctx, batch, m.release)
}

// Extend implements [Store].
func (m *Memory) Extend(ctx context.Context, batch []Extension) ([]bool, error) {
	return each(m, ctx, batch, m.extend)
}

// each calls answer for each member of a batch, under m's mutex.
func each[In, Out any](m *Memory, ctx context.Context, batch []In, answer func(In, time.Time) (Out, error)) ([]Out, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	answers := make([]Out, len(batch))
	for i, in := range batch {
		var err error
		if answers[i], err = answer(in, now); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// atOnce turns one of m's methods into a call without a trip.
func atOnce[In, Out any](m *Memory, answer func(In, time.Time) (Out, error)) func(In) (Out, error) {
	return func(in In) (Out, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return answer(in, time.Now())
	}
}

// acquire answers one request. The caller of this and the following holds m.mu.
func (m *Memory) acquire(request Request, now time.Time) (Answer, error) {
	r := m.records[request.Key]
	switch {
	case r == nil:
	case r.done == nil && now.Before(r.until):
		return Answer{State: InProgress, Wait: r.until.Sub(now)}, nil
	case r.done != nil && now.Before(r.expires):
		if len(request.Digest) > 0 && len(r.digest) > 0 && !bytes.Equal(request.Digest, r.digest) {
			return Answer{State: Mismatched}, nil
		}
		return Answer{State: Completed, Result: bytes.Clone(r.result)}, nil
	default:
		m.remove(r)
	}
	r = &record{key: strings.Clone(request.Key), digest: bytes.Clone(request.Digest), until: now.Add(request.Lease)}
	if !m.makeRoom(1, r.size(), now) {
		return Answer{}, fmt.Errorf("the memory store is full of claims in progress (%d records, %d bytes): raise MemoryConfig.MaxRecords or MaxBytes", len(m.records), m.bytes)
	}
	m.token++
	r.token = m.token
	m.records[r.key] = r
	m.bytes += r.size()
	return Answer{State: Acquired, Token: r.token}, nil
}

func (m *Memory) complete(c Completion, now time.Time) (bool, error) {
	r := m.held(c.Claim)
	if r == nil || r.done != nil {
		return r != nil, nil
	}
	m.bytes += len(c.Result)
	r.result = bytes.Clone(c.Result)
	r.expires = now.Add(c.Retention)
	r.done = m.completed.PushBack(r)
	m.makeRoom(0, 0, now)
	return true, nil
}

func (m *Memory) release(c Claim, _ time.Time) (bool, error) {
	r := m.held(c)
	if r == nil || r.done != nil {
		return false, nil
	}
	m.remove(r)
	return true, nil
}

func (m *Memory) extend(e Extension, now time.Time) (bool, error) {
	r := m.held(e.Claim)
	if r == nil || r.done != nil {
		return false, nil
	}
	r.until = now.Add(e.Lease)
	return true, nil
}

// held returns the record of a claim, or nil if the claim has been overtaken.
func (m *Memory) held(c Claim) *record {
	r := m.records[c.Key]
	if r == nil || r.token != c.Token {
		return nil
	}
	return r
}

// makeRoom forgets completed keys until there is room for the given size, and reports whether there
// is.
func (m *Memory) makeRoom(records, size int, now time.Time) bool {
	full := func() bool {
		return len(m.records)+records > m.cfg.MaxRecords || m.bytes+size > m.cfg.MaxBytes
	}
	for first := m.completed.Front(); first != nil; first = m.completed.Front() {
		r := first.Value.(*record)
		if now.Before(r.expires) {
			if !full() {
				return true
			}
			m.forgotten++
		}
		m.remove(r)
	}
	if !full() {
		return true
	}
	for _, r := range m.records { // all in progress; drop those whose lease has ended
		if !now.Before(r.until) {
			m.remove(r)
		}
	}
	return !full()
}

// remove drops a record.
func (m *Memory) remove(r *record) {
	delete(m.records, r.key)
	m.bytes -= r.size()
	if r.done != nil {
		m.completed.Remove(r.done)
	}
}
