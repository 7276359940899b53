package consumer

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/calls"
	"github.com/reprise-sqs/reprise/internal/race"
)

// TestHeartbeatsInTime: however many messages are held, and however long SQS takes to answer, as many
// heartbeats are sent at once as renew all leases in time; eight where that is enough.
func TestHeartbeatsInTime(t *testing.T) {
	for _, test := range []struct {
		held        int
		lease, took time.Duration
		least, most int // requests under way at once
	}{
		{held: 10, lease: time.Minute, took: 100 * time.Millisecond, least: 1, most: 1},
		{held: 3_000, lease: time.Minute, took: 50 * time.Millisecond, least: 1, most: renewAtOnce},
		{held: 40_000, lease: time.Minute, took: 100 * time.Millisecond, least: 20, most: 100},
		{held: 20_000, lease: time.Minute, took: time.Second, least: 200, most: 900},
		{held: 2_000, lease: 2 * time.Second, took: 200 * time.Millisecond, least: 20, most: 400},
		{held: 100_000, lease: time.Minute, took: time.Second, least: 500, most: renewAtMost},
	} {
		t.Run(fmt.Sprintf("%d held for %v, answers after %v", test.held, test.lease, test.took), func(t *testing.T) {
			if test.held > 50_000 && race.Enabled {
				t.Skip("takes long with the race detector")
			}
			settings := leased
			settings.Lease = test.lease
			c := at(New(Settings{Concurrency: 1, Prefetch: test.held, Settings: settings}), 0)
			handle := "handle"
			var all []*Delivery
			for i := range test.held {
				all = append(all, &Delivery{ID: fmt.Sprint(i), Handle: &handle})
			}
			received(c, all...)
			most := beat(c, 3*test.lease/2, test.took)
			if most < test.least || most > test.most {
				t.Errorf("%d heartbeats were under way at once, want %d to %d", most, test.least, test.most)
			}
			if n := c.counts; n.LateHeartbeats > 0 || n.LeasesEnded > 0 {
				t.Errorf("%d heartbeats went out late, and %d leases have ended", n.LateHeartbeats, n.LeasesEnded)
			}
			if problem := c.unkept.problem(c.now); problem != "" {
				t.Error(problem)
			}
		})
	}
}

// beat lets time pass, in which SQS answers each heartbeat after took. It returns the most that were
// under way.
func beat(c *Machine, span, took time.Duration) (most int) {
	type request struct {
		batch     []*Delivery
		entries   [MaxBatch]Entry
		requested time.Time
	}
	var all []*request // in the order of their times
	for end := c.now.Add(span); c.now.Before(end); {
		next := c.Next()
		if len(all) > 0 && all[0].requested.Add(took).Before(next) {
			next = all[0].requested.Add(took)
		}
		at(c, max(next.Sub(noon), c.now.Sub(noon)))
		c.Ring()
		for len(all) > 0 && !all[0].requested.Add(took).After(c.now) {
			c.Renewed(all[0].batch, &all[0].entries, new([MaxBatch]Failure), all[0].requested)
			all = all[1:]
		}
		for _, e := range effects(c, Heartbeat) {
			r := &request{requested: c.now}
			r.batch = c.Renew(slices.Clone(e.Batch), &r.entries)
			all = append(all, r)
		}
		most = max(most, len(all))
	}
	return most
}

// TestAnswersToHeartbeatsAreTimed: the answer to a heartbeat that was not sent, because no lease was left
// to renew, says nothing about how long answers take.
func TestAnswersToHeartbeatsAreTimed(t *testing.T) {
	c := at(New(Settings{Concurrency: 1, Settings: leased}), 10*time.Second)
	handle := "handle"
	d := &Delivery{ID: "a", Handle: &handle}
	received(c, d)
	c.heartbeats.Add(c.now, calls.Entry[*Delivery]{Cargo: d})
	c.Renewed(nil, new([MaxBatch]Entry), new([MaxBatch]Failure), noon)
	if c.beatTime.mean != 0 {
		t.Errorf("no heartbeat was answered after %v", c.beatTime.mean)
	}
	c.Renewed([]*Delivery{d}, new([MaxBatch]Entry), new([MaxBatch]Failure), noon.Add(7*time.Second))
	if c.beatTime.mean != 3*time.Second {
		t.Errorf("a heartbeat was answered after %v, want 3s", c.beatTime.mean)
	}
}
