package admin

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// Problems that nobody reports when they begin and end are looked for from time to time, without a viewer: those of
// consumers, and the findings of the process's own queues. Questions to AWS would cost money, so the findings of its
// queues are not looked for.

// watcher looks for problems until it is stopped.
type watcher struct {
	cancel context.CancelFunc
	ended  chan struct{}
	known  map[problemKey]*knownProblem // those that there are now
	// received is, by URL, how many messages were received from a queue, and since when there are so many.
	received map[string]lastReceived
	// related has, by URL, the queues that a queue's attributes say something about: its dead-letter queue, and those
	// whose dead-letter queue it is. It is that of the last look that could read the attributes.
	related map[string][]string
}

type lastReceived struct {
	count int64
	at    time.Time
}

// problemKey tells problems apart whose words change, such as a number of dead letters.
type problemKey struct{ url, code string }

type knownProblem struct {
	since time.Time
	text  string // what it was when it was seen last
	seen  bool   // in this look
}

const (
	// lookEvery is the time between two looks. A look that takes long makes it longer, so that all of them take at most
	// one part in lookShare of a processor's time.
	lookEvery = 5 * time.Second
	lookShare = 100
	// codeHealth is the code of a consumer's own problem, and codeUnreceived that of a queue from which nobody receives.
	codeHealth     = "health"
	codeUnreceived = "unreceived"
)

// Start notes the start of the process, and has problems looked for until Stop.
func (a *API) Start() {
	a.cfg.Events.timeline.add("", TimelineEntry{At: a.since, Kind: KindStart, Text: "The process started, version " + a.cfg.Version})
	ctx, cancel := context.WithCancel(context.Background())
	a.watcher.cancel, a.watcher.ended = cancel, make(chan struct{})
	go func() {
		defer close(a.watcher.ended)
		a.watchProblems(ctx)
	}()
}

// stopWatching ends what Start began.
func (a *API) stopWatching() {
	if a.watcher.cancel != nil {
		a.watcher.cancel()
		<-a.watcher.ended
	}
}

func (a *API) watchProblems(ctx context.Context) {
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		began := time.Now()
		a.lookForProblems(ctx)
		next.Reset(max(lookEvery, lookShare*time.Since(began)))
	}
}

// lookForProblems adds the problems that have begun, and those that have ended, since the look before.
func (a *API) lookForProblems(ctx context.Context) {
	a.watcher.begin()
	for _, c := range a.cfg.Consumers() {
		status := c.Status()
		if status.Problem != "" && (len(status.Breakers) == 0 || a.watcher.knows(c.URL, codeHealth)) { // breakers are told of by themselves
			a.see(c.URL, codeHealth, status.Problem)
		}
	}
	if a.cfg.Server != nil {
		now := a.takeStats(ctx)
		if now.Problem != "" { // the server is being stopped: nothing is known of what has ended
			return
		}
		a.lookAtQueues(&now)
	}
	for key, p := range a.watcher.known {
		if !p.seen {
			delete(a.watcher.known, key)
			a.cfg.Events.timeline.add(key.url, TimelineEntry{Kind: KindFinding, Text: fmt.Sprintf("A problem ended after %s. It was: %s", operate.Ago(time.Since(p.since)), p.text)})
		}
	}
}

// lookAtQueues sees the problems of the process's own queues.
func (a *API) lookAtQueues(now *Stats) {
	received := make(map[string]lastReceived, len(now.Queues))
	unsure := a.watcher.relate(now.Queues)
	for i := range now.Queues {
		q := &now.Queues[i]
		if unsure[q.Queue.URL] { // what is not known has neither begun nor ended
			a.watcher.keep(q.Queue.URL)
		} else {
			for _, f := range q.Queue.Findings {
				a.see(q.Queue.URL, f.Code, f.Problem)
			}
		}
		if q.Traffic == nil {
			continue
		}
		last, known := a.watcher.received[q.Queue.URL]
		if !known || last.count != q.Traffic.Received {
			last = lastReceived{q.Traffic.Received, now.At}
		}
		received[q.Queue.URL] = last
		// Some receive once in a while: between two looks alone, nothing received is no problem.
		if now.At.Sub(last.at) >= longUnreceived && q.waitsForNobody(q, now) {
			a.see(q.Queue.URL, codeUnreceived, unreceivedText(q.Queue.Visible, now.At.Sub(q.Queue.Oldest)))
		}
	}
	a.watcher.received = received
}

// begin begins a look.
func (w *watcher) begin() {
	if w.known == nil {
		w.known = make(map[problemKey]*knownProblem)
	}
	for _, p := range w.known {
		p.seen = false
	}
}

// relate notes which queues are related, and returns those whose findings are not known in this look: the queues whose
// attributes could not be read, and those related to them.
func (w *watcher) relate(queues []QueueStats) (unsure map[string]bool) {
	unsure = make(map[string]bool)
	urls := make(map[string]string, len(queues))
	for i := range queues {
		urls[queues[i].Queue.Name] = queues[i].Queue.URL
	}
	before := w.related
	w.related = make(map[string][]string)
	for i := range queues {
		q := &queues[i].Queue
		related := make([]string, 0, 1+len(q.DeadLettersOf))
		for _, name := range slices.Concat(q.DeadLettersOf, []string{q.DeadLetterQueue}) {
			if url := urls[name]; url != "" {
				related = append(related, url)
			}
		}
		if slices.ContainsFunc(q.Findings, func(f operate.Finding) bool { return f.Code == operate.CodeUnreadable }) {
			related = append(related, before[q.URL]...)
			unsure[q.URL] = true
			for _, other := range related {
				unsure[other] = true
			}
		}
		if len(related) > 0 {
			slices.Sort(related)
			w.related[q.URL] = slices.Compact(related)
		}
	}
	return unsure
}

// keep sees what is known of a queue once more.
func (w *watcher) keep(url string) {
	for key, p := range w.known {
		p.seen = p.seen || key.url == url
	}
}

func (w *watcher) knows(url, code string) bool { return w.known[problemKey{url, code}] != nil }

// see notes that there is a problem, and adds it if it is new.
func (a *API) see(url, code, text string) {
	text = terminal.Line(text, maxSaid)
	p := a.watcher.known[problemKey{url, code}]
	if p == nil {
		p = &knownProblem{since: time.Now()}
		a.watcher.known[problemKey{url, code}] = p
		a.cfg.Events.timeline.add(url, TimelineEntry{Kind: KindFinding, Text: "A problem began: " + text})
	}
	p.text, p.seen = text, true
}
