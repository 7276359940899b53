package sqsserver_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// client sends messages, one after the other.
type client struct {
	first time.Duration // when it sends the first
	think time.Duration // how long after an acknowledgement it sends the next
	every time.Duration // how long after the one before it sends the next, if that is later
	sends int
}

// sendAll has the clients send to a server whose syncs take so long, and returns how
// long each client's sends took, and how many syncs there were.
func sendAll(t *testing.T, sync time.Duration, clients ...client) (took [][]time.Duration, syncs int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{})
		k.create("q", nil)
		k.journal.delay = func() time.Duration { // called by the committer alone
			syncs++
			return sync
		}
		took = sendEach(k, clients)
	})
	return took, syncs
}

func sendEach(k *journalServer, clients []client) [][]time.Duration {
	took := make([][]time.Duration, len(clients))
	var sending sync.WaitGroup
	for i, c := range clients {
		sending.Go(func() {
			time.Sleep(c.first)
			for range c.sends {
				began := time.Now()
				k.send("q", "x")
				took[i] = append(took[i], time.Since(began))
				time.Sleep(max(c.think, time.Until(began.Add(c.every))))
			}
		})
	}
	sending.Wait()
	return took
}

// Clients that ask again when they are answered share each sync of a slow disk,
// rather than wait for each other's in turns.
func TestClientsShareSyncs(t *testing.T) {
	const each, sync = 50, 2 * time.Millisecond
	clients := func(n int, c client, think time.Duration) (all []client) {
		for i := range n {
			c.think = time.Duration(i+1) * think
			all = append(all, c)
		}
		return all
	}
	for _, test := range []struct {
		name    string
		clients []client
		syncs   int
	}{
		{"few", clients(2, client{sends: each}, 10*time.Microsecond), each + 2},
		{"many", clients(100, client{sends: each}, 2*time.Microsecond), each + 2},
		{"that take their time", clients(8, client{sends: each}, 180*time.Microsecond), each + 5},
		// Two for whom is waited in vain, a second before the others.
		{"behind others", append(clients(8, client{first: time.Second, sends: each}, 10*time.Microsecond),
			client{sends: 1}, client{first: time.Millisecond, sends: 1}), each + 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			took, syncs := sendAll(t, sync, test.clients...)
			if syncs > test.syncs {
				t.Errorf("%d syncs, want at most %d", syncs, test.syncs)
			}
			for i, each := range took {
				slices.Sort(each)
				if median := each[len(each)/2]; len(each) > 1 && median > sync*2 {
					t.Errorf("client %d was acknowledged after %v (median), with syncs of %v", i, median, sync)
				}
			}
		})
	}
}

// A group is not kept open if no further request would join it: for a single client, on a
// fast disk, or for longer than a stalled disk would take.
func TestGroupsWaitForNobodyElse(t *testing.T) {
	for _, test := range []struct {
		name    string
		sync    time.Duration
		clients []client
		longest time.Duration // that a send of the last client may take
		mean    time.Duration // of those
	}{
		{"a client alone", 2 * time.Millisecond, []client{{sends: 20}}, 2 * time.Millisecond, 2 * time.Millisecond},
		// The second waits for the end of the first one's sync, and for its own.
		{"a fast disk", 800 * time.Microsecond,
			[]client{{every: 10 * time.Millisecond, sends: 50}, {first: 400 * time.Microsecond, every: 10 * time.Millisecond, sends: 50}},
			1200 * time.Microsecond, 1200 * time.Microsecond},
		// As before, and with every fifth group, thus every third send, for the first one,
		// in vain.
		{"clients that think", 2 * time.Millisecond,
			[]client{{every: 20 * time.Millisecond, sends: 50}, {first: time.Millisecond, every: 20 * time.Millisecond, sends: 50}},
			5 * time.Millisecond, 3700 * time.Microsecond},
		// The rest of the first sync, half of a sync in vain, and the second sync.
		{"a slow disk", 10 * time.Millisecond,
			[]client{{sends: 1}, {first: time.Millisecond, sends: 1}},
			24 * time.Millisecond, 24 * time.Millisecond},
		{"a disk that stalled", 60 * time.Millisecond,
			[]client{{sends: 1}, {first: time.Millisecond, sends: 1}},
			139 * time.Millisecond, 139 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			all, _ := sendAll(t, test.sync, test.clients...)
			took, total := all[len(all)-1], time.Duration(0)
			for _, each := range took {
				total += each
			}
			if longest, mean := slices.Max(took), total/time.Duration(len(took)); longest > test.longest || mean > test.mean {
				t.Errorf("acknowledged after up to %v, %v on average; want at most %v, %v", longest, mean, test.longest, test.mean)
			}
		})
	}
}
