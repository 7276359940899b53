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

// exchange is what a request is about.
type exchange interface {
	// act is called when the request arrives. It has the request answered, then or later, and
	// returns after how long at the latest.
	act() (latest time.Duration)
	// got is called once, in the process that has sent the request: with nil when the answer has
	// arrived, otherwise with an error.
	got(error)
}

// request is a request under way, which is part of the value that it is about. Most requests have
// a reply in time: only for the others there is an event at the timeout.
type request struct {
	*Link
	about    exchange
	faults   Faults
	sent     int64
	err      error // of the reply
	answered bool
	done     bool
}

// These are what happens to a request.
type (
	arrival request
	reply   request
	timeout request
)

func (a *arrival) happen() { (*request)(a).arrive() }
func (p *reply) happen()   { (*request)(p).finish(p.err) }
func (t *timeout) happen() { (*request)(t).finish(ErrLost) }

// send sends r over k.
func (r *request) send(k *Link, a Action, about exchange) {
	*r = request{Link: k, about: about, faults: k.faults(a), sent: k.loop.now}
	takes := k.Latency.draw(k.loop)
	if k.blocked() || k.loop.Chance(r.faults.LoseRequest) || takes > k.Timeout {
		r.giveUp("loses a request")
		return
	}
	k.loop.after(takes, nil, k.process.Name, (*arrival)(r))
}

// arrive is called when the request arrives.
func (r *request) arrive() {
	switch f := &r.faults; {
	case r.loop.Chance(f.Throttle):
		r.refuse(ErrThrottled, "is throttled")
	case r.loop.Chance(f.Fail):
		r.refuse(ErrServer, "gets an error of the service")
	case r.loop.Chance(f.Deny):
		r.refuse(ErrDenied, "is denied access")
	case r.loop.Chance(f.DenyKey):
		r.refuse(ErrKey, "is denied the queue's key")
	default:
		if latest := r.about.act(); latest > r.Timeout-r.passed() && !r.answered {
			r.timeOut() // nothing is noted: the answer may come sooner
		}
	}
}

func (r *request) refuse(err error, how string) {
	r.loop.Note(r.process.Name, how, 0)
	r.err = err
	r.reply()
}

func (r *request) answer() {
	r.answered = true
	r.reply()
}

// reply sends the reply.
func (r *request) reply() {
	takes := r.Latency.draw(r.loop)
	switch {
	case r.blocked() || r.err == nil && r.loop.Chance(r.faults.LoseReply):
		r.giveUp("loses a reply")
	case r.passed()+takes > r.Timeout:
		r.giveUp("has waited for a reply too long")
	default:
		r.loop.after(takes, r.process, r.process.Name, (*reply)(r))
	}
}

func (r *request) giveUp(why string) {
	r.loop.Note(r.process.Name, why, 0)
	r.timeOut()
}

// passed is how long ago the request was sent.
func (r *request) passed() time.Duration { return time.Duration(r.loop.now - r.sent) }

// timeOut has the request count as lost at the end of its timeout, unless its reply comes before.
func (r *request) timeOut() {
	r.loop.after(r.Timeout-r.passed(), r.process, r.process.Name, (*timeout)(r))
}

func (r *request) finish(err error) {
	if !r.done {
		r.done = true
		r.about.got(err)
	}
}

// Passes reports whether a request would be answered now if it took no time.
func (k *Link) Passes(a Action) bool {
	f := k.faults(a)
	return !k.blocked() && !k.loop.Chance(f.LoseRequest+f.LoseReply+f.Throttle+f.Fail)
}

func (k *Link) blocked() bool { return k.process.cutOff > k.loop.now }
