package sqsserver

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync/atomic"
	"time"
)

// clock is the server's time: that of the machine, or one that has been advanced or runs faster,
// so that tests need not wait.
type clock struct {
	// setting is nil while the clock is the machine's. It is replaced under the
	// server's lock and read without it.
	setting atomic.Pointer[clockSetting]
}

// clockSetting is a relation between the machine's time and the server's: at the machine's
// instant real the server's time was virtual, and from then on it runs scale times as fast.
type clockSetting struct {
	real, virtual time.Time
	scale         float64
}

// maxTimeScale is the largest factor of a clock: with it, a day passes before the time ends, at
// lastTime. With one below 1 a long poll would outlast the time that a request may take.
const maxTimeScale = 50_000

// now returns the server's time.
func (c *clock) now() time.Time {
	setting := c.setting.Load()
	if setting == nil {
		return time.Now()
	}
	return setting.at(time.Now())
}

// at stops at lastTime: a server whose time runs fast may get there.
func (s *clockSetting) at(real time.Time) time.Time {
	if passed := float64(real.Sub(s.real)) * s.scale; passed < float64(lastTime.Sub(s.virtual)) {
		return s.virtual.Add(time.Duration(passed))
	}
	return lastTime
}

// wait returns the machine's time that passes while d passes on the server.
func (c *clock) wait(d time.Duration) time.Duration {
	setting := c.setting.Load()
	if setting == nil || setting.scale == 1 {
		return d
	}
	// Rounded up: a timer that ran early would find nothing due.
	return time.Duration(float64(d)/setting.scale) + 1
}

// until returns the machine's time that passes until the server's time is t.
func (c *clock) until(t time.Time) time.Duration { return c.wait(t.Sub(c.now())) }

// set sets the server's time to virtual, and makes it run scale times as fast as the machine's
// from now on. The server's lock is held, or the server is not in use yet.
func (c *clock) set(virtual time.Time, scale float64) {
	c.setting.Store(&clockSetting{real: time.Now(), virtual: virtual, scale: scale})
}

// scale is how many times as fast the server's time runs.
func (c *clock) scale() float64 {
	if setting := c.setting.Load(); setting != nil {
		return setting.scale
	}
	return 1
}

// Now returns the server's time: that of the machine unless [Config.TimeScale] or
// [Server.Advance] say otherwise.
func (s *Server) Now() time.Time { return s.clock.now() }

// lastTime is the latest time that Advance can reach: queues count in nanoseconds, and
// calculate with times later by the retention of a message.
var lastTime = time.Unix(0, math.MaxInt64).AddDate(-1, 0, 0)

var errClockOfJournal = errors.New("a server with a journal would record times that are in the future at its next start; use a server in memory")

// Advance advances the server's time by d at once, as if it had passed with no request in it:
// delays, visibility timeouts, retention, windows of deduplication and cooldowns end, long polls
// receive the messages that became visible, or return without one, and move tasks continue. The
// delays of faults, contexts and connections follow the machine's time and do not change.
//
// It is for tests, and refused on a server with a journal.
func (s *Server) Advance(d time.Duration) error {
	switch {
	case d < 0:
		return fmt.Errorf("sqsserver: advance the time by %v: it cannot go back; use a positive duration", d)
	case s.writer != nil:
		return fmt.Errorf("sqsserver: advance the time by %v: %w", d, errClockOfJournal)
	}
	s.mu.Lock()
	now := s.clock.now().Add(d)
	if now.After(lastTime) {
		s.mu.Unlock()
		return fmt.Errorf("sqsserver: advance the time by %v: that is in %d, and times end in %d: begin with a new server",
			d, now.Year(), lastTime.Year())
	}
	s.clock.set(now, s.clock.scale())
	s.mu.Unlock()
	s.wake() // first, so that a poll whose time is over as well gets its message
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.longPoll.polled {
		for w := q.waiters.first; w != nil; w = w.next {
			w.timer.Reset(s.clock.until(w.deadline))
		}
	}
	return nil
}

// clientTimes returns the times that a client may use as the current one: the machine's, and the
// server's, which replies have in their Date header.
func (s *Server) clientTimes() []time.Time {
	times := []time.Time{time.Now()}
	if s.clock.setting.Load() != nil {
		times = append(times, s.clock.now())
	}
	return times
}

// setDate puts the server's time into a reply. With the machine's, net/http does.
func (c *clock) setDate(h http.Header) {
	if c.setting.Load() != nil {
		h.Set("Date", c.now().UTC().Format(http.TimeFormat))
	}
}
