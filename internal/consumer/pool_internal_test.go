package consumer

import (
	"slices"
	"testing"
)

// TestWaitingForAQueueTakesNoPlaces: each consumer of a pool waits for its queue with a receive of
// as many messages as there are places, whether or not the others do.
func TestWaitingForAQueueTakesNoPlaces(t *testing.T) {
	p := NewPool(MaxBatch)
	for n := range 4 {
		c := at(New(Settings{Concurrency: MaxBatch, Settings: leased}), 0)
		p.Join(c, Share{Weight: 1}, true)
		c.Start(false)
		if got := effects(c, Receive); len(got) != 1 || got[0].N != MaxBatch {
			t.Errorf("consumer %d makes the receives %+v, want one of ten messages", n+1, got)
		}
	}
}

// TestOwnConcurrencyInAPool: a consumer may take all places of its pool, however many there are,
// until it is given a concurrency of its own.
func TestOwnConcurrencyInAPool(t *testing.T) {
	p := NewPool(5)
	c := at(New(Settings{Settings: leased}), 0)
	p.Join(c, Share{Weight: 1}, true)
	check := func(want int) {
		t.Helper()
		if got := c.Status(c.now).Concurrency; got != want {
			t.Errorf("its concurrency is %d, want %d", got, want)
		}
	}
	check(5)
	p.SetConcurrency(20, c.now)
	check(20)
	c.SetConcurrency(3)
	check(3)
	p.SetConcurrency(50, c.now)
	check(3)
}

// TestLeavingAPool: a consumer that has left its pool has no part in it.
func TestLeavingAPool(t *testing.T) {
	p := NewPool(5)
	stays, leaves := at(New(Settings{Settings: leased}), 0), at(New(Settings{Settings: leased}), 0)
	p.Join(stays, Share{Weight: 1}, true)
	p.Join(leaves, Share{Weight: 1}, true)
	leaves.Close()
	if !p.Leave(leaves) {
		t.Fatal("it has not left")
	}
	if left := slices.Collect(p.Each); !slices.Equal(left, []*Machine{stays}) {
		t.Errorf("the pool has %d consumers, want the one that stays", len(left))
	}
}
