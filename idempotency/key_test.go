package idempotency_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

func TestKeyFunctions(t *testing.T) {
	m := &reprise.Message{
		ID: "copy", OriginID: "origin", GroupID: "tenant:1", DeduplicationID: "d-1",
		Body: `{"order": {"id": "o-1", "n": 1.50, "big": 12345678901234567890, "paid": true, "a/b": "slash", "m~n": "tilde", "": "empty name", "lines": [{"sku": "x"}, {"sku": "y"}], "none": null}}`,
		Attributes: map[string]types.MessageAttributeValue{
			"idempotency-key": {DataType: aws.String("String"), StringValue: aws.String("k-1")},
			"bytes":           {DataType: aws.String("Binary"), BinaryValue: []byte{1, 0xab}},
		},
	}
	for _, c := range []struct {
		name string
		key  idempotency.KeyFunc
		want string // of an error, if it begins with "error: "
	}{
		{"origin", idempotency.ByOrigin, "origin.D9BdBhaI7olyFsbJ_pBEAg"},
		{"attribute", idempotency.ByAttribute("idempotency-key"), "k-1"},
		{"binary attribute", idempotency.ByAttribute("bytes"), "01ab"},
		{"no attribute", idempotency.ByAttribute("nope"), `error: the message has no attribute "nope"`},
		{"string", idempotency.ByJSON("/order/id"), "o-1"},
		{"number as written", idempotency.ByJSON("/order/n"), "1.50"},
		{"large number", idempotency.ByJSON("/order/big"), "12345678901234567890"},
		{"boolean", idempotency.ByJSON("/order/paid"), "true"},
		{"slash in a name", idempotency.ByJSON("/order/a~1b"), "slash"},
		{"tilde in a name", idempotency.ByJSON("/order/m~0n"), "tilde"},
		{"empty name", idempotency.ByJSON("/order/"), "empty name"},
		{"element", idempotency.ByJSON("/order/lines/1/sku"), "y"},
		{"no element", idempotency.ByJSON("/order/lines/2/sku"), `error: looking up "/order/lines/2/sku" in the body: there is no element "2"`},
		{"negative element", idempotency.ByJSON("/order/lines/-1/sku"), `error: looking up "/order/lines/-1/sku" in the body: there is no element "-1"`},
		{"no member", idempotency.ByJSON("/order/nope"), `error: looking up "/order/nope" in the body: there is no "nope"`},
		{"inside a string", idempotency.ByJSON("/order/id/x"), `error: looking up "/order/id/x" in the body: the parent of "x" is not an object or array`},
		{"object", idempotency.ByJSON("/order"), `error: looking up "/order" in the body: the value is not a string, number or boolean`},
		{"null", idempotency.ByJSON("/order/none"), `error: looking up "/order/none" in the body: the value is not a string, number or boolean`},
		{"no pointer", idempotency.ByJSON("order"), `error: looking up "order" in the body: a JSON Pointer is empty or begins with a slash`},
		{"group", idempotency.ByGroup(idempotency.ByJSON("/order/id")), "8:tenant:1:o-1"},
		{"deduplication id", idempotency.ByDeduplicationID, "8:tenant:1:d-1"},
		{"group, no key", idempotency.ByGroup(idempotency.ByAttribute("nope")), `error: the message has no attribute "nope"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.key(m)
			if err != nil {
				got = "error: " + err.Error()
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("key (-want +got):\n%s", diff)
			}
		})
	}
}

// TestByBodyTellsBodiesApart and nothing else.
func TestByBodyTellsBodiesApart(t *testing.T) {
	key := func(id, body string) string {
		k, err := idempotency.ByBody(&reprise.Message{ID: id, Body: body})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	if a, b := key("1", "body"), key("2", "body"); a != b || a != "230d8358dc8e8890b4c58deeb62912ee2f20357ae92a5cc861b98e68fe31acb5" {
		t.Errorf("keys of equal bodies: %q, %q; want their SHA-256", a, b)
	}
	if key("1", "body") == key("1", "body ") {
		t.Error("different bodies have the same key")
	}
}

// TestSentAgainAfterSQSHasForgotten: a FIFO queue drops what is sent again within five
// minutes, the middleware what comes later, in the same group.
func TestSentAgainAfterSQSHasForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, map[string]string{"FifoQueue": "true"})
		once, _ := guard(t, idempotency.NewMemory(idempotency.MemoryConfig{}), idempotency.Config{Key: idempotency.ByDeduplicationID})
		var ran []string
		q.Consume(once(handler(func(_ context.Context, m *reprise.Message) error {
			ran = append(ran, m.GroupID+"/"+m.DeduplicationID)
			return nil
		})), reprise.Config{Concurrency: 1})
		for range 3 {
			for _, group := range []string{"a", "b"} {
				q.SendMessage(sqsserver.SendMessageEntry{MessageBody: "body", MessageGroupId: group, MessageDeduplicationId: "d-" + group})
			}
			q.WaitEmpty(time.Hour)
			time.Sleep(time.Hour)
		}
		slices.Sort(ran)
		if diff := cmp.Diff([]string{"a/d-a", "b/d-b"}, ran); diff != "" {
			t.Errorf("runs (-want +got):\n%s", diff)
		}
	})
}

// TestNoDeduplicationID is an error that says why.
func TestNoDeduplicationID(t *testing.T) {
	if _, err := idempotency.ByDeduplicationID(message("m")); err == nil || !strings.Contains(err.Error(), "FIFO") {
		t.Error(err)
	}
}

// keys is a store that notes the keys it is asked for.
type keys struct {
	*idempotency.Memory
	asked []string
}

func (k *keys) Acquire(ctx context.Context, batch []idempotency.Request) ([]idempotency.Answer, error) {
	for _, r := range batch {
		k.asked = append(k.asked, r.Key)
	}
	return k.Memory.Acquire(ctx, batch)
}

// TestKeysThatNoStoreKeepsAreDigested, so that one odd message cannot make a batch
// fail.
func TestKeysThatNoStoreKeepsAreDigested(t *testing.T) {
	store := &keys{Memory: idempotency.NewMemory(idempotency.MemoryConfig{})}
	once, _ := guard(t, store, idempotency.Config{Prefix: "p/", Key: func(m *reprise.Message) (string, error) { return m.Body, nil }})
	odd := []string{"a\x00", "\xff", "a\nb", strings.Repeat("k", 254)}
	for _, body := range append(odd, "plain", strings.Repeat("k", 253)) {
		if err := once(handler(func(context.Context, *reprise.Message) error { return nil })).Handle(t.Context(), &reprise.Message{ID: "1", Body: body}); err != nil {
			t.Errorf("%q: %v", body, err)
		}
	}
	for i, key := range store.asked {
		digested := strings.HasPrefix(key, "p/sha256:") && len(key) == len("p/sha256:")+64
		if digested != (i < len(odd)) || !strings.HasPrefix(key, "p/") {
			t.Errorf("key %d is %q", i, key)
		}
	}
	distinct := make(map[string]bool)
	for _, key := range store.asked {
		distinct[key] = true
	}
	if len(distinct) != 6 {
		t.Errorf("%d different keys, want 6: %q", len(distinct), store.asked)
	}
}

// digests is a memory store that notes the digests that it is asked with.
type digests struct {
	*idempotency.Memory
	asked [][]byte
}

func (d *digests) Acquire(ctx context.Context, batch []idempotency.Request) ([]idempotency.Answer, error) {
	for _, r := range batch {
		d.asked = append(d.asked, r.Digest)
	}
	return d.Memory.Acquire(ctx, batch)
}

// TestLongDigestsAreDigested: a function may return the payload itself: the store gets a short
// digest, and payloads that differ anywhere have different ones.
func TestLongDigestsAreDigested(t *testing.T) {
	store := &digests{Memory: idempotency.NewMemory(idempotency.MemoryConfig{})}
	once, _ := guard(t, store, idempotency.Config{Digest: func(m *reprise.Message) []byte { return []byte(m.Body) }})
	long := strings.Repeat("x", 64)
	for _, c := range []struct {
		id, body   string
		mismatched bool
	}{
		{"1", long, false}, {"1", long + "y", true},
		{"2", long + "y", false}, {"2", long + "z", true}, {"2", long + "y", false},
	} {
		err := once(handler(func(context.Context, *reprise.Message) error { return nil })).Handle(t.Context(), &reprise.Message{ID: c.id, Body: c.body})
		if errors.Is(err, idempotency.ErrMismatch) != c.mismatched || err != nil && !c.mismatched {
			t.Errorf("message %s, %q: %v; want a mismatch: %v", c.id, c.body, err, c.mismatched)
		}
	}
	if len(store.asked) != 5 || string(store.asked[0]) != long {
		t.Errorf("%d digests, the first is %q; want 5, the first as it is", len(store.asked), store.asked[0])
	}
	for _, digest := range store.asked {
		if len(digest) > 64 {
			t.Errorf("the store was asked with a digest of %d bytes, want at most 64", len(digest))
		}
	}
}

// TestMessageWithoutAKeyIsDeadLettered: no retry can give it one.
func TestMessageWithoutAKeyIsDeadLettered(t *testing.T) {
	for name, key := range map[string]idempotency.KeyFunc{
		"empty": func(*reprise.Message) (string, error) { return "", nil },
		"error": func(*reprise.Message) (string, error) { return "", errors.New("no id") },
	} {
		t.Run(name, func(t *testing.T) {
			once, _ := guard(t, idempotency.NewMemory(idempotency.MemoryConfig{}), idempotency.Config{Key: key})
			err := once(handler(nil)).Handle(t.Context(), message("m"))
			if action, _ := decision(err); action != retry.ActionDeadLetter || !strings.Contains(err.Error(), "idempotency key") {
				t.Errorf("%v, %v; want the message dead-lettered for its key", action, err)
			}
		})
	}
}

// FuzzByJSON: no body and no pointer makes it panic, and what it finds is a key.
func FuzzByJSON(f *testing.F) {
	f.Add(`{"a": [1, {"b": "c"}]}`, "/a/1/b")
	f.Add(`[]`, "/0")
	f.Add(`"s"`, "")
	f.Fuzz(func(t *testing.T, body, pointer string) {
		key, err := idempotency.ByJSON(pointer)(&reprise.Message{Body: body})
		if err != nil && key != "" {
			t.Errorf("key %q and error %v", key, err)
		}
	})
}
