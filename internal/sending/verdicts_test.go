package sending

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// patient are settings under which nothing but the subject of a test holds anything up.
func patient() Settings {
	return Settings{
		Requests: 10, MaxWaiting: -1, MaxBytes: -1, LastingTries: 3, ComplainEvery: time.Minute, Seed: "seed",
		Retry: retry.Policy{Backoff: retry.Exponential{Base: 8 * time.Second, Max: time.Hour}},
	}
}

// reply gives the verdicts on a batch.
func reply(m *Machine, now time.Time, batch []*Message, verdicts ...Verdict) {
	var results [MaxEntries]Result
	for i, v := range verdicts {
		results[i].Verdict = v
	}
	m.Replied(now, batch, &results)
}

// effects are the effects since the last call, in words.
func effects(m *Machine) (words []string) {
	names := map[Kind]string{Admitted: "admitted", Answered: "answered", GivenUp: "given up", Abandoned: "abandoned", Complain: "complain", Flushed: "flushed"}
	for _, e := range m.Effects() {
		if e.Kind == Flushed {
			words = append(words, "flushed")
			continue
		}
		words = append(words, fmt.Sprintf("%v %s from %v", e.Message.Cargo, names[e.Kind], e.From))
	}
	m.Done()
	return words
}

func wantEffects(t *testing.T, m *Machine, want ...string) {
	t.Helper()
	if got := effects(m); !slices.Equal(got, want) {
		t.Errorf("the effects are %q, want %q", got, want)
	}
}

// add hands over messages without a size; their names are their Cargo.
func add(m *Machine, now time.Time, names ...string) (all []*Message) {
	for _, name := range names {
		msg := &Message{Cargo: name}
		m.Add(now, msg)
		all = append(all, msg)
	}
	return all
}

func wantState(t *testing.T, msg *Message, want State) {
	t.Helper()
	if msg.State() != want {
		t.Errorf("message %v is %v, want %v", msg.Cargo, msg.State(), want)
	}
}

func TestVerdicts(t *testing.T) {
	for name, c := range map[string]struct {
		verdict Verdict
		alone   bool // in its request
		tries   int  // before
		most    int  // Settings.Tries
		refused bool // once before, together with another message
		stopped bool
		state   State
		effects []string
	}{
		"taken":                        {verdict: Taken, state: Gone, effects: []string{"a answered from requested"}},
		"taken at last":                {verdict: Taken, stopped: true, state: Gone, effects: []string{"a answered from requested"}},
		"failed":                       {verdict: Failed, state: Backoff},
		"failed often":                 {verdict: Failed, tries: 9, state: Backoff, effects: []string{"a complain from backoff"}},
		"failed before its last try":   {verdict: Failed, tries: 1, most: 3, state: Backoff, effects: []string{"a complain from backoff"}},
		"failed in its last try":       {verdict: Failed, tries: 2, most: 3, state: Gone, effects: []string{"a answered from requested"}},
		"failed in its only try":       {verdict: Failed, most: 1, state: Gone, effects: []string{"a answered from requested"}},
		"lasting in its last try":      {verdict: Lasting, tries: 1, most: 2, state: Gone, effects: []string{"a answered from requested"}},
		"failed at last":               {verdict: Failed, stopped: true, state: Gone, effects: []string{"a given up from requested"}},
		"lasting":                      {verdict: Lasting, tries: 1, state: Backoff, effects: []string{"a complain from backoff"}},
		"lasting for long":             {verdict: Lasting, tries: 2, state: Gone, effects: []string{"a answered from requested"}},
		"refused":                      {verdict: Refused, state: Gone, effects: []string{"a answered from requested"}},
		"unacceptable":                 {verdict: Unacceptable, alone: true, state: Gone, effects: []string{"a answered from requested"}},
		"something in the batch is so": {verdict: Unacceptable, state: Ready},
		"so in its last try":           {verdict: Unacceptable, most: 1, state: Ready},
		"failed in its first own":      {verdict: Failed, refused: true, tries: 1, most: 2, state: Backoff},
		"failed in its last own":       {verdict: Failed, refused: true, tries: 2, most: 2, state: Gone, effects: []string{"a answered from requested"}},
		"lasting in its second own":    {verdict: Lasting, refused: true, tries: 2, state: Backoff, effects: []string{"a complain from backoff"}},
	} {
		t.Run(name, func(t *testing.T) {
			set := patient()
			set.Tries = c.most
			m := New(set)
			all := add(m, start, "a")
			if !c.alone {
				all = append(all, add(m, start, "b")...)
			}
			batch := m.Next(start)
			if len(batch) != len(all) {
				t.Fatalf("%d messages are requested", len(batch))
			}
			all[0].tries, all[0].alone = c.tries, c.refused
			if c.stopped {
				m.Stop()
			}
			reply(m, start, batch, c.verdict, Taken)
			wantState(t, all[0], c.state)
			if all[0].Tries() != c.tries+1 || all[0].Unsure() {
				t.Errorf("after %d tries, unsure %t", all[0].Tries(), all[0].Unsure())
			}
			if got := slices.DeleteFunc(effects(m), func(s string) bool { return s == "b answered from requested" }); !slices.Equal(got, c.effects) {
				t.Errorf("the effects are %q, want %q", got, c.effects)
			}
		})
	}
}

