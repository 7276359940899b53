package world

import (
	"errors"
	"math"
	"time"
)

// Why a request has failed.
var (
	ErrLost      = errors.New("world: no reply came") // whether it had an effect is not known
	ErrThrottled = errors.New("world: too many requests")
	ErrServer    = errors.New("world: the service failed")
	ErrDenied    = errors.New("world: access denied")
	ErrKey       = errors.New("world: access to the queue's key denied")
)

// Latency is the time that a request or a reply takes: Base, plus a random part with a heavy tail
// (a Pareto distribution of shape 2). Half of them take less than Base plus Spread, one in a
// hundred takes 22 times Spread longer than Base, none takes more than Most.
type Latency struct {
	Base, Spread, Most time.Duration
}

func (l Latency) draw(loop *Loop) time.Duration {
	if l.Spread == 0 {
		return l.Base
	}
	tail := (1/math.Sqrt(1-loop.Random.Float64()) - 1) / (math.Sqrt2 - 1)
	return min(l.Base+time.Duration(tail*float64(l.Spread)), max(l.Most, l.Base))
}

// Faults are the probabilities that a request fails in some way.
type Faults struct {
	LoseRequest float64 // it never arrives
	LoseReply   float64 // it has its effect, and the reply never comes
	Throttle    float64 // it is refused, without an effect
	Fail        float64 // the same, as an error of the service
	Deny        float64 // the same, as a missing permission
	DenyKey     float64 // the same, as a missing permission on the queue's key
	FailEntry   float64 // for each entry of a batch: it is refused, the others are not
}

// Link carries the requests of a process to a service.
type Link struct {
	Latency Latency
	// Faults are the faults by kind of request; those under "" apply to all other kinds.
	Faults map[Action]Faults
	// Timeout is how long to wait for a reply; then the request counts as lost.
	Timeout time.Duration

	process *Process
	loop    *Loop
}

// NewLink returns a link of the process.
func (p *Process) NewLink(latency Latency, timeout time.Duration) *Link {
	return &Link{Latency: latency, Timeout: timeout, process: p, loop: p.loop}
}

func (k *Link) faults(a Action) Faults {
	if f, ok := k.Faults[a]; ok {
		return f
	}
	return k.Faults[""]
}

// Do sends a request. act runs when the request arrives; it calls answer, then or later, when
// there is an answer. got runs once, in the process: with nil when the answer has arrived,
// otherwise with an error.
func (k *Link) Do(a Action, act func(answer func()), got func(error)) {
	f := k.faults(a)
	sent, done := k.loop.now, false
	finish := func(err error) {
		k.process.run(func() {
			if !done {
				done = true
				got(err)
			}
		})
	}
	// giveUp and carry are the two ends of a request. Most requests have a reply. Only the
	// others, and those that still wait, need an event for the timeout.
	giveUp := func(why string) {
		k.loop.Note(k.process.Name, why, 0)
		k.loop.After(k.Timeout-time.Duration(k.loop.now-sent), k.process.Name, func() { finish(ErrLost) })
	}
	carry := func(err error) {
		takes := k.Latency.draw(k.loop)
		if k.blocked() || err == nil && k.loop.Chance(f.LoseReply) {
			giveUp("loses a reply")
			return
		}
		if time.Duration(k.loop.now-sent)+takes > k.Timeout {
			giveUp("has waited for a reply too long")
			return
		}
		k.loop.After(takes, k.process.Name, func() { finish(err) })
	}
	takes := k.Latency.draw(k.loop)
	if k.blocked() || k.loop.Chance(f.LoseRequest) || takes > k.Timeout {
		giveUp("loses a request")
		return
	}
	k.loop.After(takes, k.process.Name, func() {
		refuse := func(err error, how string) {
			k.loop.Note(k.process.Name, how, 0)
			carry(err)
		}
		switch {
		case k.loop.Chance(f.Throttle):
			refuse(ErrThrottled, "is throttled")
		case k.loop.Chance(f.Fail):
			refuse(ErrServer, "gets an error of the service")
		case k.loop.Chance(f.Deny):
			refuse(ErrDenied, "is denied access")
		case k.loop.Chance(f.DenyKey):
			refuse(ErrKey, "is denied the queue's key")
		default:
			answered := false
			act(func() { answered = true; carry(nil) })
			if !answered { // nothing is noted: most long polls are answered in time
				k.loop.After(k.Timeout-time.Duration(k.loop.now-sent), k.process.Name, func() { finish(ErrLost) })
			}
		}
	})
}

// Passes reports whether a request would be answered now if it took no time.
func (k *Link) Passes(a Action) bool {
	f := k.faults(a)
	return !k.blocked() && !k.loop.Chance(f.LoseRequest+f.LoseReply+f.Throttle+f.Fail)
}

func (k *Link) blocked() bool { return k.process.cutOff > k.loop.now }
