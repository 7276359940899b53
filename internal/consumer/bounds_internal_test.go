package consumer

import (
	"reflect"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/breaker"
	"github.com/reprise-sqs/reprise/internal/carry"
	"github.com/reprise-sqs/reprise/internal/history"
	"github.com/reprise-sqs/reprise/internal/sqslimit"
	"github.com/reprise-sqs/reprise/plan"
)

// TestUncountedReceives: a copy that is received before it is due is replaced if its receives, none of
// which was an attempt, would count as some, and this hide would be the last.
func TestUncountedReceives(t *testing.T) {
	for name, tt := range map[string]struct {
		arrived  time.Duration // before now
		wait     time.Duration
		receives int
		runs     int // of the handler here
		stop     bool
		want     carry.Why
	}{
		"hidden for the first time":  {0, time.Hour, 1, 2, false, carry.Hidden},
		"after eleven hours":         {11*time.Hour + 1, time.Hour, 2, 2, false, carry.Uncounted},
		"back too early, by a fault": {11 * time.Hour, time.Hour, 2, 2, false, carry.Hidden},
		"early, at a stop":           {time.Hour, time.Hour, 2, 2, true, carry.Uncounted},
		"but not for the last time":  {12 * time.Hour, 12 * time.Hour, 2, 2, false, carry.Hidden},
		"held until it is due":       {0, 2 * time.Second, 1, 2, true, carry.Uncounted},
		"a little too early":         {0, 2*time.Second + 1, 1, 2, true, carry.Hidden},
		"it was run, and must wait":  {12 * time.Hour, time.Hour, 2, 3, false, carry.Hidden},
		"it is due":                  {12 * time.Hour, 0, 2, 2, false, carry.Hidden},
	} {
		c := at(New(Settings{Queue: standard, CopyTo: standard, Settings: leased}), 0)
		c.Learned(Facts{Plan: plan.Queue{Retention: 96 * time.Hour}})
		d := &Delivery{ID: "a", Sent: c.now.Add(-tt.arrived), Receives: tt.receives, Attempt: 3}
		c.draining = tt.stop
		received(c, d)
		due := c.now.Add(tt.wait)
		d.History = &Past{History: history.History{Attempt: 2}, Enqueued: d.Sent, Arrived: c.now.Add(-tt.arrived), Due: due}
		c.memory.Note(d.ID, c.now).Runs = tt.runs
		if got := c.via(d, Verdict{Outcome: OutcomePark, Due: due}, c.now); got != tt.want {
			t.Errorf("%s: the cause of a copy is %d, want %d", name, got, tt.want)
		}
	}
}

// TestLargestCopy: a message may be copied if it fits into the queue's limit with its history.
func TestLargestCopy(t *testing.T) {
	for limit, largest := range map[int]int{0: sqslimit.Bytes - historySize, 10_000: 10_000 - historySize, 2 * sqslimit.Bytes: sqslimit.Bytes - historySize} {
		for more, want := range map[int]bool{0: true, 1: false} {
			c := at(New(Settings{Queue: standard, CopyTo: standard, Settings: leased}), 0)
			c.Learned(Facts{Largest: limit})
			d := &Delivery{ID: "a", Size: largest + more}
			if got := c.copyable(d, c.now); got != want || d.uncopyable == want {
				t.Errorf("with a limit of %d bytes, %d more than fit: it can be copied: %v, and that it cannot is noted: %v", limit, more, got, d.uncopyable)
			}
		}
	}
}

