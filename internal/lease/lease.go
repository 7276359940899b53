// Package lease keeps the time of a message's lease: the visibility timeout, during which
// SQS gives the message to no other consumer, renewed by heartbeats until the message is
// settled.
//
// A [Lease] is plain data, and its methods are functions of their arguments. It does not
// know what happens to the message meanwhile: its owner asks it what is due, sends the
// heartbeats and reports how they ended.
package lease

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/clocks"
	"github.com/reprise-sqs/reprise/retry"
)

// MaxRenewal is the longest renewal. Renewals grow with the age of a lease, so that many
// slow handlers cost few calls, and this bounds how long their messages stay hidden when
// the process dies.
const MaxRenewal = 10 * time.Minute

// maxSlack limits [Slack].
const maxSlack = time.Second

// Lease is that of one message. The zero value has ended.
type Lease struct {
	requested time.Time // start of the receive: SQS's twelve hours count from here
	end       time.Time // as far as we may rely on it
	renewAt   time.Time // the next heartbeat
	renewFrom time.Time // no heartbeat before: the latest has failed
	state     state
}

// state is the state of a lease. Only one request about a message is under way at a time:
// during a heartbeat, nothing else is sent about it.
type state uint8

const (
	kept         state = iota // renewed in time
	renewing                  // kept, and a heartbeat is under way
	hidden                    // hidden until its copy is due: not to be shortened
	lost                      // it has ended; the handler, if it runs, has been told
	lostRenewing              // lost, and a heartbeat is still under way
)

// Slack returns how much earlier than SQS we let a lease of that length end, because the
// reply took time, and the next request will: a tenth of the lease, at most a second.
func Slack(length time.Duration) time.Duration { return min(maxSlack, length/10) }

// Received is a lease of the given length for a message whose receive was requested and
// granted at these times. later is part of a tenth of length: see [Lease.Grant].
func Received(requested, granted time.Time, length, later time.Duration) Lease {
	l := Lease{requested: requested}
	l.Grant(granted, length, later)
	return l
}

// Grant records that SQS has granted length at or after from. The next heartbeat is due
// half-way, and later by up to a tenth of length, by message: so a fleet's heartbeats
// spread, and one that fails leaves time for more.
func (l *Lease) Grant(from time.Time, length, later time.Duration) {
	l.end = from.Add(length - Slack(length))
	l.renewAt = from.Add(length/2 + later)
}

// Adopt makes l the newer lease of a message that was received again. A heartbeat of the
// older one may still be under way.
func (l *Lease) Adopt(newer Lease) {
	newer.renewFrom, newer.state = l.renewFrom, kept
	if l.Renewing() {
		newer.state = renewing
	}
	*l = newer
}

// End is when the lease ends, as far as we may rely on it.
func (l *Lease) End() time.Time { return l.end }

// RenewAt is when the next heartbeat is due.
func (l *Lease) RenewAt() time.Time { return l.renewAt }

// Over reports whether the lease has ended at now.
func (l *Lease) Over(now time.Time) bool { return clocks.Passed(l.end, now) }

// Age is the longest time for which SQS may count the message as received.
func (l *Lease) Age(now time.Time) time.Duration { return clocks.Elapsed(l.requested, now) }

// Renewing reports whether a heartbeat is under way.
func (l *Lease) Renewing() bool { return l.state == renewing || l.state == lostRenewing }

// Lost reports whether the lease has ended while the message's handler ran.
func (l *Lease) Lost() bool { return l.state == lost || l.state == lostRenewing }

// Hidden reports whether the message is hidden until its copy is due: see [Lease.Hide].
func (l *Lease) Hidden() bool { return l.state == hidden }

// Lose notes that the lease has ended while the message's handler ran.
func (l *Lease) Lose() {
	if l.Renewing() {
		l.state = lostRenewing
	} else {
		l.state = lost
	}
}

// Hide records that SQS hides the message from now until then, for longer than a lease: no
// heartbeat is due, which would shorten that.
func (l *Lease) Hide(now, until time.Time) {
	l.state = hidden
	l.Grant(now, until.Sub(now), 0)
}

// Unhide has a hidden message's lease renewed again, half of length before it ends.
func (l *Lease) Unhide(length time.Duration) {
	l.state = kept
	l.renewAt = l.end.Add(-length / 2)
}

// Shorten records that the message may be hidden only until then, and may belong to another
// consumer afterwards: it is not known whether SQS has carried out a request. Half of the
// slack of a lease of length is enough, since only a request has to travel.
func (l *Lease) Shorten(until time.Time, length time.Duration) {
	l.end = until.Add(-Slack(length) / 2)
}

// Heartbeat reports whether a heartbeat is due by horizon and, if not, when to look again.
func (l *Lease) Heartbeat(now, horizon time.Time) (due bool, at time.Time) {
	switch {
	case l.Hidden():
		return false, l.end // for longer than a lease, and not to be shortened
	case !clocks.Passed(l.renewFrom, now):
		return false, l.renewFrom
	case clocks.Passed(l.renewAt, horizon):
		return true, time.Time{}
	}
	return false, l.renewAt
}

// Urgent reports whether the heartbeat must go out now.
func (l *Lease) Urgent(now time.Time) bool { return clocks.Passed(l.renewAt, now) }

// RenewBy is when a heartbeat should have gone out at the latest: a quarter of the time has passed then
// that was left when it was due.
func (l *Lease) RenewBy() time.Time { return l.renewAt.Add(l.end.Sub(l.renewAt) / 4) }

// Late reports whether a heartbeat that goes out now is late: more than half of the time has passed
// between when it was due and the end of the lease, so that a slow reply or one failure may lose it.
func (l *Lease) Late(now time.Time) bool {
	return clocks.Passed(l.renewAt.Add(l.end.Sub(l.renewAt)/2), now)
}

// BeginRenewal notes that a heartbeat is under way.
func (l *Lease) BeginRenewal() { l.state = renewing }

// EndRenewal notes that the heartbeat is not under way any more.
func (l *Lease) EndRenewal() {
	if l.state == renewing {
		l.state = kept
	} else {
		l.state = lost
	}
}

// Renewal is the length of the next lease in seconds: as long as the message has been held,
// at least least, at most [MaxRenewal], and never beyond the twelve hours that SQS allows
// since the receive.
func (l *Lease) Renewal(now time.Time, least time.Duration) int32 {
	held := l.Age(now)
	length := max(least, min(held, MaxRenewal)).Truncate(time.Second)
	seconds, _ := retry.Visibility(now.Add(-held), now, now.Add(length))
	return seconds
}

// Renewed records that a heartbeat for length, sent at requested, has succeeded.
func (l *Lease) Renewed(requested time.Time, length, least, later time.Duration) {
	l.Grant(requested, length, later)
	if length < least {
		l.renewAt = l.end // the twelve hours end there: nothing is left to renew
	}
}

// RenewalFailed makes the heartbeat due again soon, well before the end if there is time.
func (l *Lease) RenewalFailed(now time.Time) {
	left := l.end.Sub(now)
	pause := min(left, max(left/4, minRetryPause))
	l.renewAt = now.Add(pause)
	l.renewFrom = now.Add(min(pause, max(pause*3/4, minRetryPause)))
}

// minRetryPause is the least time before a failed heartbeat is tried again.
const minRetryPause = 100 * time.Millisecond
