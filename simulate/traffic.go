package simulate

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// trafficBegins has the traffic of a queue begin.
func (r *run) trafficBegins(queue uint8) {
	t, seed := r.trafficOf(queue), r.Seed
	if queue > 0 {
		seed = draw(r.Seed, forQueue, uint64(queue), 0)
	}
	r.put(t.Backlog, queue)
	if t.Rate > 0 {
		until, at, k := t.until(r.Horizon), 0.0, uint64(0)
		r.source(queue, func() (time.Duration, bool) {
			if k++; t.Even {
				at = (float64(k) - 0.5) / t.Rate
			} else {
				at -= math.Log(1-unit(draw(seed, forArrival, 0, k))) / t.Rate
			}
			ns := at * float64(time.Second)
			return time.Duration(ns), ns < math.MaxInt64 && time.Duration(ns) < until
		})
	}
	for _, b := range t.Bursts {
		switch {
		case b.Over == 0 && b.Messages > 0:
			r.sources++
			r.after(b.At, func() {
				r.sources--
				r.put(b.Messages, queue)
			})
		default:
			k := 0
			r.source(queue, func() (time.Duration, bool) {
				at := b.At + time.Duration(float64(b.Over)*float64(k)/float64(b.Messages))
				k++
				return at, k <= b.Messages
			})
		}
	}
	if len(t.Series) > 0 {
		r.source(queue, seriesSource(t, seed))
	}
}

// seriesSource returns the times of t.Series: in each period, as many as it has messages.
func seriesSource(t *Traffic, seed uint64) func() (time.Duration, bool) {
	period := 0
	var times []time.Duration // of the period, that are left
	return func() (time.Duration, bool) {
		for len(times) == 0 {
			if period == len(t.Series) {
				return 0, false
			}
			start := time.Duration(period) * t.Every
			for k := range t.Series[period] {
				times = append(times, start+time.Duration(unit(draw(seed, forArrival, uint64(period)+1, uint64(k)))*float64(t.Every)))
			}
			slices.Sort(times)
			period++
		}
		at := times[0]
		times = times[1:]
		return at, true
	}
}

// source sends a message to a queue at each time that next returns, in order, until it reports that there is
// none.
func (r *run) source(queue uint8, next func() (time.Duration, bool)) {
	r.sources++
	var arrive func()
	wait := func() {
		at, ok := next()
		if !ok {
			r.sources--
			return
		}
		r.after(at, arrive)
	}
	arrive = func() {
		r.put(1, queue)
		wait()
	}
	wait()
}

// put sends messages to a queue now.
func (r *run) put(n int, queue uint8) {
	handler, to := r.handlerOf(queue), r.queue
	if queue > 0 {
		to = r.pool[queue].queue
	}
	for range n {
		i := uint64(len(r.messages))
		if len(r.block) == 0 {
			r.block = make([]message, min(max(len(r.messages), 64), 1<<14))
		}
		m := &r.block[0]
		r.block = r.block[1:]
		*m = message{sent: r.loop.Since(), renewed: r.loop.Since(), number: uint32(i), queue: queue}
		m.permanent = unit(draw(r.Seed, forPermanent, i, 0)) < handler.Permanent
		m.always = unit(draw(r.Seed, forAlways, i, 0)) < handler.Always
		r.messages = append(r.messages, m)
		r.now.Arrived++
		to.Put(r.envelope(m))
	}
	if b := r.trafficOf(queue).Bytes; b > 0 {
		r.result.Requests.Units += n * units(b)
	}
	r.result.Requests.Sends += n
}

// envelope is m as it is sent.
func (r *run) envelope(m *message) engine.Message {
	i := uint64(m.number)
	e := engine.Message{Payload: m, Delay: -1, ID: idOf(r.Seed, int(m.number))}
	if r.Queue.FIFO {
		e.Group = strconv.FormatUint(draw(r.Seed, forGroup, i, 0)%uint64(r.Queue.Groups), 10)
		e.Dedup = strconv.FormatUint(i, 10)
	}
	return e
}

// idOf is the id of a message, which selects its jitter.
func idOf(seed uint64, number int) (id engine.ID) {
	binary.BigEndian.PutUint64(id[:8], draw(seed, forID, uint64(number), 0))
	binary.BigEndian.PutUint64(id[8:], draw(seed, forIDRest, uint64(number), 0))
	return id
}

// unitBytes is how many bytes are billed as one request.
const unitBytes = 64 << 10

func units(bytes int) int { return max(1, (bytes+unitBytes-1)/unitBytes) }