// TestRoom: for how many messages there is room, how many are worth a receive, and whether a worker is
// idle because there is no message.
func TestRoom(t *testing.T) {
	type state struct{ running, waiting, reserved, settling, after int }
	for name, tt := range map[string]struct {
		state
		rate             float64
		paused           bool
		free, worthwhile int
		idle             bool
	}{
		"nothing is held":           {free: 15, worthwhile: 7, idle: true},
		"some run":                  {state: state{running: 3}, free: 12, worthwhile: 7, idle: true},
		"all run":                   {state: state{running: 5}, free: 10, worthwhile: 7},
		"some wait for the rest":    {state: state{running: 3, waiting: 1}, free: 11, worthwhile: 7, idle: true},
		"for all of the rest":       {state: state{running: 3, waiting: 2}, free: 10, worthwhile: 7},
		"a receive may bring them":  {state: state{running: 3, reserved: 2}, free: 10, worthwhile: 7},
		"all places are used up":    {state: state{running: 5, waiting: 10}, free: 0, worthwhile: 7},
		"used up by waiting alone":  {state: state{waiting: 15}, free: 0, worthwhile: 7},
		"more than that":            {state: state{running: 4, waiting: 12}, free: -1, worthwhile: 7},
		"it is paused":              {paused: true, worthwhile: 1},
		"settlements are missing":   {state: state{settling: 115}, worthwhile: 1},
		"one fewer":                 {state: state{settling: 114}, free: 15, worthwhile: 7, idle: true},
		"what follows deletes, too": {state: state{settling: 100, after: 15}, worthwhile: 1},
		"which is one fewer":        {state: state{settling: 100, after: 14}, free: 15, worthwhile: 7, idle: true},
		"a rate":                    {rate: 0.5, free: 5, worthwhile: 2, idle: true},
		"a rate, and one waits":     {state: state{waiting: 1}, rate: 0.5, free: 4, worthwhile: 2},
		"a rate, and one may come":  {state: state{reserved: 1}, rate: 0.5, free: 4, worthwhile: 2},
	} {
		c := at(New(Settings{Concurrency: 5, Prefetch: 10, Settings: leased, Rate: tt.rate}), 0)
		c.running, c.waiting, c.reserved, c.settling, c.paused = tt.running, tt.waiting, tt.reserved, tt.settling, tt.paused
		c.after.running, c.after.waiting = min(1, tt.after), make([]Subject, max(0, tt.after-1))
		free, worthwhile, idle := c.room()
		if free != tt.free || worthwhile != tt.worthwhile || idle != tt.idle {
			t.Errorf("%s: there is room for %d, %d are worth it, and a worker is idle: %v; want %d, %d, %v", name, free, worthwhile, idle, tt.free, tt.worthwhile, tt.idle)
		}
	}
}

// TestRoomInBytes: the bytes that are held, and those that a receive may bring by the usual size of a
// message, leave room for so many messages.
func TestRoomInBytes(t *testing.T) {
	for name, tt := range map[string]struct {
		held, typical, reserved int
		free, worthwhile        int
	}{
		"nothing is held":        {0, 100, 0, 10, 5},
		"half":                   {1000, 100, 0, 10, 5},
		"most":                   {1500, 100, 0, 5, 5},
		"a receive is under way": {1000, 100, 5, 5, 5},
		"large ones":             {1000, 500, 0, 2, 2},
		"room for a part of one": {1950, 100, 0, 1, 5},
		"none":                   {2000, 100, 0, 0, 5},
		"none beside a receive":  {1000, 100, 10, 0, 5},
		"of unknown size":        {1000, 0, 0, 10, 5},
	} {
		c := New(Settings{Concurrency: 1, Batch: Batch{Size: 10, Bytes: 1000}, Settings: leased})
		c.batches.held, c.batches.typical, c.reserved = tt.held, tt.typical, tt.reserved
		if free, worthwhile := c.withinBytes(10, 5); free != tt.free || worthwhile != tt.worthwhile {
			t.Errorf("%s: there is room for %d, and %d are worth it, want %d and %d", name, free, worthwhile, tt.free, tt.worthwhile)
		}
	}
}

// TestTypicalSize: the usual size of a message moves by an eighth of the difference.
func TestTypicalSize(t *testing.T) {
	c := New(Settings{Concurrency: 1, Batch: Batch{Size: 10, Bytes: 1000}, Settings: leased})
	for _, tt := range []struct{ size, want int }{{800, 100}, {900, 200}, {200, 200}, {40, 180}} {
		if c.countBytes(&Delivery{Size: tt.size}); c.batches.typical != tt.want {
			t.Errorf("after %d bytes the usual size is %d, want %d", tt.size, c.batches.typical, tt.want)
		}
	}
}

