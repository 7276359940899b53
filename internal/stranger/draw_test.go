package stranger_test

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// draws is a source of choices that a seed determines.
type draws struct{ *rand.Rand }

func (d draws) chance(p float64) bool { return d.Float64() < p }

// log draws from [lo, hi] so that every order of magnitude is equally likely.
func (d draws) log(lo, hi float64) float64 {
	return math.Exp(math.Log(lo) + d.Float64()*(math.Log(hi)-math.Log(lo)))
}

func (d draws) duration(lo, hi time.Duration) time.Duration {
	t := time.Duration(d.log(float64(lo), float64(max(lo, hi))))
	switch { // round, because people do
	case t > time.Minute:
		return t.Round(time.Second)
	case t > time.Second:
		return t.Round(10 * time.Millisecond)
	}
	return t
}

func (d draws) whole(lo, hi time.Duration) time.Duration {
	return min(max(d.duration(lo, hi).Round(time.Second), lo), hi)
}

func (d draws) count(lo, hi int) int { return int(d.log(float64(lo), float64(hi)+0.99)) }

func pick[T any](d draws, of ...T) T { return of[d.IntN(len(of))] }

// draw makes the scenario of a seed.
func draw(seed uint64) scenario {
	d := draws{rand.New(rand.NewPCG(seed, 0x73747261))}
	s := scenario{Seed: seed}
	// How long a policy takes: mostly 20 minutes or less, seldom weeks.
	scale := d.duration(10*time.Second, 20*time.Minute)
	switch {
	case d.chance(0.06):
		scale = d.duration(time.Hour, 10*24*time.Hour)
	case d.chance(0.15):
		scale = d.duration(time.Hour, 12*time.Hour)
	}
	if d.chance(0.3) {
		s.Latency = d.duration(time.Millisecond, time.Second)
	}
	s.Queue = d.queue(scale)
	s.Sender = d.sender()
	versions := 1
	if d.chance(0.25) {
		versions = 2 + d.IntN(2)
	}
	base := d.settings(s.Queue, scale)
	for range versions {
		v := base
		if len(s.Versions) > 0 {
			v = d.settings(s.Queue, scale)
			if v.Signed, v.Lane = base.Signed, base.Lane; v.Lane { // "All consumers of a queue and its retry lane need the same keys"
				v.Via = reprise.ViaAuto
			}
		}
		s.Versions = append(s.Versions, v)
	}
	window := d.duration(time.Second, scale) // of sends, faults, stops
	d.processes(&s, window)
	d.messages(&s, window, scale)
	if d.chance(0.5) {
		d.faults(&s, window)
	}
	if d.chance(0.12) {
		from := time.Duration(d.Int64N(int64(window)))
		s.Outages = []span{{from, from + d.duration(time.Second, 2*window)}}
	}
	if d.chance(0.2) {
		for range 1 + d.IntN(3) {
			s.Changes = append(s.Changes, d.change(s.Queue, window))
		}
	}
	if d.chance(0.15) {
		for range 1 + d.IntN(5) {
			s.Acts = append(s.Acts, d.act(len(s.Processes), window))
		}
	}
	s.drawMore(window, scale)
	return s
}

func (d draws) queue(scale time.Duration) (q queueSettings) {
	q.FIFO = d.chance(0.2)
	if d.chance(0.15) && !q.FIFO {
		q.Delay = d.whole(time.Second, 15*time.Minute)
	}
	if d.chance(0.4) {
		q.Visibility = d.whole(time.Second, 12*time.Hour)
	}
	if d.chance(0.35) {
		q.Retention = d.whole(time.Minute, 14*24*time.Hour)
	} else if d.chance(0.5) {
		q.Retention = d.whole(max(time.Minute, min(scale, 7*24*time.Hour)), 14*24*time.Hour)
	}
	switch {
	case d.chance(0.15):
	case d.chance(0.15):
		q.SeparateDeadLetters = true
	default:
		q.MaxReceives = d.count(1, 30)
		if d.chance(0.1) {
			q.MaxReceives = d.count(1, 1000)
		}
	}
	if d.chance(0.05) {
		q.InFlightLimit = d.count(5, 100)
	}
	return q
}

