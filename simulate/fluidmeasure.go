package simulate

import (
	"math"
	"time"
)

// measures are what is counted of a fluid for its result.
type measures struct {
	series     series
	period     Bucket // the present one
	recoveries []recovery
	delayed    float64
	waits      histogram // of the times to the first attempts
	latencies  histogram
	requests   requestsFlow
	second     int                                                    // in which the dependency was called last
	calls      float64                                                // in that second
	inOutages  []float64                                              // requests, by outage
	last       int                                                    // attempts, until result.Last
	rounded    struct{ arrived, started, failed, done, dead float64 } // that periods have
}

// requestsFlow are expected numbers of requests.
type requestsFlow struct {
	sends, receives, empty, deletes, hides, renewals, units float64
}

// now0 begins a period, if there is none.
func (f *fluid) now0() {
	if f.period == (Bucket{}) {
		f.period.At = f.at(f.now)
	}
}

// whole is the period's share of a sum whose earlier periods had so much, as a whole number: so that the
// periods add up to the total.
func (f *fluid) whole(before *float64, sum float64) int {
	return int(math.Round(sum) - *before)
}

// callsInASecond takes in the requests of the step that is over, and returns the most that there have been in a second of
// which it is a part. A step of more than a second has as many in each.
func (f *fluid) callsInASecond(started float64) (most float64) {
	if f.step >= 1 {
		return started / f.step
	}
	const whole = 1e-9 // seconds, by which a sum of steps may miss one
	begin, end := float64(f.now-1)*f.step, float64(f.now)*f.step
	for at := begin; at < end-whole; {
		second := int(at + whole)
		if second != f.second {
			f.second, f.calls = second, 0
		}
		until := min(end, float64(second+1))
		f.calls += started * (until - at) / f.step
		most, at = max(most, f.calls), until
	}
	return most
}

// measure takes in a step that is over.
func (f *fluid) measure(s served) {
	f.request(s)
	calls := int(math.Round(f.callsInASecond(s.started())))
	open := f.unsettled()
	now := f.at(f.now)
	b := &f.period
	b.Started = f.whole(&f.rounded.started, f.attempts.started)
	b.Failed = f.whole(&f.rounded.failed, f.settled[flowFailed])
	b.Done = f.whole(&f.rounded.done, f.settled[flowDone])
	b.Dead = f.whole(&f.rounded.dead, f.settled[flowDead])
	b.Peak = max(b.Peak, calls)
	held := min(f.queue.total, float64(f.Fleet.Consumers*max(f.Fleet.Prefetch, 0)))
	inFlight := f.running + f.waiting + held
	quota := float64(f.Queue.InFlightQuota)
	b.InFlight, b.Delayed = int(math.Round(min(inFlight, quota))), int(math.Round(f.delayed+max(0, inFlight-quota)))
	b.Visible = int(math.Round(f.queue.total - held))
	b.Open, b.Running, b.Waiting = int(math.Round(open)), int(math.Round(f.running)), int(math.Round(f.waiting))
	r := f.result
	r.PeakRequests = max(r.PeakRequests, b.Peak)
	r.PeakInFlight, r.PeakOpen = max(r.PeakInFlight, b.InFlight), max(r.PeakOpen, b.Open)
	if b.Started+int(f.rounded.started) > f.last {
		f.last, r.Last = b.Started+int(f.rounded.started), now
	}
	f.recover(s, calls, now, open)
	if now >= b.At+f.series.width || f.result.Stop != 0 {
		f.sample(now)
	}
}

// sample ends the period.
func (f *fluid) sample(now time.Duration) {
	b := &f.period
	b.Oldest = f.oldest()
	f.series.add(*b)
	f.rounded.arrived += float64(b.Arrived)
	f.rounded.started += float64(b.Started)
	f.rounded.failed += float64(b.Failed)
	f.rounded.done += float64(b.Done)
	f.rounded.dead += float64(b.Dead)
	f.period = Bucket{At: now}
}

// oldest is about the age of the oldest message.
func (f *fluid) oldest() time.Duration {
	now := float64(f.now) * f.step
	first := now
	for _, i := range f.used {
		if a := f.cells[i].all; a.n > settledAll {
			first = min(first, a.sent/a.n)
		}
	}
	if f.queue.total > settledAll {
		for _, p := range f.queue.all[f.queue.first].parts {
			if p.n > negligible {
				first = min(first, p.sent/p.n)
			}
		}
	}
	return seconds(max(0, now-first))
}

// recover measures what follows outages, given the requests of a step and of its second.
func (f *fluid) recover(s served, calls int, now time.Duration, open float64) {
	sum := 0.0
	for i := range f.recoveries {
		v := &f.recoveries[i]
		sum += max(0, f.open[i])
		end := v.At + v.For
		before := now - f.at(1)
		switch {
		case now <= v.At || f.now == 1 && v.At == 0:
			v.Open = int(math.Round(open))
			continue
		case before < end:
			f.inOutages[i] += s.started() // of which a step may have less than one
			v.Requests = int(math.Round(f.inOutages[i]))
			if now < end {
				continue
			}
			v.over, v.Backlog = true, int(math.Round(open))
		case before < end+aftermath:
			v.Peak = max(v.Peak, calls)
		}
		if v.Recovered < 0 && v.over && open <= float64(v.Open)+1 {
			v.Recovered = now - end
		}
		v.Unsettled = int(math.Round(sum))
		if v.Cleared < 0 && v.over && sum < settledAll {
			v.Cleared = now - end + seconds(f.takes)
		}
	}
}

