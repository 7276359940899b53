package world

import (
	"math"
	"time"
)

// Do sends a request over k. act is called when it arrives, with what answers it; got is called
// at its end.
func (k *Link) Do(a Action, act func(answer func()), got func(error)) {
	d := &anything{carryOut: act, taker: got}
	d.send(k, a, d)
}

// anything is a request of a test.
type anything struct {
	request
	carryOut func(answer func())
	taker    func(error)
}

func (d *anything) act() (latest time.Duration) {
	d.carryOut(d.answer)
	return math.MaxInt64
}

func (d *anything) got(err error) { d.taker(err) }
