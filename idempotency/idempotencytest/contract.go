package idempotencytest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/reprise-sqs/reprise/idempotency"
)

// contract is the contract of a store, one test for each rule.
var contract = []struct {
	name string
	test func(*testing.T, *subject)
}{
	{"ClaimExcludesOthers", claimExcludesOthers},
	{"ClaimEndsWithItsLease", claimEndsWithItsLease},
	{"ExtensionKeepsTheClaim", extensionKeepsTheClaim},
	{"ExtensionOutlastsTheRetention", extensionOutlastsTheRetention},
	{"CompletionIsRemembered", completionIsRemembered},
	{"CompletionIsRepeatable", completionIsRepeatable},
	{"CompletionAfterTheLease", completionAfterTheLease},
	{"CompletionIsForgottenAfterItsRetention", completionIsForgotten},
	{"ReleaseFreesTheKey", releaseFreesTheKey},
	{"CompletionIsNotUndone", completionIsNotUndone},
	{"StaleClaimIsFencedOff", staleClaimIsFencedOff},
	{"UnknownKeys", unknownKeys},
	{"Digests", digests},
	{"AnswersByPosition", answersByPosition},
	{"KeysAreExact", keysAreExact},
	{"ResultsAreExact", resultsAreExact},
	{"EmptyBatch", emptyBatch},
	{"OneOfManyAcquires", oneOfManyAcquires},
	{"CrossingBatches", crossingBatches},
	{"EndedContext", endedContext},
}

// claimExcludesOthers: while a claim holds, no other request gets one.
func claimExcludesOthers(t *testing.T, s *subject) {
	s.claim(t, "key", long)
	for range 3 {
		wantInProgress(t, s.acquire(t, "key", long), long)
	}
	s.claim(t, "another key", long)
}

// claimEndsWithItsLease: a claim whose process was killed does not block others any longer, and the
// next claim has a larger token.
func claimEndsWithItsLease(t *testing.T, s *subject) {
	first := s.claim(t, "key", short)
	wait()
	if second := s.claim(t, "key", long); second.Token <= first.Token {
		t.Errorf("token %d came after %d: a later claim's is larger", second.Token, first.Token)
	}
}

// extensionKeepsTheClaim: it begins the lease anew, shorter or longer, and also after its end if no
// other claim has been made.
func extensionKeepsTheClaim(t *testing.T, s *subject) {
	c := s.claim(t, "longer", short)
	want(t, s.extend(t, c, long), true, "the claim holds")
	late := s.claim(t, "late", short)
	shorter := s.claim(t, "shorter", long)
	want(t, s.extend(t, shorter, short), true, "the claim holds")
	wait()
	wantInProgress(t, s.acquire(t, "longer", long), long)
	want(t, s.extend(t, late, long), true, "nobody has acquired the key since its lease ended")
	wantInProgress(t, s.acquire(t, "late", long), long)
	s.claim(t, "shorter", long)
	want(t, s.complete(t, c, "result"), true, "the extended claim is the same claim")
}

// extensionOutlastsTheRetention: the retention applies only to claims that have ended.
func extensionOutlastsTheRetention(t *testing.T, s *subject) {
	a := s.ask(t, idempotency.Request{Key: "key", Lease: short, Retention: short})
	c := idempotency.Claim{Key: "key", Token: a.Token}
	want(t, s.extend(t, c, long), true, "the claim holds")
	wait()
	wantInProgress(t, s.acquire(t, "key", long), long)
	want(t, s.complete(t, c, "result"), true, "the claim holds")
}

// completionIsRemembered with its result, beyond the lease.
func completionIsRemembered(t *testing.T, s *subject) {
	c := s.claim(t, "key", short)
	want(t, s.complete(t, c, "result"), true, "the claim holds")
	wantCompleted(t, s.acquire(t, "key", long), "result")
	wait()
	wantCompleted(t, s.acquire(t, "key", long), "result")
}

// completionIsRepeatable, because the reply to the first may have been lost.
func completionIsRepeatable(t *testing.T, s *subject) {
	c := s.claim(t, "key", long)
	want(t, s.complete(t, c, "first"), true, "the claim holds")
	want(t, s.complete(t, c, "second"), true, "the same claim has completed the key")
	wantCompleted(t, s.acquire(t, "key", long), "first")
}

