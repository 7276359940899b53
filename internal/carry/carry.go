// Package carry decides how a message waits until it is due: hidden on its queue, or by a copy that
// replaces it. The consumer acts by these rules, and package plan foretells by them.
package carry

import (
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

const (
	// MaxDelay is the longest DelaySeconds. See
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html.
	MaxDelay = 15 * time.Minute

	// UnreadWait is the longest wait at once while a queue's retention is not known: neither hidden nor as a
	// delayed copy does a message wait for longer.
	UnreadWait = 5 * time.Minute

	// maxLastChance: a message must be due this long before the end of its retention, at most, so that a
	// consumer receives it in time.
	maxLastChance = time.Hour

	// exactDelay: below this wait, rounding up to SQS's whole seconds would distort the jitter.
	exactDelay = time.Minute
)

// Queue is what the rules need to know of a queue.
type Queue struct {
	MaxReceives int           // after which SQS moves a message to the dead-letter queue; 0: never
	Retention   time.Duration // how long it keeps a message
	Unread      bool          // Retention is SQS's default, because the queue's own is not known
}

// Wait is the wait of one message that begins now.
type Wait struct {
	Now, Due  time.Time
	Requested time.Time // when the message's latest receive was asked for: SQS's twelve hours count from then
	Kept      time.Time // since when its queue keeps it; zero: not known
	Receives  int

	Known bool // its history carries the due time, for every consumer to read

	Alone     bool // it must run alone, or had to
	Asked     bool // copies are asked for
	Uncounted bool // its receive was no attempt, and must not be counted as one
	Miscounts bool // it is parked, and if it is hidden until it is due, receives that were no attempts count as some
	Crowded   bool // too many messages of the queue are hidden
	Outage    bool // its dependency is unavailable
	Stopping  bool // the consumer stops, and might receive the copy itself
}

// Why is why a copy replaces a message that waits, or that none does.
type Why uint8

// Why a copy replaces a message.
const (
	Hidden      Why = iota // none does: the message is hidden
	Alone                  // it must run alone, or had to
	LastReceive            // the next receive would move it to the dead-letter queue
	Asked                  // copies are asked for
	Uncounted              // its receives were no attempts, and must not be counted as attempts
	Crowded                // too many messages of the queue are hidden
	Unread                 // it might expire while hidden: the queue's retention is not known
	Retention              // it would expire while hidden
	TooLong                // SQS cannot hide it for so long, and other consumers must know the due time
)

// Copies returns why a copy should replace the message of w, if copies can be sent.
func (q Queue) Copies(w Wait) Why {
	switch {
	case w.Alone:
		return Alone
	case q.LastReceive(w.Receives):
		return LastReceive
	case w.Asked:
		return Asked
	case w.Uncounted:
		return Uncounted
	case w.Crowded:
		return Crowded
	case q.BeyondUnread(w.Due.Sub(w.Now)):
		return Unread
	}
	seconds, short := retry.Visibility(w.Requested, w.Now, w.Due)
	visible := w.Now.Add(time.Duration(seconds) * time.Second)
	wait, longest := w.Due.Sub(w.Now), q.LongestCopy()
	switch latest := q.CopyBy(w.Kept); {
	case !latest.IsZero() && visible.After(latest):
		if w.Known && latest.Sub(w.Now) > longest/10 && wait > longest {
			return Hidden // a copy could not wait for so long either: hide this one first, for as long as SQS permits
		}
		return Retention
	case w.Miscounts && !short:
		return Uncounted // a longer wait is hidden first: the last hide of it matters
	case short && w.Due.Sub(visible) > retry.AllowedShortfall(wait) && !w.Known:
		return TooLong
	}
	return Hidden
}

// Hide returns the visibility timeout, in seconds, that hides a message until due, or for as long as SQS permits. The
// message is then visible at that time; parked reports that this is before it is due, so that it must be hidden again.
// Where little is missing, the wait is cut instead.
func Hide(requested, now, due time.Time) (seconds int32, visible time.Time, parked bool) {
	seconds, short := retry.Visibility(requested, now, due)
	visible = now.Add(time.Duration(seconds) * time.Second)
	return seconds, visible, short && due.Sub(visible) > retry.AllowedShortfall(due.Sub(now))
}

// LongestHide is how long one receive can hide a message.
var LongestHide = func() time.Duration {
	var now time.Time
	seconds, _ := retry.Visibility(now, now, now.Add(2*retry.MaxVisibility))
	return time.Duration(seconds) * time.Second
}()

// Hides returns how often a message must be hidden to wait for so long, each time as [Hide] does.
func Hides(wait time.Duration) int {
	n := 1 + max(int(wait/LongestHide)-2, 0)
	wait -= time.Duration(n-1) * LongestHide
	for ; wait > LongestHide+retry.AllowedShortfall(wait); wait -= LongestHide {
		n++
	}
	return n
}

// Delay returns the delay in seconds of the copy that replaces the message of w: until it is due, if SQS
// permits so long a delay. A copy that must wait longer is delayed by a second, so that a
// consumer receives it and hides it: only hidden messages can be woken. Some copies
// get the longest delay instead: those whose wait is just over twelve hours, so that hiding
// them once covers the rest, and those sent during a stop, since the stopping consumer might receive
// them itself; and all copies while the queue's retention is not known, because no message may
// be hidden for long then. The delay is at least a second: the SDK leaves out a zero, and then SQS uses
// the queue's own delay. Short delays are rounded down: the consumer that receives the copy
// holds it for the rest of its wait.
func (q Queue) Delay(w Wait, why Why) int32 {
	wait := max(w.Due.Sub(w.Now), time.Second)
	longest := min(MaxDelay, q.LongestCopy()) // or the queue would drop the copy before a consumer receives it
	if q.Unread {
		longest = min(longest, UnreadWait)
	}
	hideInstead := (wait > longest || w.Outage) && why != Unread && why != Crowded && q.MaxReceives != 1
	justMisses := wait > retry.MaxVisibility-time.Minute && wait < retry.MaxVisibility+MaxDelay
	if hideInstead && !justMisses && !w.Stopping {
		return 1
	}
	if wait < exactDelay {
		return int32(wait / time.Second)
	}
	return int32((min(wait, longest) + time.Second - 1) / time.Second)
}

// LastReceive reports whether the next receive would move a message to the dead-letter queue.
func (q Queue) LastReceive(receives int) bool { return q.MaxReceives > 0 && receives >= q.MaxReceives }

// BeyondUnread reports whether a wait is too long for a queue whose retention is not known.
func (q Queue) BeyondUnread(wait time.Duration) bool { return q.Unread && wait > UnreadWait }

// HiddenForLong reports whether a copy that arrived then has been hidden for as long as SQS permits at once, so that it
// comes back before it is due in order, and not by a fault.
func HiddenForLong(arrived, now time.Time) bool {
	return now.Sub(arrived) > retry.MaxVisibility-time.Hour
}

// LongestCopy returns how long a copy can wait until the next one must be sent: three quarters of the
// retention, and all but a day of it if that is longer. The rest is the time for a consumer to receive and copy it.
func (q Queue) LongestCopy() time.Duration {
	return q.Retention - min(24*time.Hour, q.Retention/4)
}

// CopyBy returns until when a message that its queue keeps since then may be hidden if a copy will
// replace it: a consumer must then have the time to receive and copy it. Zero for zero.
func (q Queue) CopyBy(kept time.Time) time.Time {
	if kept.IsZero() {
		return kept
	}
	return kept.Add(q.LongestCopy())
}

// Expires returns when the queue drops a message that it keeps since then; zero for zero.
func (q Queue) Expires(kept time.Time) time.Time {
	if kept.IsZero() {
		return kept
	}
	return kept.Add(q.Retention)
}

// LastChance returns until when a message that its queue keeps since then may wait, so that a consumer is likely
// to receive it before the queue drops it; zero for zero.
func (q Queue) LastChance(kept time.Time) time.Time {
	if kept.IsZero() {
		return kept
	}
	return kept.Add(q.Retention - min(maxLastChance, q.Retention/10))
}

// ExpiresBefore reports whether the queue would drop a message that it keeps since kept, and that waits
// until then, before a consumer is likely to receive it.
func (q Queue) ExpiresBefore(kept, then time.Time) bool {
	return !kept.IsZero() && then.After(q.LastChance(kept))
}