// TestUnacceptableGoAlone: of what was refused together each is sent by itself, so that
// one answer concerns one message.
func TestUnacceptableGoAlone(t *testing.T) {
	m := New(patient())
	all := add(m, start, "a", "b")
	reply(m, start, m.Next(start), Unacceptable, Unacceptable)
	add(m, start, "c")
	for _, want := range all {
		if batch := m.Next(start); len(batch) != 1 || batch[0] != want {
			t.Fatalf("the request has %d messages", len(batch))
		}
	}
	if batch := m.Next(start); len(batch) != 1 || batch[0].Cargo != "c" {
		t.Errorf("then come %d messages", len(batch))
	}
	m = New(patient())
	add(m, start, "x", "y")
	first := m.Next(start)
	add(m, start, "before")
	reply(m, start, first, Unacceptable, Unacceptable)
	if batch := m.Next(start); len(batch) != 1 || batch[0].Cargo != "before" {
		t.Errorf("one that must go alone joins what is ready before it: %d messages", len(batch))
	}
}

// TestBackoff: those that fail together wait equally long, those of another request do
// not, and then they go at once.
func TestBackoff(t *testing.T) {
	set := patient()
	set.Linger = time.Minute
	set.Requests = 2
	m := New(set)
	all := add(m, start, "a", "b")
	m.Hurry(start, &Flush{})
	first := m.Next(start)
	others := add(m, start, "c")
	m.Hurry(start, &Flush{})
	second := m.Next(start)
	reply(m, start, first, Failed, Failed)
	reply(m, start, second, Failed)
	due := map[*Message]time.Time{}
	for i, msg := range slices.Concat(all, others) {
		number := 1 + i/2
		due[msg] = start.Add(set.Retry.Wait(fmt.Sprint("seed ", number), 1))
	}
	early, late := due[all[0]], due[others[0]]
	if early.Equal(late) {
		t.Fatal("both requests' messages wait equally long")
	}
	if late.Before(early) {
		early, late = late, early
	}
	if !m.Deadline().Equal(early) {
		t.Errorf("the deadline is %v after the start, want %v", m.Deadline().Sub(start), early.Sub(start))
	}
	m.Due(early.Add(-1))
	if batch := m.Next(early.Add(-1)); batch != nil {
		t.Errorf("%d messages go before they are due", len(batch))
	}
	for _, at := range []time.Time{early, late} {
		m.Due(at)
		batch := m.Next(at)
		for _, msg := range batch {
			if !due[msg].Equal(at) {
				t.Errorf("message %v goes %v after it is due", msg.Cargo, at.Sub(due[msg]))
			}
			delete(due, msg)
		}
	}
	if len(due) > 0 {
		t.Errorf("%d messages do not go when they are due", len(due))
	}
}

// TestComplains: a message's first failure is no complaint, and of others there is one in
// a minute.
func TestComplains(t *testing.T) {
	set := patient()
	set.Retry.Jitter = retry.None
	m := New(set)
	add(m, start, "a")
	now, last := start, time.Time{}
	for try := range 12 {
		batch := m.Next(now)
		if len(batch) != 1 {
			t.Fatalf("try %d: %d messages", try, len(batch))
		}
		reply(m, now, batch, Failed)
		complains := try > 0 && now.Sub(last) >= time.Minute
		if got := len(effects(m)) == 1; got != complains {
			t.Errorf("try %d, %v after the last complaint: it complains: %t", try, now.Sub(last), got)
		}
		if complains {
			last = now
		}
		now = m.Deadline()
		m.Due(now)
	}
	now = last.Add(time.Minute)
	again := New(set)
	again.saidAt = last
	msg := add(again, now, "b")[0]
	msg.tries = 1
	reply(again, now, again.Next(now), Failed)
	wantEffects(t, again, "b complain from backoff") // exactly a minute later
}

func TestUnsureStays(t *testing.T) {
	m := New(patient())
	msg := add(m, start, "a")[0]
	m.Replied(start, m.Next(start), &[MaxEntries]Result{{Verdict: Failed, Unsure: true}})
	now := m.Deadline()
	m.Due(now)
	reply(m, now, m.Next(now), Refused)
	if !msg.Unsure() || msg.Tries() != 2 {
		t.Errorf("after %d tries it is sure that SQS does not have it", msg.Tries())
	}
}