// completionAfterTheLease: work that took too long counts as done if no other claim has been made.
func completionAfterTheLease(t *testing.T, s *subject) {
	c := s.claim(t, "key", short)
	wait()
	want(t, s.complete(t, c, "result"), true, "nobody has acquired the key since its lease ended")
	wantCompleted(t, s.acquire(t, "key", long), "result")
}

// completionIsForgotten after its retention, even where the lease would have been
// longer.
func completionIsForgotten(t *testing.T, s *subject) {
	c := s.claim(t, "key", long)
	held, err := s.Complete(t.Context(), []idempotency.Completion{{Claim: c, Result: []byte("result"), Retention: short}})
	want(t, one(t, "Complete", "key", held, err), true, "the claim holds")
	wait()
	again := s.claim(t, "key", long)
	if again.Token <= c.Token {
		t.Errorf("token %d came after %d: a later claim's is larger", again.Token, c.Token)
	}
	wantInProgress(t, s.acquire(t, "key", long), long)
}

// releaseFreesTheKey at once, for the same process or another, once.
func releaseFreesTheKey(t *testing.T, s *subject) {
	first := s.claim(t, "key", long)
	want(t, s.release(t, first), true, "the claim holds")
	second := s.claim(t, "key", long)
	if second.Token <= first.Token {
		t.Errorf("token %d came after %d: a later claim's is larger", second.Token, first.Token)
	}
	want(t, s.complete(t, second, "result"), true, "the claim holds")
}

// completionIsNotUndone by later calls for the claim.
func completionIsNotUndone(t *testing.T, s *subject) {
	c := s.claim(t, "key", long)
	want(t, s.complete(t, c, "result"), true, "the claim holds")
	want(t, s.release(t, c), false, "the key is completed")
	want(t, s.extend(t, c, short), false, "the key is completed")
	wantCompleted(t, s.acquire(t, "key", long), "result")
}

// staleClaimIsFencedOff: once overtaken, a claim changes nothing any more, whatever has happened to
// the other.
func staleClaimIsFencedOff(t *testing.T, s *subject) {
	stale := s.claim(t, "key", short)
	wait()
	current := s.claim(t, "key", long)
	refused := func(when string) {
		t.Helper()
		want(t, s.extend(t, stale, short), false, "an Extend of a claim that was overtaken, "+when)
		want(t, s.release(t, stale), false, "a Release of a claim that was overtaken, "+when)
		want(t, s.complete(t, stale, "stale"), false, "a Complete of a claim that was overtaken, "+when)
	}
	refused("while the other holds")
	wantInProgress(t, s.acquire(t, "key", long), long)
	want(t, s.complete(t, current, "current"), true, "the claim holds")
	refused("after the other completed")
	wantCompleted(t, s.acquire(t, "key", long), "current")
}

// unknownKeys: a claim of a record that does not exist, because it was forgotten for example.
func unknownKeys(t *testing.T, s *subject) {
	c := idempotency.Claim{Key: "key", Token: 1}
	want(t, s.complete(t, c, "result"), false, "there is no such claim")
	want(t, s.release(t, c), false, "there is no such claim")
	want(t, s.extend(t, c, long), false, "there is no such claim")
	s.claim(t, "key", long)
}

// digests distinguish payloads once a key is completed. Until then nothing is decided: a request
// with another payload waits, or gets the key.
func digests(t *testing.T, s *subject) {
	ask := func(digest string) idempotency.Answer {
		t.Helper()
		return s.ask(t, idempotency.Request{Key: "key", Digest: []byte(digest), Lease: long, Retention: long})
	}
	first := ask("first")
	wantInProgress(t, ask("other"), long)
	want(t, s.release(t, idempotency.Claim{Key: "key", Token: first.Token}), true, "the claim holds")
	second := ask("second")
	want(t, s.complete(t, idempotency.Claim{Key: "key", Token: second.Token}, "result"), true, "the claim holds")
	for _, digest := range []string{"first", "secon", "second2"} {
		if a := ask(digest); a.State != idempotency.Mismatched || a.Result != nil {
			t.Errorf("Acquire with digest %q of a key completed with %q: %v, result %q; want %v, no result", digest, "second", a.State, a.Result, idempotency.Mismatched)
		}
	}
	wantCompleted(t, ask("second"), "result")
	wantCompleted(t, ask(""), "result") // payloads are not compared

	s.complete(t, s.claim(t, "without", long), "result")
	a := s.ask(t, idempotency.Request{Key: "without", Digest: []byte{0, 1, 0xff}, Lease: long, Retention: long})
	wantCompleted(t, a, "result")
}

