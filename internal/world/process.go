package world

import "time"

// Process is a machine with a name and a clock, which runs until it crashes. While it sleeps none
// of its events run; those that became due run when it wakes.
type Process struct {
	Name string

	loop   *Loop
	dead   bool
	asleep int64 // nanoseconds since the loop's start: the end of its sleep
	cutOff int64 // until then its links carry nothing

	// The clock showed shown when the loop's time was set, and gains drift seconds in a second.
	set   int64
	shown time.Time
	drift float64

	steady time.Time // that Steady has returned, when
	since  int64     // the loop had run for so long
}

// Start starts a process whose clock is ahead of the loop's by ahead, or behind it if
// that is negative, and gains drift seconds in a second.
func (l *Loop) Start(name string, ahead time.Duration, drift float64) *Process {
	l.Note(name, "starts", 0)
	shown := l.Now().Add(ahead)
	return &Process{Name: name, loop: l, set: l.now, shown: shown, drift: drift, steady: shown, since: l.now}
}

// Now returns the time by the process's clock.
func (p *Process) Now() time.Time {
	passed := p.loop.now - p.set
	return p.shown.Add(time.Duration(passed) + time.Duration(float64(passed)*p.drift))
}

// Steady returns a time that never goes back, on a clock of the process: the larger of what its
// clock says and of what has passed since the last call, as programs have it that do not trust either.
func (p *Process) Steady() time.Time {
	now := p.steady.Add(time.Duration(p.loop.now - p.since))
	if wall := p.Now(); wall.After(now) {
		now = wall
	}
	p.steady, p.since = now, p.loop.now
	return now
}

// SetClock moves the clock by d, forwards or back.
func (p *Process) SetClock(d time.Duration) {
	p.loop.Note(p.Name, "sets its clock by", int64(d))
	p.shown, p.set = p.Now().Add(d), p.loop.now
}

// Crash ends the process. Its events do not run any more; requests that it has sent still have
// their effect.
func (p *Process) Crash() {
	p.loop.Note(p.Name, "crashes", 0)
	p.dead = true
}

// Alive reports whether the process has not crashed.
func (p *Process) Alive() bool { return !p.dead }

// Sleep stops the process for d, as a laptop's lid or a hypervisor does. Its clock keeps running.
func (p *Process) Sleep(d time.Duration) {
	p.loop.Note(p.Name, "sleeps for", int64(d))
	p.asleep = max(p.asleep, p.loop.now+int64(d))
}

// Asleep reports whether the process sleeps.
func (p *Process) Asleep() bool { return p.asleep > p.loop.now }

// CutOff lets no request or reply of the process through for d.
func (p *Process) CutOff(d time.Duration) {
	p.loop.Note(p.Name, "is cut off for", int64(d))
	p.cutOff = max(p.cutOff, p.loop.now+int64(d))
}

// After runs do when d has passed by the process's clock, if the process is alive then.
func (p *Process) After(d time.Duration, do func()) {
	p.loop.after(time.Duration(float64(d)/(1+p.drift)), p, p.Name, call(do))
}

func (p *Process) run(what happening) {
	switch {
	case p.dead:
	case p.Asleep():
		p.loop.after(time.Duration(p.asleep-p.loop.now), p, p.Name, what)
	default:
		what.happen()
	}
}

// Timer calls a function once at the time that it was set to last.
type Timer struct {
	process *Process
	do      func()
	at      time.Time // by the clock of the process; zero: it is not set
	armed   int64     // the earliest event that checks it, in the loop's time; 0: none
}

// NewTimer returns a timer that is not set.
func (p *Process) NewTimer(do func()) *Timer { return &Timer{process: p, do: do} }

// Set sets the time, by the process's clock, at which the timer calls its function: at once if it
// has passed, never if it is zero. It replaces the earlier setting. Like every timer it measures
// the time that passes: setting the clock forwards does not make it earlier.
func (t *Timer) Set(at time.Time) {
	t.at = at
	if at.IsZero() {
		return
	}
	l := t.process.loop
	due := l.now
	if wait := at.Sub(t.process.Now()); wait > 0 {
		due += max(int64(float64(wait)/(1+t.process.drift)), 1)
	}
	if t.armed > l.now && t.armed <= due {
		return // an earlier event checks the timer, and adds the next event
	}
	t.armed = due
	l.after(time.Duration(due-l.now), t.process, t.process.Name, (*timerLook)(t))
}

// timerLook is the event that checks a timer. It is the timer itself, so that it needs no closure.
type timerLook Timer

func (t *timerLook) happen() { (*Timer)(t).look() }

func (t *Timer) look() {
	if t.armed <= t.process.loop.now {
		t.armed = 0
	}
	switch {
	case t.at.IsZero():
	case t.process.Now().Before(t.at): // it was set to a later time, or the clock went back
		if t.armed == 0 {
			t.Set(t.at)
		}
	default:
		t.at = time.Time{}
		t.do()
	}
}
