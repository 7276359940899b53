package machines_test

import (
	"time"

	"github.com/reprise-sqs/reprise/internal/world"
)

// Some fleets have a dependency that answers at a certain rate and refuses all other calls, and more
// messages than it can answer: after an outage, they must reach nearly that rate.

const (
	recovery = 5 * time.Minute // from the end of an outage until the rate is measured
	window   = 6 * time.Minute // in which it is measured, at the end of the faults

	// nearly is the least share of the rate that consumers have to reach.
	nearly = 0.7
)

// dependency is a service that handlers call. It answers at a limited rate.
type dependency struct {
	ready    time.Time // when it will have done all that it accepted
	answered int       // calls, in the window
}

// answers reports whether the dependency answers a handler now. A burst may
// have as many calls as its rate permits in a second.
func (f *fleet) answers() bool {
	d, now := &f.dependency, f.loop.Now()
	spacing := time.Duration(float64(time.Second) / f.rate)
	if d.ready.Before(now) {
		d.ready = now
	}
	if d.ready.Sub(now) > max(time.Second-spacing, 0) {
		return false
	}
	d.ready = d.ready.Add(spacing)
	d.answered++
	return true
}

// supply keeps more messages in the queue than the dependency can answer.
func (f *fleet) supply() {
	if f.rate == 0 {
		return
	}
	var top func()
	top = func() {
		if visible, inFlight, delayed := f.queues[0].Counts(); visible+inFlight+delayed < 120 {
			f.send(30)
		}
		if !f.mended {
			f.loop.After(5*time.Second, "fate", top)
		}
	}
	top()
	f.loop.After(f.lives-window, "fate", func() { f.dependency.answered = 0 })
}

// checkRate checks how many handlers the dependency has answered in the window.
func (f *fleet) checkRate() {
	if f.rate == 0 {
		return
	}
	could := f.rate * window.Seconds()
	f.loop.Note("the dependency", "was asked at a rate", int64(1000*float64(f.dependency.answered)/could))
	if float64(f.dependency.answered) < nearly*could {
		f.broken(world.WorkGetsOn, "of %.2f handlers a second that the dependency answers, it has answered %.0f %%: %s", f.rate, 100*float64(f.dependency.answered)/could, f.states())
	}
}
