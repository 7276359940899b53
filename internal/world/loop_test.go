package world_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/engine"
	"github.com/reprise-sqs/reprise/internal/world"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestLoopRunsInOrder(t *testing.T) {
	l := world.NewLoop(epoch, 1)
	var got []string
	for _, e := range []struct {
		name string
		at   time.Duration
	}{{"c", 3}, {"a1", 1}, {"b", 2}, {"a2", 1}, {"now", -5}, {"late", 11}} {
		l.After(e.at, "test", func() {
			got = append(got, e.name)
			if e.name == "a1" {
				l.After(0, "test", func() { got = append(got, "a3") })
			}
		})
	}
	if err := l.Run(10); err != nil {
		t.Fatal(err)
	}
	if want := []string{"now", "a1", "a2", "a3", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("ran %v, want %v", got, want)
	}
	if l.Since() != 10 || !l.Now().Equal(epoch.Add(10)) {
		t.Errorf("the time is %v", l.Since())
	}
}

// TestLoopSorts is TestLoopRunsInOrder for thousands of events.
func TestLoopSorts(t *testing.T) {
	l := world.NewLoop(epoch, 7)
	ran, last := 0, time.Duration(0)
	for range 5000 {
		at := l.Between(0, 1000)
		l.After(at, "test", func() {
			if l.Since() != at || at < last {
				t.Errorf("an event for %d ran at %d, behind one of %d", at, l.Since(), last)
			}
			ran, last = ran+1, at
		})
	}
	if err := l.Run(1000); err != nil || ran != 5000 {
		t.Errorf("%d ran, %v", ran, err)
	}
}

// TestLoopSortsWhereCousinsAreSooner: the events are added in the order of the heap's nodes. When
// the first has run, node 8 is to be filled with one of its children, 33 to 36. From there on each
// third node is due sooner, until 49, a child of node 12, which is due before all of these.
func TestLoopSortsWhereCousinsAreSooner(t *testing.T) {
	l := world.NewLoop(epoch, 7)
	due := map[int]time.Duration{0: 1, 1: 2, 2: 3, 8: 50, 9: 51, 10: 52, 11: 53, 12: 4, 36: 90, 39: 89, 42: 88, 45: 87, 48: 86, 49: 10}
	for node := range 60 {
		at, given := due[node]
		if !given {
			at = 100 + time.Duration(node)
		}
		l.After(at, "test", func() {
			if l.Since() != at {
				t.Errorf("the event for %d ran at %d", at, l.Since())
			}
		})
	}
	run(t, l, 1000)
}

func TestLoopStandsStill(t *testing.T) {
	l := world.NewLoop(epoch, 1)
	var again func()
	again = func() { l.After(0, "node 3", again) }
	l.After(time.Second, "node 3", again)
	err := l.Run(time.Minute)
	if err == nil || !strings.Contains(err.Error(), "node 3 has asked for") || l.Since() != time.Second {
		t.Errorf("after %v: %v", l.Since(), err)
	}
}

// TestLoopBearsManyEventsAtOneTime: up to the limit, and none beyond it runs.
func TestLoopBearsManyEventsAtOneTime(t *testing.T) {
	for _, more := range []int{0, 1} {
		l := world.NewLoop(epoch, 1)
		ran := 0
		for range world.MostAtOnce + more {
			l.After(time.Second, "test", func() { ran++ })
		}
		if err := l.Run(time.Minute); (err == nil) != (more == 0) || ran != world.MostAtOnce {
			t.Errorf("%d of %d events ran: %v", ran, world.MostAtOnce+more, err)
		}
	}
}

// TestTraceTellsRunsApart: by every part of what is noted, and its time.
func TestTraceTellsRunsApart(t *testing.T) {
	type note struct {
		at        time.Duration
		who, what string
		n         int64
	}
	traces := make(map[uint64]note)
	for _, n := range []note{
		{0, "p", "starts", 0}, {1, "p", "starts", 0}, {1 << 8, "p", "starts", 0}, {1 << 56, "p", "starts", 0},
		{0, "q", "starts", 0}, {0, "p", "crashes", 0}, {0, "p", "starts", 1}, {0, "p", "starts", 1 << 8}, {0, "p", "starts", 1 << 56},
	} {
		l := world.NewLoop(epoch, 1)
		run(t, l, n.at)
		l.Note(n.who, n.what, n.n)
		if other, ok := traces[l.Trace()]; ok {
			t.Errorf("%v and %v have one trace", n, other)
		}
		traces[l.Trace()] = n
		if l.Noted()[n.what] != 1 {
			t.Errorf("noted are %v, want %v once", l.Noted(), n)
		}
	}
}

// TestBetween: both ends can be drawn, and nothing beside them.
func TestBetween(t *testing.T) {
	l := world.NewLoop(epoch, 1)
	drawn := make(map[time.Duration]int)
	for range 1000 {
		drawn[l.Between(10, 12)]++
		drawn[l.Between(7, 7)]++
	}
	if len(drawn) != 4 || drawn[7] != 1000 || drawn[10] == 0 || drawn[11] == 0 || drawn[12] == 0 {
		t.Errorf("drawn are %v", drawn)
	}
}

