package consumer

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/history"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

// driver is the shell of the machines of a scene. It carries out their effects at once, as if SQS
// answered at once, and writes down what they do.
type driver struct {
	t     *testing.T
	now   time.Time
	ahead time.Duration // how far SQS's clock is ahead of ours
	pool  *Pool
	sides []*side // one for each machine
	made  int     // messages that the commands about many have made
	said  []string
}

// side is a machine of a scene, and what the driver does for it.
type side struct {
	*Machine
	driver   *driver
	name     string
	shows    string             // the kinds of effects that are written down though most scenes do not need them
	receives []receiving        // that are under way
	runs     map[string][]*End  // in handlers: a batch or one message, by each of its messages
	probes   []Effect           // that are under way
	refuses  map[string]Failure // by request, or by request and message
	slow     bool               // SQS does not answer yet
	late     bool               // requests do not go out yet
	waiting  []func()           // requests that wait for one of these
	finishes []Effect           // runs of Config.AfterDelete
}

// receiving is a receive that is under way.
type receiving struct {
	Effect
	asked time.Time
}

func newDriver(t *testing.T) *driver { return &driver{t: t, now: noon} }

// say writes down a line.
func (s *side) say(format string, args ...any) {
	at := s.driver.now.Sub(noon).Round(time.Millisecond)
	name := s.name
	if name != "" {
		name += ": "
	}
	s.driver.said = append(s.driver.said, at.String()+" "+name+fmt.Sprintf(format, args...))
}

// section is a section of s, and what follows from it.
func (s *side) section(inputs func()) {
	s.Begin(s.driver.now, s.driver.ahead)
	inputs()
	s.End()
	s.follow()
}

// follow carries out the effects of a section: in a pool, those of all its machines.
func (s *side) follow() {
	type left struct {
		of *side
		e  Effect
	}
	var all []left
	for _, one := range s.driver.sides {
		if one == s || s.driver.pool != nil {
			one.Effects(func(e Effect) { all = append(all, left{one, e}) })
		}
	}
	for _, l := range all {
		l.of.carry(l.e)
	}
}

// carry carries out an effect.
func (s *side) carry(e Effect) {
	switch e.Kind {
	case Work:
		s.work()
	case Interrupt:
		s.say("interrupt %s", e.Delivery.ID)
	case Receive:
		s.receives = append(s.receives, receiving{e, s.driver.now})
		if strings.Contains(s.shows, "receive") {
			s.say("receive %d", e.N)
		}
	case Send, Heartbeat, Wake:
		if s.late {
			s.waiting = append(s.waiting, func() { s.send(e) })
			return
		}
		s.send(e)
	case Count:
		s.say("read the counts")
	case Learn:
		s.say("read the attributes")
	case Probe:
		s.say("probe %s", e.Gate.Key())
		s.probes = append(s.probes, e)
	case RunAfterDelete:
		s.finishes = append(s.finishes, e)
		if !s.afterDelete() {
			s.say("no delete to follow")
		}
	case TellReports:
		for r := s.NextReport(); r != nil; r = s.NextReport() {
			words := describe(r)
			if logged, ok := r.(Complaint); ok && strings.Contains(s.shows, "severity") {
				words = logged.Severity.String() + ", " + words
			}
			s.say("%s", words)
		}
	case TellSettled:
		s.tellSettled()
	case Emptied:
		if s.Empty() {
			s.say("empty")
		}
	}
}

// work is a worker that has been started.
func (s *side) work() {
	s.section(func() { s.startRun(s.Arrive) })
}

// startRun takes what a worker runs next. If there is nothing the worker ends.
func (s *side) startRun(take func() *Delivery) {
	var ends []End
	if s.batches != nil {
		ends = s.TakeBatch()
	} else if d := take(); d != nil {
		ends = []End{{Delivery: d}}
	}
	if ends == nil {
		s.WorkerEnded()
		return
	}
	run := make([]*End, len(ends))
	for i := range ends {
		run[i] = &ends[i]
		s.runs[ends[i].Delivery.ID] = run
		words := fmt.Sprintf("run %s, attempt %d", ends[i].Delivery.ID, ends[i].Delivery.Attempt)
		if i > 0 {
			words = "in the same batch, " + words
		}
		s.say("%s", words)
	}
}

