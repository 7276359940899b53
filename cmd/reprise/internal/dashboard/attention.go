package dashboard

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/plan"
)

// attention is something that somebody should look at.
type attention struct {
	Level  level
	Queue  string
	Key    string // that names the queue in links
	Text   string
	Remedy string
	Since  time.Time // zero: not known
	// Links lead to what explains it, and Acts are what can be done about it here.
	Links []link
	Acts  []button

	consumer string // the URL of the consumer that it is about; empty: none
}

type link struct{ URL, Label string }

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

// labels are the words on the buttons of actions.
var labels = map[string]string{"probe": "Probe now", "resume": "Resume", "wake": "Retry waiting messages now", "pause": "Pause"}

// attention is what is wrong with a queue and its consumer.
func (r *queueRow) attention() (all []attention) {
	for _, t := range r.Troubles {
		a := attention{Level: levelOfState(r.State), Queue: r.Queue, Key: r.Key, Text: t.Text, consumer: r.Consumer}
		if r.State == "" { // it has no consumer here
			a.Level, a.Remedy = levelWarning, "Start its consumer. If one runs, see to which endpoint and queue it is connected."
		}
		if t.Action == "wake" { // retries are as they should be
			a.Level, a.Links = levelNote, []link{{queueURL(r.Key) + "#due", "See why"}}
		}
		if t.Action != "" && r.Consumer != "" {
			a.Acts = append(a.Acts, button{t.Action, labels[t.Action], r.Consumer, t.Key})
		}
		if t.Open && r.Visible != nil && *r.Visible > 0 {
			a.Remedy = grouped(int64(*r.Visible)) + " more wait in the queue. No attempts are counted until a probe succeeds; then all are delivered."
		}
		all = append(all, a)
	}
	for _, f := range r.Findings {
		l := levelWarning
		if f.Severity == plan.Error.String() || f.Code == operate.CodeDeadLetters {
			l = levelBad
		}
		a := attention{Level: l, Queue: r.Queue, Key: r.Key, Text: f.Problem, Remedy: sentence(f.Remedy)}
		if f.Code == operate.CodeDeadLetters {
			if r.Visible != nil {
				a.Text = "it has " + counted(*r.Visible+*r.InFlight+*r.Delayed, "dead letter") + "."
			}
			a.Since, a.Remedy, a.Links = r.Oldest, "", []link{{deadURL(r.Key), "See why, redrive or delete"}}
			if r.In != nil && *r.In > 0 {
				a.Text = strings.TrimSuffix(a.Text, ".") + ", and gets " + rateText(r.In) + " more per second now."
			}
		}
		all = append(all, a)
	}
	return all
}

const (
	// A queue gives up many of its messages if there were at least manyGivenUp since the sample before, and at
	// least one in so many of those that ended.
	manyGivenUp = 3
	oneGivenUp  = 20
)

// givesUp reports that a consumer gives up many of its messages: a deploy may be bad, although nothing waits.
func (r *queueRow) givesUp(now, before *admin.Stats) (a attention, many bool) {
	c, old := consumerAt(now, r.Consumer), consumerAt(before, r.Consumer)
	if c == nil || old == nil {
		return a, false
	}
	dead := c.Counts.DeadLettered - old.Counts.DeadLettered
	ended := dead + c.Counts.Deleted - old.Counts.Deleted
	if dead < manyGivenUp || dead*oneGivenUp < ended {
		return a, false
	}
	share := int(math.Round(100 * float64(dead) / float64(ended)))
	a = attention{
		Level: levelBad, Queue: r.Queue, Key: r.Key,
		Text:   fmt.Sprintf("it gives up %d%% of its messages: %s of %s in the last %s.", share, grouped(dead), grouped(ended), operate.Ago(now.At.Sub(before.At))),
		Remedy: "If its target was changed, pause the queue until the change is undone, then redrive.",
	}
	if r.DeadQueue != "" {
		a.Links = []link{{deadURL(r.DeadKey), "See why"}}
	}
	if !c.Paused {
		a.Acts = []button{{"pause", labels["pause"], r.Consumer, ""}}
	}
	return a, true
}

// sentence is a remedy as it stands after a full stop; tables have it after a colon.
func sentence(remedy string) string {
	first, size := utf8.DecodeRuneInString(remedy)
	return string(unicode.ToUpper(first)) + remedy[size:]
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
		for _, b := range c.Breakers {
			at := slices.IndexFunc(all, func(a attention) bool {
				return a.Queue == c.Queue && a.consumer == c.URL && a.Since.IsZero() && strings.HasPrefix(a.Text, "the breaker is ")
			})
			if b.Key == "" && at >= 0 {
				all[at].Since = b.Since
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