func TestProcessClock(t *testing.T) {
	l := world.NewLoop(epoch, 1)
	p := l.Start("p", time.Hour, 0.01)
	var at []time.Duration
	p.After(101*time.Second, func() { at = append(at, l.Since()) })
	timer := p.NewTimer(func() { at = append(at, l.Since()) })
	timer.Set(p.Now().Add(300 * time.Second))
	timer.Set(p.Now().Add(202 * time.Second)) // instead
	run(t, l, 150*time.Second)
	p.SetClock(-50 * time.Second) // the timer waits until the clock shows that time
	run(t, l, time.Hour)
	for i, want := range []time.Duration{100 * time.Second, 249505 * time.Millisecond} {
		if i >= len(at) || (at[i]-want).Abs() > 10*time.Millisecond {
			t.Fatalf("ran after %v, want about %v", at, want)
		}
	}
	if len(at) != 2 {
		t.Errorf("ran after %v", at)
	}
}

func TestProcessSleepsAndCrashes(t *testing.T) {
	l := world.NewLoop(epoch, 1)
	p := l.Start("p", 0, 0)
	var at []time.Duration
	note := func() { at = append(at, l.Since()) }
	p.After(5*time.Second, note)
	p.After(20*time.Second, note)
	p.After(30*time.Second, note)
	p.Sleep(10 * time.Second)
	l.After(25*time.Second, "fate", p.Crash)
	run(t, l, time.Minute)
	if want := []time.Duration{10 * time.Second, 20 * time.Second}; !slices.Equal(at, want) {
		t.Errorf("ran after %v, want %v", at, want)
	}
}

// TestTimerThatIsSetOften: it costs one event at its time, and one for a time that has come runs at once.
func TestTimerThatIsSetOften(t *testing.T) {
	l := world.NewLoop(epoch, 1)
	p := l.Start("p", time.Hour, 0)
	var at []time.Duration
	timer := p.NewTimer(func() { at = append(at, l.Since()) })
	run(t, l, time.Second)
	timer.Set(p.Now())
	run(t, l, 2*time.Second)
	for range 2 * world.MostAtOnce {
		timer.Set(p.Now().Add(time.Minute))
	}
	run(t, l, time.Hour)
	if want := []time.Duration{time.Second, 62 * time.Second}; !slices.Equal(at, want) {
		t.Errorf("ran after %v, want %v", at, want)
	}
}

// TestFateIsNoted: what happens to a process is part of its story.
func TestFateIsNoted(t *testing.T) {
	l := world.NewLoop(epoch, 1)
	p := l.Start("p", 0, 0)
	p.SetClock(time.Second)
	p.Sleep(time.Second)
	p.CutOff(time.Second)
	p.Crash()
	for _, what := range []string{"starts", "sets its clock by", "sleeps for", "is cut off for", "crashes"} {
		if l.Noted()[what] != 1 {
			t.Errorf("%q is noted %d times, want once", what, l.Noted()[what])
		}
	}
}

func run(t *testing.T, l *world.Loop, end time.Duration) {
	t.Helper()
	if err := l.Run(end); err != nil {
		t.Fatal(err)
	}
}

func TestLink(t *testing.T) {
	const begin, latency, timeout = time.Minute, 10 * time.Millisecond, time.Second
	for name, c := range map[string]struct {
		latency time.Duration // 0: as above
		faults  world.Faults
		answers time.Duration // after the request has arrived; negative: never
		cutOff  time.Duration
		arrives bool
		err     error
		after   time.Duration
	}{
		"calm":                {arrives: true, after: 2 * latency},
		"a slow answer":       {answers: 500 * time.Millisecond, arrives: true, after: 500*time.Millisecond + 2*latency},
		"just in time":        {latency: timeout / 2, arrives: true, after: timeout},
		"a reply too late":    {answers: timeout - 2*latency + 1, arrives: true, err: world.ErrLost, after: timeout},
		"arrives too late":    {latency: timeout, arrives: true, err: world.ErrLost, after: timeout},
		"never arrives":       {latency: timeout + 1, err: world.ErrLost, after: timeout},
		"an answer too late":  {answers: 2 * time.Second, arrives: true, err: world.ErrLost, after: timeout},
		"no answer":           {answers: -1, arrives: true, err: world.ErrLost, after: timeout},
		"the request is lost": {faults: world.Faults{LoseRequest: 1}, err: world.ErrLost, after: timeout},
		"the reply is lost":   {faults: world.Faults{LoseReply: 1}, arrives: true, err: world.ErrLost, after: timeout},
		"throttled":           {faults: world.Faults{Throttle: 1}, err: world.ErrThrottled, after: 2 * latency},
		"failed":              {faults: world.Faults{Fail: 1}, err: world.ErrServer, after: 2 * latency},
		"denied":              {faults: world.Faults{Deny: 1}, err: world.ErrDenied, after: 2 * latency},
		"cut off":             {cutOff: time.Minute, err: world.ErrLost, after: timeout},
		"cut off on the way":  {cutOff: -1, arrives: true, err: world.ErrLost, after: timeout},
	} {
		t.Run(name, func(t *testing.T) {
			l := world.NewLoop(epoch, 1)
			p := l.Start("p", 0, 0)
			k := p.NewLink(world.Latency{Base: cmp.Or(c.latency, latency)}, timeout)
			k.Faults = map[world.Action]world.Faults{"": c.faults}
			run(t, l, begin)
			if c.cutOff > 0 {
				p.CutOff(c.cutOff)
			}
			arrived, got := false, 0
			k.Do("Any", func(answer func()) {
				arrived = true
				switch {
				case c.cutOff < 0:
					p.CutOff(time.Minute)
					answer()
				case c.answers == 0:
					answer()
				case c.answers > 0:
					l.After(c.answers, "service", answer)
				}
			}, func(err error) {
				got++
				if after := l.Since() - begin; err != c.err || after != c.after {
					t.Errorf("after %v: %v, want %v after %v", after, err, c.err, c.after)
				}
			})
			run(t, l, time.Hour)
			if arrived != c.arrives || got != 1 {
				t.Errorf("arrived: %t, %d replies", arrived, got)
			}
		})
	}
}

