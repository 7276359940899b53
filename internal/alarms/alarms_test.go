package alarms

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var start = time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)

func at(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }

// TestOrder rings alarms by their times, and those of one time as they were set.
func TestOrder(t *testing.T) {
	var c Clock
	var rung []string
	for _, a := range []struct {
		name   string
		second int
	}{{"c", 3}, {"a", 1}, {"d", 3}, {"late", 5}, {"b", 2}, {"e", 3}} {
		c.After(at(a.second), func(time.Time) { rung = append(rung, a.name) })
	}
	if next := c.Next(); !next.Equal(at(1)) {
		t.Errorf("the first rings at %v", next)
	}
	c.Ring(at(0))
	if len(rung) > 0 {
		t.Errorf("%v rang too early", rung)
	}
	c.Ring(at(3))
	if want := []string{"a", "b", "c", "d", "e"}; !slices.Equal(rung, want) {
		t.Errorf("rang %v, want %v", rung, want)
	}
	if next := c.Next(); !next.Equal(at(5)) {
		t.Errorf("the next rings at %v", next)
	}
}

// TestSetAgain moves an alarm to both sides, and stops it.
func TestSetAgain(t *testing.T) {
	var c Clock
	rang := 0
	a := Alarm{Do: func(time.Time) { rang++ }}
	c.After(at(4), func(time.Time) {})
	c.Set(&a, at(5))
	c.Set(&a, at(3))
	if !a.At().Equal(at(3)) || !c.Next().Equal(at(3)) {
		t.Errorf("it rings at %v, the first at %v", a.At(), c.Next())
	}
	c.Sooner(&a, at(4))
	if !a.At().Equal(at(3)) {
		t.Errorf("Sooner has put it off to %v", a.At())
	}
	c.Sooner(&a, at(2))
	c.Set(&a, at(6))
	c.Ring(at(5))
	if rang != 0 || !a.At().Equal(at(6)) {
		t.Errorf("put off, it rang %d times and rings at %v", rang, a.At())
	}
	c.Stop(&a)
	c.Stop(&a)
	c.Ring(at(10))
	if rang != 0 || !a.At().IsZero() || !c.Next().IsZero() {
		t.Errorf("stopped, it rang %d times and rings at %v, the first at %v", rang, a.At(), c.Next())
	}
	c.Sooner(&a, at(11))
	c.Ring(at(11))
	if rang != 1 || !a.At().IsZero() {
		t.Errorf("set once more, it rang %d times and rings at %v", rang, a.At())
	}
}

// TestDoSetsAndStops lets alarms set themselves and others while they ring, and stop
// one that is due.
func TestDoSetsAndStops(t *testing.T) {
	var c Clock
	var rung []string
	var again, stopped Alarm
	again.Do = func(now time.Time) {
		if !now.Equal(at(9)) {
			t.Errorf("it was told %v", now)
		}
		rung = append(rung, "again")
		c.Stop(&stopped)
		if len(rung) < 3 {
			c.Set(&again, at(2))
			return
		}
		c.Set(&again, at(10))
		c.After(at(9), func(time.Time) { rung = append(rung, "new") })
	}
	stopped.Do = func(time.Time) { t.Error("a stopped alarm rang") }
	c.Set(&again, at(1))
	c.Set(&stopped, at(1))
	c.Ring(at(9))
	if want := []string{"again", "again", "again", "new"}; !slices.Equal(rung, want) {
		t.Errorf("rang %v, want %v", rung, want)
	}
	if next := c.Next(); !next.Equal(at(10)) {
		t.Errorf("the next rings at %v", next)
	}
}

// TestLikeASortedList does the same at random to a Clock and to a list that is searched
// from end to end.
func TestLikeASortedList(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		var c Clock
		var rung []int
		all := make([]Alarm, 20)
		times, orders, set := make([]int, len(all)), make([]int, len(all)), 0 // -1: not set
		for i := range all {
			times[i] = -1
			all[i].Do = func(time.Time) { rung = append(rung, i) }
		}
		now := 0
		for range 200 {
			i := random.IntN(len(all))
			switch random.IntN(5) {
			case 0, 1:
				times[i] = now + random.IntN(30)
				set++
				orders[i] = set
				c.Set(&all[i], at(times[i]))
			case 2:
				second := now + random.IntN(30)
				if times[i] < 0 || second < times[i] {
					set++
					times[i], orders[i] = second, set
				}
				c.Sooner(&all[i], at(second))
			case 3:
				times[i] = -1
				c.Stop(&all[i])
			case 4:
				now += random.IntN(10)
				var want []int
				for i, second := range times {
					if second >= 0 && second <= now {
						want = append(want, i)
					}
				}
				slices.SortFunc(want, func(i, j int) int {
					if times[i] != times[j] {
						return times[i] - times[j]
					}
					return orders[i] - orders[j]
				})
				for _, i := range want {
					times[i] = -1
				}
				rung = nil
				c.Ring(at(now))
				if !slices.Equal(rung, want) {
					t.Fatalf("seed %d: at %d rang %v, want %v", seed, now, rung, want)
				}
			}
			var next time.Time
			for i, second := range times {
				if second >= 0 && (next.IsZero() || at(second).Before(next)) {
					next = at(second)
				}
				if set := !all[i].At().IsZero(); set != (second >= 0) || set && !all[i].At().Equal(at(second)) {
					t.Fatalf("seed %d: alarm %d rings at %v, want %d", seed, i, all[i].At(), second)
				}
			}
			if !c.Next().Equal(next) {
				t.Fatalf("seed %d: the next rings at %v, want %v", seed, c.Next(), next)
			}
		}
	}
}