func TestRoom(t *testing.T) {
	for name, c := range map[string]struct {
		most, bytes int
		sizes       []int
		inside      int
	}{
		"as many as there is room for":  {2, -1, []int{1, 1, 1}, 2},
		"no limit":                      {-1, -1, []int{1, 1, 1}, 3},
		"as many bytes as there may be": {-1, 10, []int{4, 6, 1}, 2},
		"a byte more":                   {-1, 10, []int{4, 7}, 1},
		"nobody overtakes":              {-1, 10, []int{4, 7, 1}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			set := patient()
			set.MaxWaiting, set.MaxBytes, set.Linger = c.most, c.bytes, time.Minute
			m := New(set)
			var all []*Message
			for i, size := range c.sizes {
				all = append(all, &Message{Size: size, Cargo: i})
				m.Add(start, all[i])
			}
			for i, msg := range all {
				want := Ready
				if i >= c.inside {
					want = Outside
				}
				wantState(t, msg, want)
			}
			if len(c.sizes) == c.inside {
				return
			}
			effects(m)
			for answered := 0; answered < len(all); { // each answer makes room
				batch := m.Next(start.Add(time.Minute))
				if len(batch) == 0 {
					t.Fatalf("%d messages never go", len(all)-answered)
				}
				answered += len(batch)
				reply(m, start, batch)
			}
			words := effects(m)
			for i := range all {
				if admitted := slices.Contains(words, fmt.Sprint(i, " admitted from outside")); admitted != (i >= c.inside) {
					t.Errorf("message %d is admitted: %t", i, admitted)
				}
			}
			if m.bytes != 0 || !m.Idle() {
				t.Errorf("%d bytes are left", m.bytes)
			}
		})
	}
}

func TestWithdraw(t *testing.T) {
	set := patient()
	set.MaxWaiting = 3
	m := New(set)
	all := add(m, start, "failed", "requested")
	batch := m.Next(start)
	reply(m, start, batch[:1], Failed)
	all = append(all, add(m, start, "ready", "outside")...)
	for _, msg := range slices.Backward(all) {
		m.Withdraw(start, msg)
		m.Withdraw(start, msg) // once more is nothing
	}
	wantEffects(t, m, "outside given up from outside", "ready given up from ready", "requested abandoned from requested", "failed given up from backoff")
	if !all[1].Unsure() {
		t.Error("SQS may have what was requested")
	}
	reply(m, start, batch[1:], Taken)
	wantEffects(t, m) // its caller has gone
	if !m.Idle() {
		t.Error("something is left")
	}
}

// TestWithdrawBehind: a message is withdrawn that waits behind another one of its group. It is not sent, and those behind
// it are.
func TestWithdrawBehind(t *testing.T) {
	set := patient()
	set.FIFO = true
	m := New(set)
	all := add(m, start, "first", "withdrawn", "last")
	batch := m.Next(start)
	wantState(t, all[1], Behind)
	m.Withdraw(start, all[1])
	wantEffects(t, m, "withdrawn given up from behind")
	reply(m, start, batch, Taken)
	wantEffects(t, m, "first answered from requested")
	if batch = m.Next(start); !slices.Equal(batch, all[2:]) {
		t.Errorf("the next request has %d messages, want the last one alone", len(batch))
	}
}

func TestFlush(t *testing.T) {
	set := patient()
	set.Linger = time.Minute
	m := New(set)
	m.Hurry(start, &Flush{})
	wantEffects(t, m, "flushed") // nothing was handed over
	told := &Message{Cargo: "told", Tell: true}
	m.Add(start, told)
	failing := add(m, start, "failing")[0]
	f, forgotten := &Flush{}, &Flush{}
	m.Hurry(start, f)
	m.Hurry(start, forgotten)
	later := add(m, start, "later")[0]
	batch := m.Next(start)
	if len(batch) != 3 { // what is there goes along
		t.Fatalf("%d messages go", len(batch))
	}
	m.Forget(forgotten)
	reply(m, start, batch, Taken, Failed, Taken)
	wantState(t, told, Telling)
	wantState(t, later, Gone)
	effects(m)
	now := m.Deadline()
	m.Due(now)
	reply(m, now, m.Next(now), Taken)
	wantState(t, failing, Gone)
	wantEffects(t, m, "failing answered from requested") // one is yet to be told
	m.Told(now, told)
	wantEffects(t, m, "flushed")
	add(m, now, "after")
	if m.Next(now) != nil || !m.Deadline().Equal(now.Add(time.Minute)) {
		t.Error("what comes after a flush does not linger")
	}
}

