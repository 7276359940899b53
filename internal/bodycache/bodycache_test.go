package bodycache_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/reprise-sqs/reprise/internal/bodycache"
	"github.com/reprise-sqs/reprise/internal/engine"
)

// has returns which of the contents are in the cache. It uses them, in that order.
func has(t *testing.T, c *bodycache.Cache, ids ...uint64) (found []uint64) {
	t.Helper()
	deliveries := make([]engine.Delivery, len(ids))
	for i, id := range ids {
		deliveries[i].SendNumber = id
	}
	missing := c.Fill(deliveries)
	for i := range deliveries {
		d := &deliveries[i]
		switch {
		case d.Payload == nil:
			if !slices.Contains(missing, d) {
				t.Errorf("%d is not in the cache, and not said to be missing", d.SendNumber)
			}
		case d.Payload != d.SendNumber:
			t.Errorf("the content of %d is %v", d.SendNumber, d.Payload)
		default:
			found = append(found, d.SendNumber)
		}
	}
	if len(found)+len(missing) != len(ids) {
		t.Errorf("%d found and %d missing of %d", len(found), len(missing), len(ids))
	}
	return found
}

func add(c *bodycache.Cache, commit uint64, ids ...uint64) {
	for _, id := range ids {
		c.Add(id, id, 600, commit) // 1,000 with the overhead
	}
}

func TestLeastRecentlyUsedGoesFirst(t *testing.T) {
	c := bodycache.New(3000)
	add(c, 0, 1, 2, 3)
	has(t, c, 1)
	add(c, 0, 4)
	if got := has(t, c, 1, 2, 3, 4); !slices.Equal(got, []uint64{1, 3, 4}) {
		t.Errorf("the cache has %v, want all but 2", got)
	}
	c.Remove(3)
	c.Remove(100)
	add(c, 0, 5)
	if got := has(t, c, 1, 3, 4, 5); !slices.Equal(got, []uint64{1, 4, 5}) {
		t.Errorf("the cache has %v, want all but the one removed", got)
	}
	c.Add(6, uint64(6), 5000, 0)
	if got := has(t, c, 1, 4, 5, 6); got != nil {
		t.Errorf("the cache has %v after one that is larger than it", got)
	}
}

// TestFirstGoesFirst: also while nothing was used since it was added.
func TestFirstGoesFirst(t *testing.T) {
	c := bodycache.New(2000)
	add(c, 0, 1, 2, 3)
	if got := has(t, c, 1, 2, 3); !slices.Equal(got, []uint64{2, 3}) {
		t.Errorf("the cache has %v, want all but the first", got)
	}
}

func TestUncommittedIsNeverDropped(t *testing.T) {
	for _, c := range []*bodycache.Cache{bodycache.New(0), {}} {
		add(c, 1, 1, 2)
		add(c, 2, 3)
		if got := has(t, c, 1, 2, 3); len(got) != 3 {
			t.Errorf("the cache has %v before the commits", got)
		}
		c.Committed(1)
		if got := has(t, c, 1, 2, 3); !slices.Equal(got, []uint64{3}) {
			t.Errorf("the cache has %v after the first commit", got)
		}
		c.Committed(2)
		if got := has(t, c, 3); got != nil {
			t.Errorf("the cache has %v after the second commit", got)
		}
	}
}

// TestUncommittedKeepsNothingElse: while a commit takes long, what others read does not stay beyond the bound.
func TestUncommittedKeepsNothingElse(t *testing.T) {
	c := bodycache.New(3000)
	add(c, 1, 1)
	add(c, 0, 2, 3, 4, 5, 6)
	if got := has(t, c, 1, 2, 3, 4, 5, 6); !slices.Equal(got, []uint64{1, 5, 6}) {
		t.Errorf("the cache has %v during the commit, want the one that is written and the last two", got)
	}
	c.Committed(1)
	add(c, 0, 7, 8)
	if got := has(t, c, 1, 5, 6, 7, 8); !slices.Equal(got, []uint64{1, 7, 8}) {
		t.Errorf("the cache has %v after it, want the one that was written and the last two", got)
	}
	add(c, 0, 9)
	if got := has(t, c, 1, 7, 8, 9); len(got) != 3 {
		t.Errorf("the cache has %v, want three", got)
	}
}

func TestFillLeavesWhatThereIs(t *testing.T) {
	c := bodycache.New(3000)
	add(c, 0, 1)
	deliveries := []engine.Delivery{{SendNumber: 1}, {SendNumber: 2}}
	deliveries[0].Payload, deliveries[1].Payload = "own", "own"
	if missing := c.Fill(deliveries); missing != nil || deliveries[0].Payload != "own" {
		t.Errorf("filled to %v, missing %v", deliveries[0].Payload, missing)
	}
	c.Add(1, "another", 600, 0) // as by a second receive that read it at once
	has(t, c, 1)
}

// TestBound: whatever happens, the cache holds at most as many committed contents as fit.
func TestBound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const fit = 10
	c := bodycache.New(fit * 1000)
	var newest []uint64 // committed or not, the most recently used last
	forget := func(id uint64) {
		newest = slices.DeleteFunc(newest, func(other uint64) bool { return other == id })
	}
	for range 10_000 {
		id := random.Uint64N(40)
		switch random.IntN(3) {
		case 0:
			if !slices.Contains(newest, id) {
				add(c, 0, id)
				newest = append(newest, id)
			}
		case 1:
			if has(t, c, id) != nil {
				forget(id)
				newest = append(newest, id)
			}
		case 2:
			c.Remove(id)
			forget(id)
		}
		newest = newest[max(0, len(newest)-fit):]
	}
	if got := has(t, c, newest...); !slices.Equal(got, newest) || len(got) == 0 {
		t.Errorf("the cache has %v, want %v", got, newest)
	}
	all := 0
	for id := range uint64(40) {
		all += len(has(t, c, id))
	}
	if all != len(newest) {
		t.Errorf("the cache has %d contents, want %d", all, len(newest))
	}
}
