package idempotencytest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/idempotency"
)

// oracle is between the adversary and the store, sees the store's real answers, and checks them
// against the contract. An event is only known to lie between a call and its answer, so the oracle
// complains only if every order would be wrong.
type oracle struct {
	idempotency.Store
	t *testing.T

	mu   sync.Mutex
	keys map[string]*truth
}

// truth is what is known about a key.
type truth struct {
	latest    idempotency.Token // of the last claim
	known     time.Time         // when its answer was
	holds     time.Time         // its lease ends no earlier
	releasing bool              // it has been released, or a release is under way

	completed   idempotency.Token // of the claim that completed it
	completedAt time.Time         // when the answer was known
	result      string            // of the completion, once seen
	results     map[idempotency.Token]string
}

func newOracle(t *testing.T, store idempotency.Store) *oracle {
	return &oracle{Store: store, t: t, keys: make(map[string]*truth)}
}

// truth returns what is known about key. The caller holds o.mu.
func (o *oracle) truth(key string) *truth {
	k := o.keys[key]
	if k == nil {
		k = &truth{results: make(map[idempotency.Token]string)}
		o.keys[key] = k
	}
	return k
}

// completedKey notes that a completion of key has been answered.
func (o *oracle) completedKey(key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.truth(key).completed != 0
}

func (o *oracle) Acquire(ctx context.Context, batch []idempotency.Request) ([]idempotency.Answer, error) {
	asked := time.Now()
	answers, err := o.Store.Acquire(ctx, batch)
	answered := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, a := range answers {
		k, key := o.truth(batch[i].Key), batch[i].Key
		switch a.State {
		case idempotency.Acquired:
			if k.completed != 0 && k.completedAt.Before(asked) {
				o.t.Errorf("key %q was acquired after claim %d had completed it", key, k.completed)
			}
			if a.Token < k.latest && !k.known.Before(asked) {
				continue // it was granted before the latest, and is answered after it
			}
			if a.Token <= k.latest {
				o.t.Errorf("key %q: token %d came after %d", key, a.Token, k.latest)
			}
			if k.latest != 0 && !k.releasing && answered.Before(k.holds) {
				o.t.Errorf("key %q was acquired while claim %d held for at least %v more", key, k.latest, k.holds.Sub(answered))
			}
			k.latest, k.known, k.holds, k.releasing = a.Token, answered, asked.Add(batch[i].Lease), false
		case idempotency.Completed:
			o.seen(key, k, string(a.Result))
		case idempotency.InProgress:
		default:
			o.t.Errorf("key %q: Acquire answered %v, though payloads are not compared", key, a.State)
		}
	}
	return answers, err
}

// seen checks a result that the store returned for a completed key. The caller holds o.mu.
func (o *oracle) seen(key string, k *truth, result string) {
	if k.result == "" {
		k.result = result
	}
	if result != k.result {
		o.t.Errorf("key %q: result %q became %q", key, k.result, result)
	}
	if k.completed != 0 && result != k.results[k.completed] {
		o.t.Errorf("key %q was completed with %q, and has the result %q", key, k.results[k.completed], result)
	}
}

func (o *oracle) Complete(ctx context.Context, batch []idempotency.Completion) ([]bool, error) {
	overtaken := make([]bool, len(batch))
	o.mu.Lock()
	for i, c := range batch {
		k := o.truth(c.Key)
		k.results[c.Token] = string(c.Result)
		overtaken[i] = k.latest > c.Token
	}
	o.mu.Unlock()
	held, err := o.Store.Complete(ctx, batch)
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, ok := range held {
		k, c := o.truth(batch[i].Key), batch[i]
		switch {
		case !ok:
		case overtaken[i]:
			o.t.Errorf("key %q: claim %d completed it after claim %d had overtaken it", c.Key, c.Token, k.latest)
		case k.completed != 0 && k.completed != c.Token:
			o.t.Errorf("key %q was completed by claim %d and then by %d", c.Key, k.completed, c.Token)
		case k.completed == 0:
			k.completed, k.completedAt = c.Token, time.Now()
		}
	}
	return held, err
}

func (o *oracle) Release(ctx context.Context, batch []idempotency.Claim) ([]bool, error) {
	o.mu.Lock()
	for _, c := range batch {
		if k := o.truth(c.Key); k.latest == c.Token {
			k.releasing = true
		}
	}
	o.mu.Unlock()
	return o.Store.Release(ctx, batch)
}

func (o *oracle) Extend(ctx context.Context, batch []idempotency.Extension) ([]bool, error) {
	asked := time.Now()
	held, err := o.Store.Extend(ctx, batch)
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, ok := range held {
		if k := o.truth(batch[i].Key); ok && k.latest == batch[i].Token {
			k.holds = asked.Add(batch[i].Lease)
		}
	}
	return held, err
}
