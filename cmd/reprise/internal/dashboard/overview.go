package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/plan"
)

var overviewPage = page{
	path: Home + "{$}", template: "overview", nav: "Overview", live: 2 * time.Second,
	data: func(v *view) (string, any, error) {
		now, before, err := v.samples.latest(v.Context())
		if err != nil {
			return "", nil, err
		}
		return "Overview", newOverview(now, before), nil
	},
}

// overview has what needs attention, then all queues.
type overview struct {
	At        time.Time
	Attention []attention
	Queues    []queueRow
	Totals    totals
	// Problem is why the queues are not known.
	Problem string
}

// attention is something that somebody should look at.
type attention struct {
	Level  level
	Queue  string
	Text   string
	Remedy string
	Since  time.Time // zero: not known
}

// level says how urgent something is. The more urgent ones are larger.
type level int

const (
	levelFine level = iota
	levelNote
	levelWarning
	levelBad
)

// String is the name of its class in the style sheet, and its word on the page.
func (l level) String() string { return [...]string{"ok", "note", "warning", "critical"}[l] }

// queueRow is a queue of the table.
type queueRow struct {
	admin.Row
	Level level
	// Dead is how many messages the dead-letter queue has; nil: there is none, or it is not known.
	Dead      *int
	DeadQueue string
	// DeadLettersOf are the queues whose dead letters it takes.
	DeadLettersOf []string
	Findings      []operate.Finding
}

type totals struct{ Visible, InFlight, Delayed, Dead int }

func newOverview(now, before *admin.Stats) *overview {
	o := &overview{At: now.At, Problem: now.Problem}
	byName := make(map[string]*operate.Queue, len(now.Queues))
	byURL := make(map[string]*operate.Queue, len(now.Queues))
	for i := range now.Queues {
		q := &now.Queues[i].Queue
		byName[q.Name], byURL[q.URL] = q, q
	}
	if o.Problem != "" {
		o.Attention = append(o.Attention, attention{Level: levelBad, Text: "The queues cannot be described: " + o.Problem, Remedy: "Check the network, the credentials and the permission sqs:GetQueueAttributes."})
	}
	for _, row := range admin.Rows(now, before) {
		of := queueRow{Row: row}
		if q := byURL[row.URL]; q != nil {
			of.DeadLettersOf, of.Findings, of.DeadQueue = q.DeadLettersOf, q.Findings, q.DeadLetterQueue
			if dead := byName[q.DeadLetterQueue]; dead != nil {
				n := dead.Visible + dead.InFlight + dead.Delayed
				of.Dead = &n
			}
			o.Totals.add(q)
		}
		for _, a := range of.attention() {
			of.Level = max(of.Level, a.Level)
			o.Attention = append(o.Attention, a)
		}
		o.Queues = append(o.Queues, of)
	}
	consumerSince(now, o.Attention)
	slices.SortStableFunc(o.Attention, func(a, b attention) int { return cmp.Compare(b.Level, a.Level) })
	slices.SortStableFunc(o.Queues, func(a, b queueRow) int {
		return cmp.Or(cmp.Compare(b.Level, a.Level), cmp.Compare(len(a.DeadLettersOf), len(b.DeadLettersOf)))
	})
	return o
}

func (t *totals) add(q *operate.Queue) {
	if len(q.DeadLettersOf) > 0 {
		t.Dead += q.Visible + q.InFlight + q.Delayed
		return
	}
	t.Visible += q.Visible
	t.InFlight += q.InFlight
	t.Delayed += q.Delayed
}

// attention is what is wrong with a queue and its consumer.
func (r *queueRow) attention() (all []attention) {
	for _, p := range r.Problems {
		if slices.ContainsFunc(r.Findings, func(f operate.Finding) bool { return f.Problem == p }) {
			continue
		}
		all = append(all, attention{Level: levelOfState(r.State), Queue: r.Queue, Text: p})
	}
	for _, f := range r.Findings {
		l := levelWarning
		if f.Severity == plan.Error.String() {
			l = levelBad
		}
		if f.Code == operate.CodeDeadLetters {
			l = levelBad
		}
		all = append(all, attention{Level: l, Queue: r.Queue, Text: f.Problem, Remedy: f.Remedy})
	}
	return all
}

// levelOfState is how urgent the state of a consumer is: see admin.Row.
func levelOfState(state string) level {
	switch state {
	case "breaker open", "breaker half-open", "failing":
		return levelBad
	case "breaker ramping", "degraded":
		return levelWarning
	}
	return levelNote
}

// consumerSince adds since when breakers are open.
func consumerSince(now *admin.Stats, all []attention) {
	for i := range now.Consumers {
		c := &now.Consumers[i].Consumer
		for j := range all {
			if all[j].Queue != c.Queue || !all[j].Since.IsZero() {
				continue
			}
			for _, b := range c.Breakers {
				if b.Key == "" && all[j].Level == levelBad {
					all[j].Since = b.Since
				}
			}
		}
	}
}

// Summary is the state of all queues in a sentence.
func (o *overview) Summary() string {
	bad, warnings := 0, 0
	for _, a := range o.Attention {
		switch a.Level {
		case levelBad:
			bad++
		case levelWarning:
			warnings++
		}
	}
	switch {
	case bad+warnings == 0:
		return "Nothing needs attention."
	case bad == 0:
		return plural.Of(warnings, "warning") + "."
	case warnings == 0:
		return plural.Of(bad, "problem") + "."
	}
	return fmt.Sprintf("%s and %s.", plural.Of(bad, "problem"), plural.Of(warnings, "warning"))
}