// TestComing: how many places a consumer of a pool is about to take, by the messages that may start,
// those that receives beside the first may bring, and its own concurrency.
func TestComing(t *testing.T) {
	for name, tt := range map[string]struct {
		batch, waiting, shelved, reserved, running int
		paused                                     bool
		want                                       int
	}{
		"none":                       {},
		"one receive waits":          {reserved: 10},
		"two receives":               {reserved: 20, want: 10},
		"messages wait":              {waiting: 3, want: 3},
		"and receives":               {waiting: 3, reserved: 12, want: 5},
		"some are held for a gate":   {waiting: 3, shelved: 1, want: 2},
		"more than it may run":       {waiting: 30, want: 20},
		"it runs some":               {waiting: 30, running: 15, want: 5},
		"it is paused":               {waiting: 3, paused: true},
		"batches":                    {batch: 2, waiting: 4, want: 2},
		"and a part of one":          {batch: 2, waiting: 5, want: 3},
		"the receives may bring one": {batch: 4, reserved: 11, want: 1},
	} {
		c := at(New(Settings{Concurrency: 20, Settings: leased, Batch: Batch{Size: tt.batch, Bytes: 1000}}), 0)
		NewPool(40).Join(c, Share{Weight: 1}, false)
		if tt.waiting > 0 {
			received(c, &Delivery{ID: "a"})
		}
		c.waiting, c.gates.shelved, c.reserved, c.paused, c.running = tt.waiting, tt.shelved, tt.reserved, tt.paused, tt.running
		if got := c.coming(c.now); got != tt.want {
			t.Errorf("%s: it is about to take %d places, want %d", name, got, tt.want)
		}
	}
}

// TestStopWaking: the messages of a key are no longer woken, and can be woken later; those of other
// keys, and those that have come meanwhile, are left as they are.
func TestStopWaking(t *testing.T) {
	c := at(New(Settings{Concurrency: 1, Settings: leased}), 0)
	handle := "handle"
	for _, id := range []string{"a", "b", "come"} {
		r := c.memory.Note(id, c.now)
		r.Key, r.HiddenUntil = map[string]string{"a": "x", "b": "y", "come": "x"}[id], c.now.Add(time.Hour)
		if r.Waking = true; id != "come" {
			r.Handle = &handle
		}
		c.waker.ids = append(c.waker.ids, id)
	}
	c.stopWaking("x")
	if got := c.waker.ids; !reflect.DeepEqual(got, []string{"b", "come"}) {
		t.Errorf("%v are still to be woken, want b, and the one that has come", got)
	}
	if got := c.Wake(); got != 1 {
		t.Errorf("later %d are woken, want a", got)
	}
}

// TestGateIsRemembered: the gate of a consumer without keys that was dropped while nothing failed comes
// back with what it knew, and is told of the successes since. With keys, each begins anew.
func TestGateIsRemembered(t *testing.T) {
	for _, keyed := range []bool{false, true} {
		c := at(New(Settings{Concurrency: 1, Settings: leased, Threshold: 3, Keyed: keyed}), 0)
		first := c.addGate("")
		first.Breaker.Attempted("a", true, c.now)
		if c.dropIdleGate(first); c.gates.byKey[""] != first {
			t.Error("a gate with a failure is dropped")
		}
		c.counts.Deleted = 5
		at(c, time.Hour)
		for range 200 {
			first.Breaker.Attempted("b", false, c.now)
		}
		c.dropIdleGate(first)
		if len(c.gates.byKey) > 0 {
			t.Fatal("the gate is not dropped")
		}
		c.counts.Deleted = 12
		want := breaker.New(3)
		if !keyed {
			want = first.Breaker
			want.Succeeded(7)
		}
		if got := c.addGate("").Breaker; !reflect.DeepEqual(got, want) {
			t.Errorf("keyed %v: the new gate has the breaker %+v, want %+v", keyed, got, want)
		}
	}
}
