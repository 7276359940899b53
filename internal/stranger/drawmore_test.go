package stranger_test

import (
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/reprise-sqs/reprise"
)

// own is a source of choices for one feature: what is drawn for others does not change it.
func (s *scenario) own(feature string) draws {
	h := fnv.New64a()
	h.Write([]byte(feature))
	return draws{rand.New(rand.NewPCG(s.Seed, h.Sum64()))}
}

// drawMore adds features to a scenario, each from a source of its own, so that another feature leaves the
// scenarios of all seeds as they are but for itself.
func (s *scenario) drawMore(window, scale time.Duration) {
	s.drawSending()
	s.drawSigning()
	s.drawKeys(window)
	s.drawOperator(window)
	s.drawPool(window)
	s.drawJumps(window)
	s.drawLambda()
	s.drawRare()
	if d := s.own("unavailable"); d.chance(0.1) {
		for i := range s.Versions {
			s.Versions[i].OwnUnavailable = d.chance(0.7)
		}
	}
}

// drawSending draws what a producer can do beside the body and attributes.
func (s *scenario) drawSending() {
	d := s.own("sending")
	if d.chance(0.2) {
		s.Sender.MaxBytes = pick(d, -1, d.count(1<<20, 1<<26))
	}
	s.Sender.NoIDs = s.Queue.FIFO && d.chance(0.3)
	traced, tenants := d.chance(0.15), d.chance(0.15) && !s.Queue.FIFO
	for i := range s.Messages {
		m := &s.Messages[i]
		m.Traced = traced && d.chance(0.5)
		m.Tenant = tenants && d.chance(0.7)
	}
}

// drawRare draws what would hardly ever come together otherwise.
func (s *scenario) drawRare() {
	d := s.own("rare")
	if s.Queue.FIFO && d.chance(0.2) {
		s.Queue.Delay = d.whole(time.Second, 15*time.Minute)
	}
	for i := range s.Versions {
		v := &s.Versions[i]
		if v.Lane && d.chance(0.3) {
			v.Via = reprise.ViaRequeue
		}
		if !s.Queue.FIFO && d.chance(0.1) { // "On standard queues it has no effect"
			v.FIFO = pick(d, reprise.FIFOBlock, reprise.FIFOSkip)
		}
	}
	if m := &s.Messages[d.IntN(len(s.Messages))]; d.chance(0.03) {
		m.Size, m.Attributes = 1<<20-d.IntN(600), 0
	}
	if m := &s.Messages[d.IntN(len(s.Messages))]; d.chance(0.03) {
		m.Steps = append([]step{{Result: kill, Takes: d.duration(time.Millisecond, 10*time.Second), Wait: d.duration(time.Second, time.Minute)}}, m.Steps...)
		if last := m.Steps[len(m.Steps)-1].Result; last == kill {
			m.Steps = append(m.Steps, step{})
		}
	}
}

// drawKeys draws outages by key.
func (s *scenario) drawKeys(window time.Duration) {
	d := s.own("keys")
	if !d.chance(0.12) {
		return
	}
	for range 1 + d.IntN(3) {
		from := time.Duration(d.Int64N(int64(window)))
		s.KeyDown = append(s.KeyDown, keyOutage{span{from, from + d.duration(time.Second, 2*window)}, d.IntN(8)})
	}
	for i := range s.Versions {
		if v := &s.Versions[i]; v.Keys == 0 && d.chance(0.6) {
			v.Keys = d.count(1, 8)
		}
	}
}

// drawOperator draws what an operator does to keys and messages.
func (s *scenario) drawOperator(window time.Duration) {
	d := s.own("operator")
	if !d.chance(0.12) {
		return
	}
	for range 1 + d.IntN(4) {
		a := act{At: d.duration(time.Millisecond, window), Process: d.IntN(len(s.Processes)), Key: d.IntN(8)}
		a.Do = pick(d, doPauseKey, doPauseKey, doWakeKey, doProbeKey, doWakeMessage, doRetryMessage)
		switch a.Do {
		case doPauseKey:
			a.N = int(d.duration(time.Second, window+time.Second) / time.Second)
		case doWakeMessage, doRetryMessage:
			a.N = d.IntN(len(s.Messages))
		}
		s.Acts = append(s.Acts, a)
	}
	for i := range s.Versions {
		if v := &s.Versions[i]; v.Keys == 0 && d.chance(0.5) {
			v.Keys = d.count(1, 8)
		}
	}
}

// drawJumps draws clocks that differ, from the beginning or suddenly.
func (s *scenario) drawJumps(window time.Duration) {
	d := s.own("jumps")
	if !d.chance(0.1) {
		return
	}
	for range d.count(1, 3) {
		j := jump{By: d.duration(time.Second, pick(d, time.Minute, time.Hour, 12*time.Hour))}
		if d.chance(0.6) {
			j.At = d.duration(time.Millisecond, window)
		}
		s.Jumps = append(s.Jumps, j)
	}
	if d.chance(0.5) { // the SDK tells how far the clocks are apart
		for i := range s.Versions {
			s.Versions[i].SDK = true
		}
	}
}

// drawSigning draws which of the keys each version signs with: as in a rotation.
func (s *scenario) drawSigning() {
	d := s.own("signing")
	for i := range s.Versions {
		s.Versions[i].Rotated = s.Versions[i].Signed && d.chance(0.3)
	}
}