func requestOf(e Effect) string {
	switch e.Kind {
	case Heartbeat:
		return "heartbeat"
	case Wake:
		return "wake"
	}
	return e.Outbox.String()
}

// send makes a request.
func (s *side) send(e Effect) {
	var entries [MaxBatch]Entry
	if e.Kind == Wake {
		for _, handle := range e.Waking.Handles {
			s.say("wake %s", *handle)
		}
		s.answered("wake", e.Waking.ids, func(results *[MaxBatch]Failure) { s.Woken(e.Waking, results) })
		return
	}
	batch, asked, name := e.Batch, s.driver.now, requestOf(e)
	s.section(func() {
		if e.Kind == Heartbeat {
			batch = s.Renew(batch, &entries)
		} else {
			batch = s.Prepare(e.Outbox, batch, &entries)
		}
	})
	var ids []string
	for i, d := range batch {
		s.say("%s", s.entry(name, e.Outbox, d, &entries[i]))
		ids = append(ids, d.ID)
	}
	s.answered(name, ids, func(results *[MaxBatch]Failure) {
		if e.Kind == Heartbeat {
			s.Renewed(batch, &entries, results, asked)
		} else {
			s.Acknowledge(e.Outbox, batch, results)
		}
	})
}

// answered has the machine take in the results of a request for these messages, when SQS answers.
func (s *side) answered(name string, ids []string, take func(*[MaxBatch]Failure)) {
	answer := func() {
		var results [MaxBatch]Failure
		for i, id := range ids {
			results[i] = s.answer(name, id)
		}
		s.section(func() { take(&results) })
		s.tellSettled()
	}
	if s.slow && len(ids) > 0 {
		s.waiting = append(s.waiting, answer)
		return
	}
	answer()
}

// tellSettled writes down the messages that were settled, if the consumer has an observer of that.
func (s *side) tellSettled() {
	for _, one := range s.TakeSettled() {
		s.say("settled: %s", strings.Join(strings.Fields(fmt.Sprint(one.Subject.Cargo, " ", one.Outcome, " ", reasonName(one.Reason), " ", s.dueIn(one.Due), " requests=", one.Requests, " requeued=", one.Requeued, " ", errorText(one.Err))), " "))
	}
}

// answer is what SQS says to a request about a message.
func (s *side) answer(request, id string) Failure {
	if f, ok := s.refuses[request+" "+id]; ok {
		return f
	}
	return s.refuses[request]
}

// entry describes what a request asks for a message.
func (s *side) entry(name string, o *Outbox, d *Delivery, e *Entry) string {
	words := name + " " + d.ID
	if e.Handle != nil {
		words = name + " " + *e.Handle
	}
	if o == nil || o.Request == HideMessages || o.Request == SendCopies {
		words += fmt.Sprintf(" for %v", time.Duration(e.Seconds)*time.Second)
	}
	if e.Bare {
		words += ", bare"
	}
	if e.Story != nil {
		words += fmt.Sprintf(": %v, %d attempts, %d receives, last %v, from %s, %v", e.Story.Reason, e.Story.Attempts, e.Story.Receives, e.Story.Last.Sub(noon).Round(time.Millisecond), e.Story.Source, e.Story.Err)
	}
	if e.History != "" {
		words += ": " + s.describeHistory(e.History)
	}
	return words
}