func (d draws) sender() (s senderSettings) {
	if d.chance(0.3) {
		s.Linger = pick(d, -1, d.duration(time.Millisecond, time.Minute))
	}
	if d.chance(0.3) {
		s.Requests = d.count(1, 100)
	}
	if d.chance(0.3) {
		s.MaxWaiting = pick(d, -1, d.count(1, 1000))
	}
	if d.chance(0.2) {
		s.Tries = d.count(1, 20)
	}
	if d.chance(0.2) {
		s.TimeLimit = d.duration(time.Second, 10*time.Minute)
	}
	return s
}

func (d draws) settings(q queueSettings, scale time.Duration) (v settings) {
	v.Retry = d.policy(scale)
	if d.chance(0.5) {
		v.Concurrency = d.count(1, 50)
	}
	if d.chance(0.3) {
		v.Prefetch = pick(d, -1, d.count(1, 100), d.count(1, 10_000))
	}
	if d.chance(0.3) && scale < 2*time.Hour {
		v.LongPoll = time.Duration(1+d.IntN(20)) * time.Second
	}
	if d.chance(0.15) {
		v.Rate = math.Ceil(d.log(0.01, 10_000)*1000) / 1000
	}
	v.Rule = d.chance(0.1)
	if !q.FIFO {
		v.Via = pick(d, reprise.ViaAuto, reprise.ViaAuto, reprise.ViaAuto, reprise.ViaRequeue, reprise.ViaVisibility)
		if v.Lane = d.chance(0.1) && v.namesAttempts(); v.Lane { // "set MaxAttempts, because the two queues' maxReceiveCounts may differ"
			v.Via = reprise.ViaAuto // New demands it
			v.LaneShare = reprise.Share{Priority: d.IntN(3) - 1, Weight: d.IntN(4)}
		}
	} else {
		v.FIFO = pick(d, reprise.FIFOHold, reprise.FIFOHold, reprise.FIFOBlock, reprise.FIFOSkip)
		v.Via = pick(d, reprise.ViaAuto, reprise.ViaVisibility)
	}
	if d.chance(0.1) {
		v.InFlightQuota = pick(d, -1, d.count(1, 120_000))
	}
	if d.chance(0.3) {
		v.HandlerTimeout = d.duration(10*time.Millisecond, max(scale, time.Second))
	}
	if d.chance(0.4) {
		v.Lease = d.whole(2*time.Second, time.Hour)
	}
	if d.chance(0.4) {
		v.StopBudget = d.duration(100*time.Millisecond, 10*time.Minute)
	}
	v.Signed = d.chance(0.15)
	v.OutageOff = d.chance(0.15)
	if d.chance(0.3) {
		v.Threshold = d.count(1, 1000)
	}
	if d.chance(0.15) {
		v.Keys = d.count(1, 8)
	}
	v.Probe = d.chance(0.1)
	v.AfterDelete = d.chance(0.15)
	if v.Batch = d.chance(0.15); v.Batch {
		if d.chance(0.6) {
			v.BatchSize = d.count(1, 200)
		}
		if d.chance(0.5) {
			v.BatchLinger = pick(d, -1, d.duration(time.Millisecond, time.Minute))
		}
		if d.chance(0.3) {
			v.BatchBytes = d.count(1000, 1<<22)
		}
	}
	v.SDK = d.chance(0.04)
	return v
}