// answersByPosition: in a batch each member has its own answer, at its place.
func answersByPosition(t *testing.T, s *subject) {
	const size = 40
	key := func(i int) string { return fmt.Sprintf("key-%d", (i*17)%size) } // in no order
	requests := make([]idempotency.Request, size)
	var completed, stale []idempotency.Claim
	for i := range requests {
		requests[i] = idempotency.Request{Key: key(i), Lease: long, Retention: long}
		switch i % 4 {
		case 1:
			s.claim(t, key(i), long)
		case 2:
			c := s.claim(t, key(i), long)
			s.complete(t, c, "result of "+key(i))
			completed = append(completed, c)
		case 3:
			c := s.claim(t, key(i), long)
			s.release(t, c)
			stale = append(stale, c)
		}
	}
	answers, err := s.Acquire(t.Context(), requests)
	if err != nil || len(answers) != size {
		t.Fatalf("Acquire of a batch of %d: %d answers, %v", size, len(answers), err)
	}
	var claims []idempotency.Claim
	for i, a := range answers {
		switch i % 4 {
		case 1:
			wantInProgress(t, a, long)
		case 2:
			wantCompleted(t, a, "result of "+key(i))
		default:
			if a.State != idempotency.Acquired || a.Token <= 0 {
				t.Errorf("Acquire of the free key %q in a batch: %v, token %d", key(i), a.State, a.Token)
			}
			claims = append(claims, idempotency.Claim{Key: key(i), Token: a.Token})
		}
	}

	var mixed []idempotency.Claim // one of each: held, stale, completed
	var held []bool
	for i := range stale {
		mixed = append(mixed, claims[2*i], stale[i], completed[i])
		held = append(held, true, false, false)
	}
	mixed, held = distinct(mixed, held)
	extensions := make([]idempotency.Extension, len(mixed))
	for i, c := range mixed {
		extensions[i] = idempotency.Extension{Claim: c, Lease: long}
	}
	extended, err := s.Extend(t.Context(), extensions)
	wantAll(t, "Extend", mixed, extended, held, err)
	released, err := s.Release(t.Context(), mixed)
	wantAll(t, "Release", mixed, released, held, err)

	var again []idempotency.Completion
	for i, c := range completed {
		again = append(again, idempotency.Completion{Claim: c, Retention: long}, idempotency.Completion{Claim: idempotency.Claim{Key: fmt.Sprint("unknown-", i), Token: 7}, Retention: long})
	}
	done, err := s.Complete(t.Context(), again)
	for i, ok := range done {
		want(t, ok, i%2 == 0, "a batch of claims that completed their keys, and unknown ones, in turn")
	}
	if err != nil || len(done) != len(again) {
		t.Errorf("Complete of a batch of %d: %d answers, %v", len(again), len(done), err)
	}
}

