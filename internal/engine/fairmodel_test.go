package engine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// tenantModel is what the rules of fair queues say of a queue, by counting.
type tenantModel struct {
	inFlight int
	tenants  map[string]*tenant
}

type tenant struct {
	waiting, inFlight int
	heard             time.Time
	noisy             bool
}

func (m *tenantModel) of(group string) *tenant {
	if m.tenants[group] == nil {
		m.tenants[group] = new(tenant)
	}
	return m.tenants[group]
}

// come notes that a message is visible now.
func (m *tenantModel) come(now time.Time, group string) {
	t := m.of(group)
	t.waiting++
	if t.waiting == 1 {
		m.judge(now, group)
	}
}

func (m *tenantModel) judge(now time.Time, group string) {
	t := m.of(group)
	switch {
	case t.waiting == 0:
		t.noisy = false
	case group != "" && t.inFlight >= 30 && t.inFlight*10 > m.inFlight && now.Sub(t.heard) < 5*time.Minute:
		t.noisy = true
	}
}

// take judges whether the group's turn had come, and takes a message of it.
func (m *tenantModel) take(now time.Time, group string) error {
	this := m.of(group)
	if this.waiting == 0 {
		return fmt.Errorf("%q has no visible message", group)
	}
	for name, other := range m.tenants {
		switch {
		case other.waiting == 0 || !this.noisy:
		case !other.noisy:
			return fmt.Errorf("noisy %q went before quiet %q", group, name)
		case other.inFlight < this.inFlight:
			return fmt.Errorf("%q with %d in flight went before %q with %d", group, this.inFlight, name, other.inFlight)
		}
	}
	this.waiting--
	this.inFlight++
	m.inFlight++
	m.judge(now, group)
	return nil
}

// Random traffic of five tenants, some of which flood the queue.
func TestFairnessAgainstModel(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		l := newLab(t, engine.Settings{Visibility: 12 * time.Hour, InFlightLimit: -1})
		m := &tenantModel{tenants: map[string]*tenant{}}
		type held struct {
			group   string
			receipt engine.Receipt
		}
		var flight []held
		var noisySeen bool
		for step := range 1500 {
			if r.IntN(100) == 0 {
				l.wait(5 * time.Minute)
			}
			l.wait(time.Millisecond)
			switch op := r.IntN(10); {
			case op < 4:
				group := []string{"", "a", "a", "a", "b", "b", "c", "d"}[r.IntN(8)]
				m.of(group).heard = l.now
				l.send(group, fmt.Sprint(step))
				m.come(l.now, group)
			case op < 7:
				for _, tenant := range m.tenants {
					tenant.noisy = tenant.noisy && l.now.Sub(tenant.heard) < 5*time.Minute
				}
				got, err := l.e.Receive(l.now, l.q, 1+r.IntN(3), -1, nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range got {
					noisySeen = noisySeen || m.of(d.Group).noisy
					if err := m.take(l.now, d.Group); err != nil {
						t.Fatalf("seed %d, step %d: %v", seed, step, err)
					}
					flight = append(flight, held{d.Group, d.Receipt})
				}
			case len(flight) > 0:
				i := r.IntN(len(flight))
				h := flight[i]
				flight = append(flight[:i], flight[i+1:]...)
				m.of(h.group).inFlight--
				m.inFlight--
				if op == 7 {
					if err := l.e.Delete(l.now, l.q, h.receipt); err != nil {
						t.Fatal(err)
					}
				} else if op == 8 && r.IntN(3) == 0 {
					l.e.Expose(l.now, l.q, h.receipt)
					m.come(l.now, h.group)
				} else { // it stays in flight
					m.of(h.group).inFlight++
					m.inFlight++
					flight = append(flight, h)
				}
			}
			if err := engine.Invariants(l.q); err != nil {
				t.Fatalf("seed %d, step %d: %v", seed, step, err)
			}
		}
		if !noisySeen {
			t.Errorf("seed %d: no noisy tenant was served", seed)
		}
	}
}
