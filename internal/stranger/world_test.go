package stranger_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// world runs one scenario, and writes its record.
type world struct {
	*record
	s      *scenario
	kills  int           // processes killed by messages
	enough chan struct{} // closed when there have been mostRequests
	t      *testing.T
	server *sqsserver.Server
	q      *reprisetest.Queue
	lane   *reprisetest.Queue   // nil: no version has one
	dead   *reprisetest.Queue   // nil: there is none
	others []*reprisetest.Queue // of the neighbours
	nth    []int                // runs of each message that ended, by its number
	seen   map[string]sqsserver.MessageInfo
	seenAt time.Duration
	done   chan struct{}  // closed at the end: what is planned for later does not happen
	busy   sync.WaitGroup // goroutines of this package, handlers among them
}

// live runs s in a bubble, and returns its record.
func live(t *testing.T, s scenario) (r *record) {
	r = &record{sent: make([]sentMessage, len(s.Messages)), readings: make(map[string]reading), known: make(map[string]bool)}
	defer func() {
		if problem := recover(); problem != nil {
			r.stuck = fmt.Sprint(problem)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		w := &world{
			record: r, s: &s, t: t, nth: make([]int, len(s.Messages)),
			seen: make(map[string]sqsserver.MessageInfo), done: make(chan struct{}), enough: make(chan struct{}),
		}
		r.began = time.Now()
		w.run()
	})
	return r
}

func (w *world) run() {
	w.makeQueues()
	w.queueARN, w.queueURL = w.q.ARN(), w.q.URL()
	produced := make(chan struct{})
	go func() { defer close(produced); w.produce() }()
	w.busy.Go(w.follow)
	limit := patience(w.s)
	for step := time.Second; w.now() < limit && !w.isRefused(); step = min(max(time.Second, w.now()/40), 10*time.Minute) {
		timer := time.NewTimer(min(step, limit-w.now()))
		select {
		case <-timer.C:
		case <-w.enough:
			w.cut = true
		}
		timer.Stop()
		if w.cut {
			break
		}
		if w.look() && isClosed(produced) {
			w.inTime = true
			break
		}
	}
	w.end(produced)
	w.busy.Wait()
}

// mostRequests is how many requests a scenario makes at most.
const mostRequests = 6_000

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d / time.Second)) }

// makeQueues makes the queue, its dead-letter queue and its lane.
func (w *world) makeQueues() {
	s := w.s
	w.server = sqsserver.New(sqsserver.Config{
		Seed: s.Seed, NoCooldown: true, InFlightLimit: s.Queue.InFlightLimit, KeepUnwritten: s.Seed%2 == 0,
		Logger: slog.New(slog.DiscardHandler),
	})
	a, lane := attributesOf(s.Queue.Delay, s.Queue.Visibility, s.Queue.Retention), attributesOf(0, 0, s.Queue.Retention)
	fifo := make(map[string]string)
	if s.Queue.FIFO {
		a["FifoQueue"], fifo["FifoQueue"] = "true", "true"
	}
	if s.contentDeduplication() {
		a["ContentBasedDeduplication"] = "true"
	}
	w.q = reprisetest.NewQueueOn(w.t, w.server, a)
	switch {
	case s.Queue.SeparateDeadLetters:
		w.dead = w.q.NewQueue(fifo)
	case s.Queue.MaxReceives > 0:
		w.dead = w.q.NewDeadLetterQueue(s.Queue.MaxReceives)
	}
	if slices.ContainsFunc(s.Versions, func(v settings) bool { return v.Lane }) {
		w.lane = w.q.NewQueue(lane)
	}
	for _, n := range s.Neighbours {
		w.others = append(w.others, w.q.NewQueue(n.attributes()))
	}
}

// places are the URLs of the queues that exist.
func (w *world) places() (at places) {
	if w.lane != nil {
		at.lane = w.lane.URL()
	}
	if w.dead != nil {
		at.dead = w.dead.URL()
	}
	return at
}

func attributesOf(delay, visibility, retention time.Duration) map[string]string {
	a := make(map[string]string)
	if delay > 0 {
		a["DelaySeconds"] = seconds(delay)
	}
	if visibility > 0 {
		a["VisibilityTimeout"] = seconds(visibility)
	}
	if retention > 0 {
		a["MessageRetentionPeriod"] = seconds(retention)
	}
	return a
}

