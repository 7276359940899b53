package stranger_test

import (
	"hash/fnv"
	"math/rand/v2"
	"time"
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

// drawSigning draws which of the keys each version signs with: as in a rotation.
func (s *scenario) drawSigning() {
	d := s.own("signing")
	for i := range s.Versions {
		s.Versions[i].Rotated = s.Versions[i].Signed && d.chance(0.3)
	}
}
