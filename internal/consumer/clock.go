package consumer

import "time"

// Begin begins a section at now. ahead is how far SQS's clock is ahead of ours, as far as is
// known.
func (c *Machine) Begin(now time.Time, ahead time.Duration) { c.now, c.ahead = now, ahead }

// Now returns the time of the section under way.
func (c *Machine) Now() time.Time { return c.now }

// local translates an instant of SQS's clock to ours. Zero stays zero.
func (c *Machine) local(t time.Time) time.Time { return local(t, c.ahead) }

// server translates an instant of our clock to SQS's.
func (c *Machine) server(t time.Time) time.Time { return t.Add(c.ahead) }

func local(t time.Time, ahead time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(-ahead)
}

// movingAverage is an exponentially weighted mean of durations.
type movingAverage struct{ mean time.Duration }

func (e *movingAverage) add(d time.Duration) {
	if e.mean == 0 {
		e.mean = d
		return
	}
	e.mean += (d - e.mean) / 8
}

// planKeeping makes sure that keepLeases is called at the given time at the latest.
func (c *Machine) planKeeping(at time.Time) { c.alarms.Sooner(&c.keeping, at) }