// event is something that happens at a time.
type event struct {
	at time.Duration
	do func()
}

// follow does what the scenario has planned.
func (w *world) follow() {
	var events []event
	for _, p := range w.s.Processes {
		events = append(events, event{p.From, func() { w.start(p) }})
	}
	for _, f := range w.s.Faults {
		events = append(events, event{f.When.From, w.setFaults}, event{f.When.Until, w.setFaults})
	}
	for _, c := range w.s.Changes {
		events = append(events, event{c.At, func() { w.change(c) }})
	}
	for _, a := range w.s.Acts {
		events = append(events, event{a.At, func() { w.act(a) }})
	}
	for _, j := range w.s.Jumps {
		events = append(events, event{j.At, func() { w.jump(j.By) }})
	}
	for i, n := range w.s.Neighbours {
		for j, e := range n.Errands {
			events = append(events, event{e.At, func() { w.sendErrand(i, j) }})
		}
	}
	// Faults that are set at the same time as a process starts strike its first request.
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	w.setFaults()
	for _, e := range events {
		if !w.sleep(e.at - w.now()) {
			return
		}
		e.do()
	}
}

// setFaults sets those of the spells that have begun and not ended.
func (w *world) setFaults() {
	var main, dead []sqsserver.Fault
	for _, f := range w.s.Faults {
		fault := sqsserver.Fault{Kind: f.Kind, Action: f.Action, Probability: f.Probability, Delay: f.Delay}
		switch {
		case f.Kind == "" || !f.When.has(w.now()):
		case f.DeadLetters:
			dead = append(dead, fault)
		default:
			main = append(main, fault)
		}
	}
	w.q.Fault(main...)
	if w.lane != nil {
		w.lane.Fault(main...)
	}
	if w.dead != nil {
		w.dead.Fault(dead...)
	}
}

// sleep waits for d, and reports whether the scenario still runs then.
func (w *world) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.done:
		return false
	case <-timer.C:
		return !isClosed(w.done)
	}
}

func (w *world) jump(by time.Duration) {
	w.look() // what the jump leaps over has been there
	if err := w.server.Advance(by); err != nil {
		w.t.Error(err)
	}
}

func (w *world) change(c change) {
	a := attributesOf(c.Delay, c.Visibility, c.Retention)
	switch {
	case c.MaxReceives < 0:
		a["RedrivePolicy"] = ""
	case c.MaxReceives > 0 && w.dead != nil:
		a["RedrivePolicy"] = fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, w.dead.ARN(), c.MaxReceives)
	}
	if len(a) > 0 {
		w.q.SetAttributes(a)
	}
}

// produce sends the messages, through a Sender.
func (w *world) produce() {
	sender, err := reprise.NewSender(wire{w.q.Direct(), w, -1}, w.q.URL(), w.s.senderConfig())
	if err != nil {
		w.refuse(err)
		return
	}
	order := make([]int, len(w.s.Messages))
	for n := range order {
		order[n] = n
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(w.s.Messages[a].At, w.s.Messages[b].At) })
	for _, n := range order {
		m := w.s.Messages[n]
		if !w.sleep(m.At - w.now()) {
			break // the scenario was ended before
		}
		ctx, cancel := context.Background(), context.CancelFunc(func() {})
		if limit := w.s.Sender.TimeLimit; limit > 0 {
			ctx, cancel = context.WithTimeout(ctx, limit)
		}
		done := func(r reprise.Sent) {
			cancel()
			w.mu.Lock()
			defer w.mu.Unlock()
			w.sent[n] = sentMessage{true, w.now(), r.ID, r.Err, errors.Is(r.Err, reprise.ErrUnconfirmed)}
		}
		if err := sender.Submit(ctx, w.s.outgoing(n), done); err != nil {
			done(reprise.Sent{Err: err})
		}
	}
	if _, err := sender.Close(context.Background()); err != nil {
		return // each message has its own error
	}
}

func (w *world) refuse(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refused = err
}

// isRefused reports whether a process or sender could not be made.
func (w *world) isRefused() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refused != nil
}

// waiting returns the messages of the queue and the lane.
func (w *world) waiting() []sqsserver.MessageInfo {
	all := w.q.Messages()
	if w.lane != nil {
		all = append(all, w.lane.Messages()...)
	}
	return all
}