// TestFlushOfGroups: what waits behind others of its group lingers no more either.
func TestFlushOfGroups(t *testing.T) {
	set := patient()
	set.FIFO, set.Linger = true, time.Minute
	m := New(set)
	add(m, start, "1", "2")
	m.Hurry(start, &Flush{})
	add(m, start, "3")
	for _, want := range []string{"1", "2"} {
		batch := m.Next(start)
		if len(batch) != 1 || batch[0].Cargo != want {
			t.Fatalf("%d messages go, want message %s", len(batch), want)
		}
		reply(m, start, batch)
	}
	wantEffects(t, m, "1 answered from requested", "2 answered from requested", "flushed")
	if m.Next(start) != nil {
		t.Error("message 3 does not linger")
	}
}

func TestStop(t *testing.T) {
	set := patient()
	set.FIFO, set.MaxWaiting = true, 3
	m := New(set)
	all := add(m, start, "first")
	reply(m, start, m.Next(start), Failed)
	all = append(all, add(m, start, "behind")...)
	other := &Message{Cargo: "ready", Group: "other"}
	m.Add(start, other)
	outside := add(m, start, "outside")[0]
	if m.Closing() {
		t.Error("it is closing")
	}
	m.Close(start, &Flush{})
	if !m.Closing() {
		t.Error("it is not closing")
	}
	wantState(t, outside, Gone)
	wantEffects(t, m, "outside given up from outside")
	m.Stop()
	if m.Next(start.Add(time.Hour)) != nil || !m.Deadline().IsZero() {
		t.Error("it goes on")
	}
	m.Due(start.Add(time.Hour))
	wantState(t, all[0], Backoff)
	m.Discard(start)
	wantEffects(t, m, "first given up from backoff", "ready given up from ready", "behind given up from ready", "flushed")
	if !m.Idle() || len(m.groups) > 0 {
		t.Error("something is left")
	}
}

func TestDrop(t *testing.T) {
	m := New(patient())
	msg := add(m, start, "a")[0]
	m.Next(start)
	m.Drop(start, msg)
	wantEffects(t, m, "a given up from requested")
	wantState(t, msg, Gone)
}

// TestLingerIsEachMessagesOwn: a message that is withdrawn takes its linger with it, and
// neither hurries nor delays the others.
func TestLingerIsEachMessagesOwn(t *testing.T) {
	set := patient()
	set.Linger = time.Minute
	m := New(set)
	first := add(m, start, "first", "second")[0]
	later := start.Add(30 * time.Second)
	m.Withdraw(later, first)
	if m.Next(later) != nil || !m.Deadline().Equal(start.Add(time.Minute)) {
		t.Error("the second does not linger on")
	}
	m = New(set)
	m.Withdraw(later, add(m, start, "only")[0])
	add(m, later, "next")
	if m.Next(start.Add(time.Minute)) != nil || !m.Deadline().Equal(later.Add(time.Minute)) {
		t.Error("the next lingers for as long as the one that was withdrawn")
	}
}

// TestFullMeansReady: a request is full by what is ready, not by what was.
func TestFullMeansReady(t *testing.T) {
	for name, size := range map[string]int{"by number": 0, "by bytes": MaxBytes / 10} {
		set := patient()
		set.Linger = time.Minute
		m := New(set)
		for range 9 {
			m.Add(start, &Message{Size: size})
		}
		now := start.Add(time.Minute)
		if batch := m.Next(now); len(batch) != 9 {
			t.Fatalf("%s: %d messages go", name, len(batch))
		}
		for range 9 {
			m.Add(now, &Message{Size: size})
		}
		if batch := m.Next(now); batch != nil {
			t.Errorf("%s: %d messages do not linger behind a request", name, len(batch))
		}
	}
}

// TestBackoffIsSorted: whatever the order in which they fail, messages go by their time.
func TestBackoffIsSorted(t *testing.T) {
	m := New(patient())
	var all []*Message
	for i, tries := range []int{0, 4, 1, 3, 2} {
		msg := add(m, start, fmt.Sprint(i))[0]
		msg.tries = tries
		reply(m, start, m.Next(start), Failed)
		all = append(all, msg)
	}
	slices.SortFunc(all, func(a, b *Message) int { return a.at.Compare(b.at) })
	at := 0
	for msg := m.backoff.first; msg != nil; msg = msg.next {
		if msg != all[at] {
			t.Fatalf("message %v stands at place %d", msg.Cargo, at)
		}
		at++
	}
	for msg := m.backoff.last; msg != nil; msg = msg.prev {
		if at--; msg != all[at] {
			t.Fatalf("message %v stands at place %d from the end", msg.Cargo, at)
		}
	}
	if at != 0 {
		t.Errorf("%d messages are not in the list", at)
	}
}