// describeHistory names what is not as in the history of a message that has not been run.
func (s *side) describeHistory(text string) string {
	h, err := history.Read(text, s.CopyTo.Name, s.server(s.driver.now))
	if err != nil {
		s.driver.t.Fatalf("a copy has a history that does not read: %v\n%s", err, text)
	}
	words := fmt.Sprintf("of %s, attempt %d", h.Origin, h.Attempt)
	if h.Releases > 0 {
		words += fmt.Sprintf(", releases %d", h.Releases)
	}
	if h.NotBefore > 0 {
		words += fmt.Sprintf(", due in %v", time.UnixMilli(h.NotBefore).Sub(s.server(s.driver.now)).Round(time.Millisecond))
	}
	if h.Alone > 0 {
		words += ", alone"
	}
	if h.Losses > 0 {
		words += fmt.Sprintf(", losses %d", h.Losses)
	}
	if h.Unavailable {
		words += ", unavailable"
	}
	for _, more := range []struct{ name, text string }{{"generation", nonzero(h.Generation)}, {"trail", h.Trail}, {"error", h.Error}} {
		if more.text != "" {
			words += ", " + more.name + " " + more.text
		}
	}
	return words
}

func nonzero(n int) string { return strings.TrimPrefix(fmt.Sprint(n), "0") }

// dueIn describes a time.
func (s *side) dueIn(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return fmt.Sprintf("due in %v", at.Sub(s.driver.now).Round(time.Millisecond))
}

func reasonName(r retry.Reason) string {
	if r == 0 {
		return ""
	}
	return "(" + r.String() + ")"
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// describe describes a report.
func describe(r Report) string {
	switch r := r.(type) {
	case Complaint:
		words := "log: " + r.Text
		for i := 0; i+1 < len(r.Args); i += 2 {
			value := r.Args[i+1]
			if told, ok := value.(Subject); ok {
				value = told.Cargo
			}
			if err, ok := value.(error); ok {
				value = err.Error()
			}
			if at, ok := value.(time.Time); ok {
				value = at.Sub(noon).Round(time.Millisecond)
			}
			words += fmt.Sprintf(" %v=%v", r.Args[i], value)
		}
		return words
	case Found:
		return fmt.Sprintf("finding %s, %v: %s %s", r.Finding.Code, r.Finding.Severity, r.Finding.Problem, r.Finding.Remedy)
	case Outage:
		words := fmt.Sprintf("outage %s: %v, was %v, since %v, held %d", r.Key, r.State, r.Previous, r.Since.Sub(noon).Round(time.Millisecond), r.Held)
		if !r.NextProbe.IsZero() {
			words += fmt.Sprintf(", probe in %v", r.NextProbe.Sub(r.At).Round(time.Millisecond))
		}
		return strings.TrimSpace(words + " " + errorText(r.Err))
	case GivingUp:
		if r.Over {
			return "giving up is over: " + r.String()
		}
		return r.String()
	case Expiring:
		return fmt.Sprintf("%v expires at %v, %v", r.Subject.Cargo, r.At.Sub(noon).Round(time.Millisecond), r.Outcome)
	case DeadLettered:
		return fmt.Sprintf("dead letter %v to %s: %v, %v", r.Subject.Cargo, r.To, r.Reason, r.Err)
	case Crasher:
		return fmt.Sprintf("%v crashes the worker", r.Subject.Cargo)
	case LeftOut:
		return fmt.Sprintf("%d more dead letters", int(r))
	}
	return fmt.Sprintf("%T", r)
}

// pass lets time pass, from alarm to alarm.
func (d *driver) pass(span time.Duration) {
	for until := d.now.Add(span); ; {
		var first *side
		for _, s := range d.sides {
			if next := s.Next(); !next.IsZero() && !next.After(until) && (first == nil || next.Before(first.Next())) {
				first = s
			}
		}
		if first == nil {
			d.now = until
			return
		}
		if next := first.Next(); next.After(d.now) {
			d.now = next
		}
		first.section(first.Ring)
	}
}

var errRefused = errors.New("SQS refuses it")

// kinds are the names of [FailureKind] in scripts.
var kinds = map[string]FailureKind{
	"entry": OfEntry, "sender": BySender, "rejected": Rejected, "unacceptable": Unacceptable,
	"lasting": Lasting, "denied": Denied, "key": DeniedByKey, "limit": OverLimit, "damaged": Damaged,
}

// vias are the names of the ways in which waits are carried out.
var vias = map[string]plan.Via{"visibility": plan.ViaVisibility, "requeue": plan.ViaRequeue}