// policy draws a retry policy, as text.
func (d draws) policy(scale time.Duration) string {
	if d.chance(0.08) {
		return "" // the default takes days
	}
	var p retry.Policy
	least := d.duration(time.Nanosecond, max(scale/20, time.Second))
	if d.chance(0.8) {
		least = d.duration(100*time.Millisecond, max(scale/20, time.Second))
	}
	most := d.duration(max(least, time.Millisecond), max(scale/3, time.Second))
	if d.chance(0.03) {
		most = d.duration(most+1, 400*24*time.Hour)
	}
	switch d.IntN(5) {
	case 0, 1:
		p.Backoff = retry.Exponential{Base: least, Factor: math.Round(d.log(1, 10)*100) / 100, Max: most}
	case 2:
		p.Backoff = retry.Linear{Base: least, Step: d.duration(time.Millisecond, max(scale/20, time.Second)), Max: most}
	case 3:
		p.Backoff = retry.Polynomial{Base: least, Exponent: math.Round(d.Float64()*400) / 100, Max: most}
	case 4:
		list := make(retry.List, 1+d.IntN(6))
		for i := range list {
			list[i] = d.duration(100*time.Millisecond, max(scale/5, time.Second))
		}
		p.Backoff = list
	}
	p.Jitter = pick(d, retry.Full, retry.None, retry.Equal, retry.FromBase, retry.Decorrelated, retry.Percent(20))
	p.MaxAttempts = d.count(1, 30)
	if d.chance(0.1) {
		p.MaxAttempts = 0
	}
	switch {
	case d.chance(0.1):
		p.MaxAttempts, p.MaxAge = -1, d.duration(10*time.Second, scale)
	case d.chance(0.3):
		p.MaxAge = d.duration(10*time.Second, scale*2)
	case d.chance(0.1):
		p.MaxAge = -1
	}
	p.AgeFrom = pick(d, retry.FirstReceive, retry.FirstReceive, retry.Sent)
	text, err := p.MarshalText()
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (d draws) processes(s *scenario, window time.Duration) {
	for range d.count(1, 4) {
		p := process{Version: d.IntN(len(s.Versions))}
		if d.chance(0.3) {
			p.From = time.Duration(d.Int64N(int64(window)))
		}
		s.Processes = append(s.Processes, p)
	}
	if d.chance(0.3) { // deploys and crashes, each with a successor
		for range 1 + d.IntN(3) {
			i := d.IntN(len(s.Processes))
			p := &s.Processes[i]
			if p.Until > 0 {
				continue
			}
			p.Until = p.From + d.duration(time.Millisecond, 2*window)
			p.Crash = d.chance(0.5)
			s.Processes = append(s.Processes, process{Version: d.IntN(len(s.Versions)), From: p.Until + d.duration(time.Millisecond, time.Minute)})
		}
	}
}

func (d draws) messages(s *scenario, window, scale time.Duration) {
	troubled := pick(d, 0, 0.1, 0.4, 1)
	groups := d.count(1, 8)
	kills := d.chance(0.04)
	slow := d.chance(0.15)
	forges := d.chance(0.1)
	for range d.count(1, 60) {
		m := message{At: time.Duration(d.Int64N(int64(window))), Group: d.IntN(groups)}
		if d.chance(0.3) {
			m.At = 0
		}
		if d.chance(0.1) {
			m.Size = d.count(10, 100_000)
		}
		if d.chance(0.002) {
			m.Size = 1<<20 - d.IntN(600)
		}
		if d.chance(0.2) {
			m.Attributes = 1 + d.IntN(10)
		}
		if m.Size > 1<<19 {
			m.Attributes = 0
		}
		if d.chance(0.1) {
			m.Delay = d.whole(time.Second, 15*time.Minute)
		}
		if forges && d.chance(0.3) {
			m.Forged = pick(d, garbage, plausible, invalidStory)
		}
		takes := func() time.Duration {
			switch {
			case d.chance(0.3):
				return 0
			case slow && d.chance(0.2):
				return d.duration(10*time.Second, min(max(scale, time.Hour), 8*time.Hour))
			}
			return d.duration(time.Millisecond, 10*time.Second)
		}
		if d.chance(troubled) {
			for range 1 + d.IntN(4) {
				st := step{Takes: takes()}
				st.Result = pick(d, fail, fail, fail, failRule, permanent, retryAfter, release, panics, unavailable, succeed)
				if kills && d.chance(0.3) {
					st.Result, st.Wait = kill, d.duration(time.Second, time.Minute)
				}
				if st.Result == retryAfter || st.Result == release {
					st.Wait = d.duration(time.Millisecond, scale/2+1)
				}
				st.Ignores = slow && d.chance(0.3)
				m.Steps = append(m.Steps, st)
			}
			last := &m.Steps[len(m.Steps)-1]
			if d.chance(0.6) || last.Result == release || last.Result == retryAfter {
				m.Steps = append(m.Steps, step{Takes: takes()})
			}
		} else if t := takes(); t > 0 {
			m.Steps = []step{{Takes: t}}
		}
		s.Messages = append(s.Messages, m)
	}
}

// actions of a fault that names one.
var actions = []string{"ReceiveMessage", "DeleteMessageBatch", "ChangeMessageVisibilityBatch", "SendMessageBatch", "GetQueueAttributes"}

func (d draws) faults(s *scenario, window time.Duration) {
	for range 1 + d.IntN(4) {
		f := spell{Probability: pick(d, 1, d.log(0.001, 1), d.log(0.05, 0.7))}
		if d.chance(0.4) {
			f.When.From = time.Duration(d.Int64N(int64(window)))
		}
		f.When.Until = f.When.From + d.duration(time.Second, max(2*window, time.Minute))
		f.Kind = pick(d, sqsserver.FaultThrottle, sqsserver.FaultServerError, sqsserver.FaultDropConnection, sqsserver.FaultLoseReply,
			sqsserver.FaultLoseReply, sqsserver.FaultSlowReply, sqsserver.FaultFailEntry, sqsserver.FaultDuplicate, sqsserver.FaultEarlyRedelivery,
			sqsserver.FaultLoseDelete, sqsserver.FaultStaleHandle, sqsserver.FaultLoseLease, sqsserver.FaultOverLimit, sqsserver.FaultWrongCounts)
		if f.Kind == sqsserver.FaultDuplicate || f.Kind == sqsserver.FaultEarlyRedelivery {
			f.Probability = min(f.Probability, 0.8) // a message that always comes again at once leaves no time for anything else
		}
		switch f.Kind {
		case sqsserver.FaultThrottle, sqsserver.FaultServerError, sqsserver.FaultDropConnection, sqsserver.FaultLoseReply, sqsserver.FaultSlowReply:
			if d.chance(0.7) {
				f.Action = pick(d, actions...)
			}
		}
		if f.Kind == sqsserver.FaultSlowReply || f.Kind == sqsserver.FaultEarlyRedelivery {
			f.Delay = d.duration(time.Millisecond, 2*time.Minute)
		}
		if s.Queue.MaxReceives > 0 || s.Queue.SeparateDeadLetters {
			f.DeadLetters = d.chance(0.15)
		}
		s.Faults = append(s.Faults, f)
	}
}

func (d draws) change(q queueSettings, window time.Duration) (c change) {
	c.At = d.duration(time.Millisecond, window)
	switch d.IntN(4) {
	case 0:
		if !q.FIFO {
			c.Delay = d.whole(time.Second, 15*time.Minute)
		}
	case 1:
		c.Visibility = d.whole(time.Second, 12*time.Hour)
	case 2:
		c.Retention = d.whole(time.Minute, 14*24*time.Hour)
	case 3:
		c.MaxReceives = pick(d, -1, d.count(1, 30))
	}
	return c
}

func (d draws) act(processes int, window time.Duration) act {
	a := act{At: d.duration(time.Millisecond, window), Process: d.IntN(processes)}
	a.Do = pick(d, doWake, doPause, doProbe, doSetConcurrency, doSetRate)
	switch a.Do {
	case doPause:
		a.N = int(d.duration(time.Second, window+time.Second) / time.Second)
	case doSetConcurrency:
		a.N = d.count(1, 100)
	case doSetRate:
		a.N = pick(d, 0, d.count(1, 1000))
	}
	return a
}
