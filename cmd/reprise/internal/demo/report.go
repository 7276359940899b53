package demo

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// report is the text that the demo prints at its end.
type report struct {
	out      *terminal.Terminal
	evidence evidence
	findings []finding
	letters  []deadLetter
	calls    reprise.Calls
	took     time.Duration
}

const maxBrokenLines = 5

func (r *report) print() {
	r.summary()
	r.histogram()
	r.retries()
	r.outage()
	r.deadLetters()
	r.cost()
	r.promises()
}

func (r *report) heading(format string, args ...any) {
	r.out.Printf("")
	r.out.Wrap(2, fmt.Sprintf(format, args...))
}

func (r *report) summary() {
	delivered := 0
	for _, rec := range r.evidence.consumer.records {
		delivered += min(1, rec.successes)
	}
	text := fmt.Sprintf("%s in %.1f s: %d delivered, %s", plural.Of(len(r.evidence.bodies), "message"), r.took.Seconds(), delivered, plural.Of(len(r.letters), "dead letter"))
	if n := len(r.evidence.waiting); n > 0 {
		text += fmt.Sprintf(", %d left in the queue", n)
	}
	r.heading("%s", text)
}

// histogram shows the number of messages by their number of attempts.
func (r *report) histogram() {
	var counts []int // by attempts
	most, messages := 0, 0
	for _, rec := range r.evidence.consumer.records {
		if rec.attempts == 0 {
			continue
		}
		for len(counts) <= rec.attempts {
			counts = append(counts, 0)
		}
		counts[rec.attempts]++
		messages++
		most = max(most, counts[rec.attempts])
	}
	if messages == 0 {
		return
	}
	r.heading("Attempts per message")
	digits := len(fmt.Sprint(most))
	room := min(50, r.out.Width()-digits-8)
	for attempts, n := range counts {
		if attempts == 0 {
			continue
		}
		line := fmt.Sprintf("  %2d %*d", attempts, digits, n)
		if n > 0 {
			line += " " + r.out.Paint(terminal.Green, r.out.Bar(float64(n)/float64(most), room))
		}
		r.out.Printf("%s", line)
	}
}

// retries lists the kinds of failed runs, the most frequent first.
func (r *report) retries() {
	failures := r.evidence.consumer.failures
	total := 0
	for _, n := range failures {
		total += n
	}
	if total == 0 {
		return
	}
	r.heading("Failed runs of the handler: %d", total)
	kinds := slices.SortedFunc(maps.Keys(failures), func(a, b string) int {
		return cmp.Or(failures[b]-failures[a], strings.Compare(a, b))
	})
	for _, k := range kinds {
		r.out.Wrap(8, fmt.Sprintf("  %5d %s", failures[k], k))
	}
}

// outage shows what the outage cost.
func (r *report) outage() {
	c := r.evidence.cost()
	if !c.opened || c.length == 0 {
		return
	}
	r.heading("The outage of %.1f s cost %s", c.length.Seconds(), plural.Of(c.attempts, "attempt"))
	for _, line := range []struct {
		n    int
		text string
	}{
		{c.openers, "failed until the breaker opened"},
		{c.canaries, "sent as canaries after that, which count as no attempt"},
		{c.held, "held at once, at most"},
	} {
		r.out.Wrap(8, fmt.Sprintf("  %5d %s", line.n, line.text))
	}
}

// deadLetters lists the reasons for which messages were given up.
func (r *report) deadLetters() {
	if len(r.letters) == 0 {
		return
	}
	type group struct{ reason, error string }
	groups := make(map[group]int)
	attempts := make(map[group]int)
	for _, l := range r.letters {
		g := group{l.story.Reason, strings.TrimPrefix(l.story.Error, "permanent: ")}
		groups[g]++
		attempts[g] = max(attempts[g], l.story.Attempts)
	}
	r.heading("Dead letters: %d, with their reasons", len(r.letters))
	sorted := slices.SortedFunc(maps.Keys(groups), func(a, b group) int {
		return cmp.Or(strings.Compare(b.reason, a.reason), groups[b]-groups[a], strings.Compare(a.error, b.error))
	})
	for _, g := range sorted {
		text := fmt.Sprintf("  %5d %s: %s", groups[g], g.reason, g.error)
		if g.reason == "attempts" {
			text += fmt.Sprintf(" (%s)", plural.Of(attempts[g], "attempt"))
		}
		r.out.Wrap(8, text)
	}
}

// cost shows the calls, by kind, that SQS would have billed.
func (r *report) cost() {
	n := float64(len(r.evidence.bodies))
	attempts := 0
	for _, rec := range r.evidence.consumer.records {
		attempts += rec.attempts
	}
	r.heading("API calls per message: %.2f, per attempt: %.2f",
		float64(r.calls.Total())/n, float64(r.calls.Total())/float64(max(1, attempts)))
	for _, c := range []struct {
		name  string
		calls int64
	}{
		{"receive", r.calls.Receives},
		{"delete", r.calls.Deletes},
		{"hide until the next attempt", r.calls.Visibilities},
		{"renew a lease", r.calls.Heartbeats},
		{"send a dead letter", r.calls.Sends},
		{"read the queue's attributes", r.calls.Attributes},
	} {
		if c.calls > 0 {
			r.out.Wrap(8, fmt.Sprintf("  %5.2f %s", float64(c.calls)/n, c.name))
		}
	}
}

// promises shows which promises were kept.
func (r *report) promises() {
	r.heading("Compared with the records of the service")
	for _, f := range r.findings {
		if len(f.broken) == 0 {
			r.out.Wrap(5, "  "+r.out.Paint(terminal.Green, "ok")+" "+f.promise)
			continue
		}
		r.out.Wrap(9, "  "+r.out.Paint(terminal.Red, "BROKEN")+" "+f.promise)
		for i, line := range f.broken {
			if i == maxBrokenLines {
				r.out.Wrap(9, fmt.Sprintf("         and %d more", len(f.broken)-i))
				break
			}
			r.out.Wrap(9, "         "+line)
		}
	}
}
