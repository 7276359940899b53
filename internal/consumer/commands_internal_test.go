package consumer

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// This file has the commands of scripts: see script_internal_test.go.

// end ends a handler: the run of one message, or of a batch.
func (s *side) end(list string) {
	var run []*End
	for text := range strings.SplitSeq(list, ", ") {
		id, how, _ := strings.Cut(text, " ")
		run = s.runs[id]
		at := slices.IndexFunc(run, func(e *End) bool { return e.Delivery.ID == id })
		if at < 0 {
			s.driver.t.Fatalf("%s does not run", id)
		}
		s.opinion(run[at], how)
	}
	ends := make([]End, len(run))
	for i := range run {
		ends[i] = *run[i]
		delete(s.runs, run[i].Delivery.ID)
	}
	took := s.driver.now.Sub(ends[0].Delivery.began)
	s.section(func() {
		if s.batches != nil {
			s.EndedBatch(ends, took, s.driver.now)
		} else {
			e := &ends[0]
			if e.Escaped {
				s.Escaped(e.Delivery)
			}
			e.Verdict, e.Subject = s.Ended(e.Delivery, e.Opinion, e.Trail, took, s.driver.now)
		}
		for i := range ends {
			v := ends[i].Verdict
			words := read(fmt.Sprint(ends[i].Delivery.ID, " ended: ", v.Outcome, " ", reasonName(v.Reason), " ", s.dueIn(v.Due), " ", errorText(v.Err)))
			if trail := ends[i].Subject.Trail; trail != "" {
				words = append(words, "trail", trail)
			}
			s.say("%s", strings.Join(words, " "))
		}
		s.startRun(s.Take)
	})
	s.tellSettled()
}

// carryOut carries out a command.
func (d *driver) carryOut(command string) {
	s := d.sideOf(&command)
	verb, rest, _ := strings.Cut(command, " ")
	w := read(rest)
	switch verb {
	case "consumer":
		d.consumer(w)
	case "pass":
		d.pass(d.duration(rest))
	case "ahead":
		d.ahead = d.duration(rest)
	case "sleep": // of the whole computer: no alarm rings on time
		d.now = d.now.Add(d.duration(rest))
	case "receive":
		s.receive(rest, s.driver.now)
	case "receive-late": // the process was suspended before it could read the reply
		s.receive(rest, s.receives[0].asked)
	case "receive-fails":
		e := s.receives[0]
		s.receives = s.receives[1:]
		s.section(func() { s.ReceiveFailed(e.Poller, e.N, failure(w)) })
	case "end":
		s.end(rest)
	case "refuse":
		name, how, _ := strings.Cut(rest, ": ")
		s.refuses[name] = failure(read(how))
	case "accept":
		clear(s.refuses)
	case "slow":
		s.slow = true
	case "quick": // from now on, while what is slow stays so
		s.slow = false
	case "late":
		s.late = true
	case "answer": // what is slow, or late
		waiting := s.waiting
		s.slow, s.late, s.waiting = false, false, nil
		for _, do := range waiting {
			do()
		}
	case "fail-many", "succeed-many", "fail-many-in", "unavailable-many":
		s.endMany(verb, w)
	case "counts":
		s.sayCounts()
	case "status":
		s.sayStatus()
	case "standing":
		s.sayStanding(rest)
	default:
		if !s.operate(verb, rest, w) {
			d.t.Fatalf("there is no command %q", command)
		}
	}
}