// request estimates the requests of a step from how many messages share one.
func (f *fluid) request(s served) {
	q, consumers := &f.requests, float64(f.Fleet.Consumers)
	sent := f.arrivals(f.now - 1)
	q.sends += sent
	q.units += sent * float64(units(f.Traffic.Bytes))
	share := func(n, linger float64) float64 { // requests for n messages in a step, of each consumer's
		return n / min(10, 1+n/f.step/consumers*linger)
	}
	attempts := s.moved() - s.blindRejected - s.blindUnavailable
	trip := 2 * (f.Network.Latency + max(f.Network.Spread, 0)).Seconds()
	receives := share(attempts, trip)
	if f.queue.total > consumers { // a backlog: as many as there is room for
		receives = attempts / min(10, max(1, float64(f.Fleet.Concurrency)/2))
	}
	q.receives += receives
	q.units += receives * float64(units(int(attempts/max(receives, 1e-9))*f.Traffic.Bytes))
	if poll := f.Fleet.LongPoll.Seconds(); s.probes == 0 && f.queue.total < 1 {
		rate := attempts / f.step / consumers
		empty := consumers * f.step / poll
		if x := rate * poll; x > 1e-6 {
			empty = consumers * f.step * rate / math.Expm1(x)
		}
		q.empty += empty
		q.units += empty
	}
	done := s.accepted * (1 - f.cut)
	failed := s.unavailable + s.rejected + s.accepted*f.cut
	if n := f.attempts.succeeded + f.attempts.failed + f.attempts.permanent; n > 0 {
		failed += done * f.attempts.failed / n
		done *= 1 - f.attempts.failed/n
	}
	deletes, hides := share(done, lingers), share(failed, lingers)
	q.deletes += deletes
	q.hides += hides
	renewals := 0.0
	if f.takes > f.Fleet.Lease.Seconds()/2 {
		renewals = f.running * f.step / (f.Fleet.Lease.Seconds() / 2) / min(10, max(1, f.running/consumers))
	}
	q.renewals += renewals
	q.units += deletes + hides + renewals
}

// lingers is how many seconds a settlement waits for others to share its request.
const lingers = 0.25

// finish completes the result.
func (f *fluid) finish() {
	now := f.at(f.now)
	if f.Horizon > 0 {
		now = min(now, f.Horizon)
	}
	if f.at(f.now) > f.period.At {
		f.sample(now)
	}
	r := f.result
	r.Ended, r.Series, r.Last = now, f.series.all, min(r.Last, now)
	n := func(x float64) int { return int(math.Round(x)) }
	a := &f.attempts
	r.Attempts = Attempts{
		Started: n(a.started), Failed: n(a.failed), Permanent: n(a.permanent), Unavailable: n(a.unavailable),
		Rejected: n(a.rejected), Cut: n(a.cut), Running: n(f.running),
	}
	t := &r.Attempts
	t.Succeeded = t.Started - t.Failed - t.Permanent - t.Unavailable - t.Rejected - t.Cut - t.Running
	r.Messages = Messages{Arrived: n(f.arrived), Done: n(f.settled[flowDone]), Dead: n(f.settled[flowDead]), Expired: n(f.settled[flowExpired])}
	m := &r.Messages
	m.Left = m.Arrived - m.Done - m.Dead - m.Expired
	for _, x := range f.perMessage {
		r.PerMessage = append(r.PerMessage, n(x))
	}
	for len(r.PerMessage) > 0 && r.PerMessage[len(r.PerMessage)-1] == 0 {
		r.PerMessage = r.PerMessage[:len(r.PerMessage)-1]
	}
	r.Wait, r.Latency = f.waits.quantiles(), f.latencies.quantiles()
	for i := range f.recoveries {
		if v := &f.recoveries[i]; v.over {
			r.Outages = append(r.Outages, v.Recovery)
		}
	}
	q := &f.requests
	deaths := f.settled[flowDead] / 10
	r.Requests = Requests{
		Sends: n(q.sends), Receives: n(q.receives), EmptyReceives: n(q.empty), Deletes: n(q.deletes + deaths), Hides: n(q.hides), Renewals: n(q.renewals), DeadLetters: n(deaths),
		Units: n(q.units + deaths*float64(1+units(10*f.Traffic.Bytes))),
	}
}

// histogram counts durations in classes, each of which is a fiftieth longer than the one before.
type histogram struct {
	counts    []float64
	n, sum    float64
	shortless float64 // of no length
}

const (
	histogramRatio = 1.02
	histogramLeast = 0.001 // seconds
)

func (h *histogram) add(seconds, n float64) {
	h.n += n
	h.sum += max(seconds, 0) * n
	if seconds < histogramLeast {
		h.shortless += n
		return
	}
	k := int(math.Log(seconds/histogramLeast) / math.Log(histogramRatio))
	for len(h.counts) <= k {
		h.counts = append(h.counts, 0)
	}
	h.counts[k] += n
}

// quantiles describes the durations, to a hundredth.
func (h *histogram) quantiles() Quantiles {
	if h.n < settledAll {
		return Quantiles{}
	}
	at := func(rank float64) time.Duration { // the shortest of which so many are shorter
		before := h.shortless
		if rank < before {
			return 0
		}
		last := 0.0
		for k, n := range h.counts {
			if n > 0 {
				last = histogramLeast * math.Pow(histogramRatio, float64(k)+0.5)
			}
			if before += n; rank < before {
				break
			}
		}
		return seconds(last)
	}
	return Quantiles{
		Count: int(math.Round(h.n)), Mean: seconds(h.sum / h.n), Least: at(0), P50: at(0.5 * h.n), P90: at(0.9 * h.n), P95: at(0.95 * h.n),
		P99: at(0.99 * h.n), P999: at(0.999 * h.n), Most: at(h.n - settledAll),
	}
}