// keysAreExact: no folding, trimming, truncation or interpretation.
func keysAreExact(t *testing.T, s *subject) {
	keys := []string{
		"a", "A", " a", "a ", "a%", "a_", "a*", "ä", "a\u0308", "ß", "ss", "'; DROP TABLE records; --", `"`, `\`, `\\`, "{a}", "a:b", "a b", "null", "0", "00",
		"鍵", "🔑", "\u2028", "<&>", strings.Repeat("k", 254), strings.Repeat("k", 255), strings.Repeat("é", 127),
	}
	for _, key := range keys {
		s.complete(t, s.claim(t, key, long), "result of "+key)
	}
	for _, key := range keys {
		wantCompleted(t, s.acquire(t, key, long), "result of "+key)
	}
}

// resultsAreExact: any bytes, none, and as many as the middleware permits.
func resultsAreExact(t *testing.T, s *subject) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for i, result := range []string{"", "\x00", string(every), strings.Repeat(string(every), 1024)} {
		key := fmt.Sprint("key-", i)
		want(t, s.complete(t, s.claim(t, key, long), result), true, "the claim holds")
		if a := s.acquire(t, key, long); a.State != idempotency.Completed || string(a.Result) != result {
			t.Errorf("a result of %d bytes came back as %d, with the state %v", len(result), len(a.Result), a.State)
		}
	}
}

// emptyBatch: an empty batch gets an empty answer.
func emptyBatch(t *testing.T, s *subject) {
	answers, err := s.Acquire(t.Context(), nil)
	if len(answers) != 0 || err != nil {
		t.Errorf("Acquire of nothing: %v, %v", answers, err)
	}
	held, err := s.Release(t.Context(), nil)
	if len(held) != 0 || err != nil {
		t.Errorf("Release of nothing: %v, %v", held, err)
	}
}

// oneOfManyAcquires: exactly one of several simultaneous requests gets the key, when it is new and
// when its lease has ended.
func oneOfManyAcquires(t *testing.T, s *subject) {
	s.claim(t, "lapsed", short)
	wait()
	for _, key := range []string{"new", "lapsed"} {
		var acquired atomic.Int32
		var crowd sync.WaitGroup
		for range 16 {
			crowd.Go(func() {
				switch a := s.acquire(t, key, long); a.State {
				case idempotency.Acquired:
					acquired.Add(1)
				case idempotency.InProgress:
				default:
					t.Errorf("the %s key: %v", key, a.State)
				}
			})
		}
		crowd.Wait()
		if n := acquired.Load(); n != 1 {
			t.Errorf("%d of 16 acquired the %s key, want 1", n, key)
		}
	}
}

// crossingBatches: batches that request the same keys in opposite orders do not block each other,
// and each key goes to one of them.
func crossingBatches(t *testing.T, s *subject) {
	const keys, batches = 30, 8
	var mu sync.Mutex
	owners := make(map[string]idempotency.Token)
	var crowd sync.WaitGroup
	for b := range batches {
		crowd.Go(func() {
			requests := make([]idempotency.Request, keys)
			for i := range requests {
				requests[i] = idempotency.Request{Key: fmt.Sprint("key-", i), Lease: long, Retention: long}
			}
			if b%2 == 1 {
				slices.Reverse(requests)
			}
			for range 3 {
				answers, err := s.Acquire(t.Context(), requests)
				if err != nil {
					t.Errorf("Acquire beside others: %v", err)
					return
				}
				var mine []idempotency.Completion
				mu.Lock()
				for i, a := range answers {
					if a.State != idempotency.Acquired {
						continue
					}
					key := requests[i].Key
					if owners[key] != 0 {
						t.Errorf("key %q was acquired twice", key)
					}
					owners[key] = a.Token
					mine = append(mine, idempotency.Completion{Claim: idempotency.Claim{Key: key, Token: a.Token}, Retention: long})
				}
				mu.Unlock()
				if held, err := s.Complete(t.Context(), mine); err != nil || slices.Contains(held, false) {
					t.Errorf("Complete beside others: %v, %v", held, err)
				}
			}
		})
	}
	crowd.Wait()
	if len(owners) != keys {
		t.Errorf("%d of %d keys were acquired", len(owners), keys)
	}
}

// endedContext: a store does not work for a caller that has gone.
func endedContext(t *testing.T, s *subject) {
	if _, err := s.Acquire(cancelled(), []idempotency.Request{{Key: "key", Lease: long, Retention: long}}); err == nil {
		t.Error("Acquire with a context that had ended: no error")
	}
	if _, err := s.Complete(cancelled(), []idempotency.Completion{{Claim: idempotency.Claim{Key: "key", Token: 1}, Retention: long}}); err == nil {
		t.Error("Complete with a context that had ended: no error")
	}
}
