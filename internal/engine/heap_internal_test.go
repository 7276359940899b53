package engine

import (
	"maps"
	"math/rand/v2"
	"testing"
)

// FuzzHeap compares the heap with a map: each pair of bytes is an operation on
// an item.
func FuzzHeap(f *testing.F) {
	f.Add([]byte{1, 9, 2, 8, 3, 7, 4, 6, 5, 5, 0x81, 0, 0x83, 0})
	f.Add([]byte{1, 5, 2, 5, 3, 5, 0x82, 0, 1, 6}) // equal keys
	f.Fuzz(func(t *testing.T, ops []byte) {
		var h heap
		model := map[uint32]int64{}
		for ; len(ops) >= 2; ops = ops[2:] {
			item := uint32(ops[0]&0x7f) + 1
			if ops[0]&0x80 != 0 {
				h.remove(item)
				delete(model, item)
			} else {
				key := int64(int8(ops[1]))
				h.set(item, key)
				model[item] = key
			}
			compareHeap(t, &h, model)
		}
		drain(t, &h, model)
	})
}

func TestHeapOfManyRandomItems(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var h heap
	model := map[uint32]int64{}
	for range 20_000 {
		item := uint32(r.IntN(5000)) + 1
		if r.IntN(3) == 0 {
			h.remove(item)
			delete(model, item)
			continue
		}
		key := r.Int64N(1000)
		h.set(item, key)
		model[item] = key
	}
	drain(t, &h, model)
}

func TestResetHeapIsEmpty(t *testing.T) {
	for _, n := range []uint32{1, chunkSize - 1, 10 * chunkSize} {
		var h heap
		for item := uint32(1); item <= n; item++ {
			h.set(item, int64(item))
		}
		h.reset()
		compareHeap(t, &h, nil)
		if n > chunkSize && cap(h.positions)+cap(h.entries) > 0 {
			t.Errorf("after %d items: room for %d entries and %d positions is kept", n, cap(h.entries), cap(h.positions))
		}
	}
}

func compareHeap(t *testing.T, h *heap, model map[uint32]int64) {
	t.Helper()
	if h.len() != len(model) {
		t.Fatalf("len %d, want %d", h.len(), len(model))
	}
	for item := uint32(1); item <= 128; item++ {
		key, ok := model[item]
		if h.has(item) != ok {
			t.Fatalf("has(%d) = %v, want %v", item, h.has(item), ok)
		}
		if ok && h.key(item) != key {
			t.Fatalf("key(%d) = %d, want %d", item, h.key(item), key)
		}
	}
	got, ok := h.first()
	if want, wantOK := least(model); ok != wantOK || got != want {
		t.Fatalf("first: got %v %v, want %v %v", got, ok, want, wantOK)
	}
}

// drain empties the heap and checks that the items come in order.
func drain(t *testing.T, h *heap, model map[uint32]int64) {
	t.Helper()
	previous := entry{key: never}
	for seen := maps.Clone(model); len(seen) > 0; {
		got, ok := h.first()
		if key, in := seen[got.item]; !ok || !in || key != got.key || !previous.before(got) {
			t.Fatalf("drained %v %v after %v, which the model has as %v %v", got, ok, previous, key, in)
		}
		h.remove(got.item)
		delete(seen, got.item)
		previous = got
	}
	if h.len() != 0 {
		t.Fatalf("%d entries left", h.len())
	}
}

func least(model map[uint32]int64) (out entry, ok bool) {
	for item, key := range model {
		if e := (entry{key, item}); !ok || e.before(out) {
			out, ok = e, true
		}
	}
	return out, ok
}