// operate carries out the commands of operators and of the stop, and what the shell has read.
func (s *side) operate(verb, rest string, w words) bool {
	do := map[string]func(){
		"stop": func() {
			held, receives := s.Stop()
			s.say("stopping: %d held, %d receives", held, receives)
		},
		"stop-handlers":    s.StopHandlers,
		"close":            s.Close,
		"left":             func() { abandoned, unsettled := s.Left(); s.say("abandoned %v, unsettled %v", abandoned, unsettled) },
		"pause":            func() { s.SetPaused(true) },
		"resume":           func() { s.SetPaused(false) },
		"pause-key":        func() { s.SetKeyPaused(rest, true) },
		"resume-key":       func() { s.SetKeyPaused(rest, false) },
		"concurrency":      func() { s.SetConcurrency(s.count(rest)) },
		"rate":             func() { s.SetRate(s.driver.rate(rest)) },
		"wake":             func() { s.say("%d will be woken", s.Wake(w...)) },
		"wake-message":     func() { s.say("%s will be woken: %t", rest, s.WakeMessage(rest)) },
		"retry-on-receive": func() { s.say("%s will be retried on receive: %t", rest, s.RetryOnReceive(rest)) },
		"retry-when-due":   func() { s.RetryWhenDue(rest) },
		"probe":            func() { s.say("%d will probe", s.Probe(w...)) },
		"learned":          func() { s.Learned(s.factsOf(w)) },
		"unlearned":        func() { s.Unlearned(s.factsOf(w)) },
		"learn-later":      s.LearnLater,
		"leave":            func() { s.say("left the pool: %v", s.driver.pool.Leave(s.Machine)) },
		"replies-lost":     func() { s.RepliesLost(s.count(rest)) },
		"count-denied":     func() { s.CountDenied(errRefused) },
		"after-delete-end": s.afterDeleteEnds,
		"after-delete-exits": func() { // the user's code ends its goroutine
			s.finishes = s.finishes[1:]
			s.AfterDeleteEnded()
		},
		"lane-of":         func() { s.SetRetryLaneOf(s.driver.byName(rest).Machine) },
		"note-denied":     func() { s.NoteDenied(w[0], failure(w[1:])) },
		"degrade":         func() { s.Degrade(rest) },
		"ignored-history": func() { s.ignoredHistory(w) },
		"panicked":        s.Panicked,
		"reports-left":    s.ReportsLeft,
	}[verb]
	switch {
	case do != nil:
		s.section(do)
	case verb == "counted":
		s.section(func() { s.Counted(s.count(w[0]), s.count(w[1])) })
	case verb == "pool-concurrency":
		s.driver.pool.SetConcurrency(s.count(rest), s.driver.now)
		s.follow()
	case verb == "probe-ends":
		e := s.probes[0]
		s.probes = s.probes[1:]
		s.section(func() {
			var err error
			if !w.has("ok") {
				err = errDown
			}
			s.ProbeEnded(e.Gate, e.N, e.Started, err)
		})
	default:
		return false
	}
	return true
}

func (s *side) count(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		s.driver.t.Fatal(err)
	}
	return n
}

// afterDelete runs Config.AfterDelete for the next message that was deleted, and reports whether
// there is one.
func (s *side) afterDelete() bool {
	told, ok := s.NextDeleted()
	if ok {
		s.say("after the delete of %v", told.Cargo)
	}
	return ok
}

// afterDeleteEnds ends a run of Config.AfterDelete. Its goroutine ends if there is no other.
func (s *side) afterDeleteEnds() {
	if !s.afterDelete() {
		s.finishes = s.finishes[1:]
		s.AfterDeleteEnded()
	}
}

// sideOf returns the machine that a command names, which is the only one if it names none.
func (d *driver) sideOf(command *string) *side {
	for _, s := range d.sides {
		if rest, ok := strings.CutPrefix(*command, s.name+": "); ok && s.name != "" {
			*command = rest
			return s
		}
	}
	if len(d.sides) == 0 {
		return nil
	}
	return d.sides[0]
}

func (d *driver) byName(name string) *side {
	return d.sides[slices.IndexFunc(d.sides, func(s *side) bool { return s.name == name })]
}

// receive answers a receive with messages, which SQS had at the time asked.
func (s *side) receive(list string, asked time.Time) {
	var batch []*Delivery
	if list != "" {
		for text := range strings.SplitSeq(list, ", ") {
			batch = append(batch, s.message(text))
		}
	}
	if len(s.receives) == 0 {
		s.driver.t.Fatal("no receive is under way")
	}
	e := s.receives[0]
	s.receives = s.receives[1:]
	if batch == nil {
		asked = e.asked
	}
	s.section(func() {
		s.Took(e.Poller, e.N, batch, asked, s.driver.now, 0)
		for _, d := range batch {
			if d.Duplicate() {
				s.say("%s is held already", *d.Handle)
			} else if !d.Held() {
				s.say("%s is let go", *d.Handle)
			}
		}
	})
}