// countCopies notes how many messages have the body of message n.
func (w *world) countCopies(n int) {
	count := 0
	for _, m := range w.waiting() {
		count += b2i(number(m.Body) == n)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.transits = append(w.transits, transit{n, count, w.now()})
}

// look notes what the processes say, and which messages have gone. It reports whether nothing remains to
// be waited for.
func (w *world) look() (finished bool) {
	w.mu.Lock()
	programs := slices.Clone(w.processes)
	w.mu.Unlock()
	for n, l := range programs {
		if l.program == nil || l.program.consumer == nil || l.crashed || l.until > 0 {
			continue
		}
		status := l.program.status()
		var pool reprise.PoolStatus
		if l.program.pool != nil {
			pool = l.program.pool.Status()
		}
		w.mu.Lock()
		if len(pool.Queues) > 0 {
			l.pools = append(l.pools, pool)
		}
		looked := sample{process: n, at: w.now(), status: status}
		if l.receiveFailedSince >= 0 {
			looked.failing = w.now() - l.receiveFailedSince
		}
		w.samples = append(w.samples, looked)
		w.mu.Unlock()
	}
	waiting := w.notice()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over > 0 || len(w.processes) < len(w.s.Processes) || w.errandsWait() {
		return false
	}
	return !slices.ContainsFunc(waiting, func(m sqsserver.MessageInfo) bool { return !w.givenUp(m.ID) || w.s.longest() < 3*time.Hour })
}

// notice notes which messages have gone since it was called before. It returns those that are there.
func (w *world) notice() []sqsserver.MessageInfo {
	now := w.now()
	waiting := w.waiting()
	there := make(map[string]sqsserver.MessageInfo)
	for _, m := range waiting {
		there[m.ID] = m
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, m := range w.seen {
		if _, ok := there[id]; !ok {
			w.gone = append(w.gone, gone{number(m.Body), id, w.seenAt, now, w.known[id], m.State == sqsserver.Visible, m.Sent})
		}
	}
	w.seen, w.seenAt = there, now
	return waiting
}

// givenUp reports whether a consumer has said that it keeps the message until it expires.
func (w *world) givenUp(id string) bool {
	return slices.ContainsFunc(w.settled, func(s settled) bool { return s.id == id && s.outcome == reprise.OutcomeKeep })
}

// end stops what lives, and notes what is left.
func (w *world) end(produced <-chan struct{}) {
	w.notice()
	w.mu.Lock()
	w.over = max(w.now(), 1)
	close(w.done)
	programs := slices.Clone(w.processes)
	w.mu.Unlock()
	var stopping sync.WaitGroup
	for _, l := range programs {
		if l.program != nil {
			stopping.Go(l.program.stop)
		}
	}
	stopping.Wait()
	for _, q := range []*reprisetest.Queue{w.q, w.lane, w.dead} {
		if q != nil {
			q.Fault() // the sender would try for ever
		}
	}
	<-produced
	w.left = w.notice()
	w.leaveErrands()
	if w.dead != nil {
		w.letters = w.dead.Messages()
		w.readStories()
	}
}

var errNotReceived = errors.New("the letter was not received")

// readStories reads the letters' stories as an operator's program does: from a receive.
func (w *world) readStories() {
	client := w.dead.Direct()
	for _, m := range w.letters {
		w.readings[m.ID] = reading{err: errNotReceived}
	}
	for {
		out, err := client.ReceiveMessage(context.Background(), receiveAll(w.dead.URL()))
		if err != nil || len(out.Messages) == 0 {
			return
		}
		for i := range out.Messages {
			m := &out.Messages[i]
			story, trusted, err := reprise.ReadStory(w.dead.URL(), m, signingKeys())
			n := number(str(m.Body))
			same := n >= 0 && n < len(w.s.Messages) && sameContent(w.s, n, &reprise.Message{
				Body: str(m.Body), Attributes: m.MessageAttributes, TraceHeader: m.Attributes["AWSTraceHeader"], GroupID: m.Attributes["MessageGroupId"],
			})
			w.readings[str(m.MessageId)] = reading{story, trusted, err, same}
			if err := w.server.Delete(w.dead.Name(), str(m.MessageId)); err != nil { // the next of its group can be received then
				w.t.Error(err)
			}
		}
	}
}
