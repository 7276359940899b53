package consumer

import (
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/internal/plural"
)

// permitHeartbeats permits as many heartbeat requests at once as renew all leases in time: all that wait
// should go out while the most urgent of them is not late. A fixed number would renew the fewer leases,
// the longer SQS takes to answer: 8 requests at once, answered after 100 ms, not even 25,000 in the half
// of a minute that a lease has left.
func (c *Machine) permitHeartbeats() {
	waiting, first := c.heartbeats.Waiting()
	if waiting == 0 {
		return
	}
	took := c.beatTime.mean
	if took == 0 {
		took = assumedBeatTime
	}
	within := max(first.lease.RenewBy().Sub(c.now), took)
	needed := 1 + time.Duration(waiting)*took/within
	c.heartbeats.Permit(int(min(max(needed, renewAtOnce), renewAtMost)))
}

// assumedBeatTime is how long a heartbeat probably takes, until the first is answered.
const assumedBeatTime = 100 * time.Millisecond

// unkeptLeases are the leases that have not been kept as they should have been, of late.
type unkeptLeases struct {
	late, ended int       // since first
	first, last time.Time // the last: zero if there are none
}

// unkeptFor is how long the health shows them.
const unkeptFor = 5 * time.Minute

// renewsLate notes that a heartbeat goes out late.
func (c *Machine) renewsLate(now time.Time) {
	c.counts.LateHeartbeats++
	c.unkept.note(now)
	c.unkept.late++
}

// leaseEnds notes that a lease has ended while its message is held.
func (c *Machine) leaseEnds() {
	c.counts.LeasesEnded++
	c.unkept.note(c.now)
	c.unkept.ended++
}

func (u *unkeptLeases) note(now time.Time) {
	if u.over(now) {
		*u = unkeptLeases{first: now}
	}
	u.last = now
}

// over reports whether they are no longer of interest.
func (u *unkeptLeases) over(now time.Time) bool { return now.After(u.last.Add(unkeptFor)) }

// problem describes them for the health; empty if there are none.
func (u *unkeptLeases) problem(now time.Time) string {
	if u.over(now) {
		return ""
	}
	return fmt.Sprintf("leases are not kept: since %s %d ended while messages were held, which other consumers may have received, and %s went out late; hold fewer messages, or set a longer lease",
		u.first.UTC().Format(time.RFC3339), u.ended, plural.Of(u.late, "heartbeat"))
}