// TestPollSeesWhatBecomesVisible: a long poll that began while a message had a long lease gets it
// as soon as it is visible, also when that is sooner than it was when the poll began.
func TestPollSeesWhatBecomesVisible(t *testing.T) {
	for _, test := range []struct {
		name string
		hide func(q *world.Queue, k *world.Link, r engine.Receipt)
	}{
		{"hidden for less", func(q *world.Queue, k *world.Link, r engine.Receipt) {
			q.ChangeVisibility(k, []world.Entry{{Receipt: r, Visibility: 5 * time.Second}}, func([]world.Entry, error) {})
		}},
		{"sent with a delay", func(q *world.Queue, _ *world.Link, _ engine.Receipt) { q.Put(engine.Message{Delay: 5 * time.Second}) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := world.NewLoop(epoch, 1)
			q := l.NewService().Create("q", engine.Settings{Visibility: time.Minute, Retention: time.Hour})
			k := l.Start("node", 0, 0).NewLink(world.Latency{}, time.Minute)
			q.Put(engine.Message{Delay: -1})
			var first engine.Receipt
			q.Receive(k, 1, -1, 0, func(d []engine.Delivery, _ error) { first = d[0].Receipt })
			run(t, l, time.Second)
			var at time.Duration
			q.Receive(k, 1, -1, 20*time.Second, func(d []engine.Delivery, _ error) {
				if len(d) > 0 {
					at = l.Since()
				}
			})
			run(t, l, 2*time.Second)
			test.hide(q, k, first)
			run(t, l, time.Minute)
			if want := 7 * time.Second; at != want {
				t.Errorf("received after %v, want %v", at, want)
			}
		})
	}
}

// TestLatencyHasATail: half of the ways take little more than the least, and some a
// hundred times that.
func TestLatencyHasATail(t *testing.T) {
	l := world.NewLoop(epoch, 3)
	k := l.Start("p", 0, 0).NewLink(world.Latency{Base: time.Millisecond, Spread: time.Millisecond, Most: time.Second}, time.Minute)
	const n = 20000
	var took []time.Duration
	for range n {
		began := l.Since()
		k.Do("Any", func(func()) { took = append(took, l.Since()-began) }, func(error) {})
	}
	run(t, l, time.Hour)
	slices.Sort(took)
	median, percentile, most := took[n/2], took[n*99/100], took[n-1]
	if median < 1900*time.Microsecond || median > 2100*time.Microsecond || percentile < 18*time.Millisecond || percentile > 28*time.Millisecond || most > time.Second || most < 100*time.Millisecond {
		t.Errorf("median %v, 99th percentile %v, most %v", median, percentile, most)
	}
}

func TestShrink(t *testing.T) {
	var all []int
	for i := range 100 {
		all = append(all, i)
	}
	asked := 0
	got := world.Shrink(all, func(some []int) bool {
		asked++
		return slices.Contains(some, 13) && slices.Contains(some, 14) && slices.Contains(some, 77)
	})
	if !slices.Equal(got, []int{13, 14, 77}) || asked > 200 {
		t.Errorf("after %d runs: %v", asked, got)
	}
	// Without 2, which needs it, 1 can be left out too.
	if got := world.Shrink([]int{1, 2}, func(some []int) bool { return !slices.Contains(some, 2) || slices.Contains(some, 1) }); len(got) != 0 {
		t.Errorf("what fails without anything was shrunk to %v", got)
	}
	if got := world.Shrink([]int{1}, func(some []int) bool { return true }); len(got) != 0 {
		t.Errorf("what fails by itself was shrunk to %v", got)
	}
}