// endMany receives so many messages, and ends all of their handlers in the same way.
func (s *side) endMany(verb string, w words) {
	how := map[string]string{"fail-many": "fail", "succeed-many": "ok"}[verb]
	switch verb {
	case "fail-many-in":
		how = "fail " + w[1]
	case "unavailable-many":
		how = "unavailable " + w[1]
	}
	var ids []string
	for n := range s.count(w[0]) {
		s.driver.made++
		ids = append(ids, fmt.Sprintf("m%d", s.driver.made))
		if len(ids) == MaxBatch || n == s.count(w[0])-1 {
			s.receive(strings.Join(ids, ", "), s.driver.now)
			for _, id := range ids {
				s.end(id + " " + how)
			}
			ids = nil
		}
	}
}

// ignoredHistory is a message whose history does not read, or is not signed.
func (s *side) ignoredHistory(w words) {
	if w[1] == "unsigned" {
		s.IgnoredHistory(s.message(w[0]), nil, errUnsigned)
	} else {
		s.IgnoredHistory(s.message(w[0]), errRefused, nil)
	}
}

var errUnsigned = errors.New("it is not signed")

func failure(w words) Failure {
	f := Failure{Err: errRefused}
	for _, one := range w {
		f.Kinds |= kinds[one]
	}
	return f
}

// sayCounts writes down the counts that are not zero, and what is held.
func (s *side) sayCounts() {
	c := s.Status(s.driver.now).Counts
	text := fmt.Sprintf("%+v", c)
	var some []string
	for _, one := range strings.Fields(strings.Trim(text, "{}")) {
		if !strings.HasSuffix(one, ":0") {
			some = append(some, strings.ToLower(one))
		}
	}
	s.say("%s", strings.Join(some, ", "))
}

// sayStatus writes down what a user sees.
func (s *side) sayStatus() {
	c := s.Status(s.driver.now)
	health := []string{"new", "ok", "degraded", "failing", "stopping", "stopped"}[c.Health]
	text := fmt.Sprintf("%s: %d running, %d waiting, %d settling, %d held, %d in backoff, %d pollers, %d handlers of %d", health, c.Running, c.Waiting, c.Settling, c.Processing, c.InBackoff, c.Pollers, s.Handlers(), c.Concurrency)
	if c.Paused {
		text += ", paused"
	}
	if c.Rate > 0 {
		text += fmt.Sprintf(", rate %v", c.Rate)
	}
	text += lastTime(", last receive at ", c.LastReceive) + lastTime(", last settlement at ", c.LastSettle)
	if c.InFlight.Quota > 0 {
		text += fmt.Sprintf(", %d of %d in flight and %d visible, full %v", c.InFlight.Queue, c.InFlight.Quota, c.InFlight.Visible, c.InFlight.Full)
	}
	if c.Problem != "" {
		text += ": " + c.Problem
	}
	s.say("%s", text)
	for _, b := range c.Breakers {
		s.say("breaker %s: %v, held %d, level %d, paused %v%s: %s", b.Key, b.State, b.Held, b.Level, b.Paused, lastTime(", probe at ", b.NextProbe), b.Problem)
	}
}

// stages are the names of [Stage] in scripts.
var stages = []string{
	"running", "settling", "hidden until it is due", "held until it is due", "behind its group", "behind its breaker", "its key is paused", "the consumer is paused",
	"the consumer stops", "until nothing else runs", "another runs alone", "until a handler ends", "for the rate", "for its batch", "given up",
}

// sayStanding writes down what a user sees of one message, by its id or that of its first message.
func (s *side) sayStanding(id string) {
	m, known := s.Standing(id, s.driver.now)
	if !known {
		s.say("%s is not known", id)
		return
	}
	text := fmt.Sprintf("%s: %s, attempt %d of %d, receives %d", m.ID, stages[m.Stage], m.Attempt, m.MaxAttempts, m.Receives)
	for _, more := range []struct{ name, text string }{{"of", strings.TrimPrefix(m.OriginID, m.ID)}, {"group", m.GroupID}, {"key", m.Key}, {"behind", m.Head}} {
		if more.text != "" {
			text += ", " + more.name + " " + more.text
		}
	}
	text += lastTime(", since ", m.Since) + lastTime(", until ", m.Until) + lastTime(", leased until ", m.LeaseEnd)
	if m.Stage == StageSettling {
		text += ", " + m.Outcome.String()
	}
	if m.Reason != 0 {
		text += ", " + reasonName(m.Reason)
	}
	if m.Problem != "" {
		text += ": " + m.Problem
	}
	s.say("%s", text)
}

func lastTime(words string, at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return words + at.Sub(noon).Round(time.Millisecond).String()
}
