package admin

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// Due is what of a queue comes due when, and why it waits until then.
type Due struct {
	At    time.Time   `json:"at"`
	Spans []SpanOfDue `json:"spans"`
	// Looked is how many of the messages were asked why they wait. Complete reports that these were all.
	Looked   int  `json:"looked"`
	Complete bool `json:"complete"`
}

// Empty reports that nothing comes due.
func (d Due) Empty() bool {
	return !slices.ContainsFunc(d.Spans, func(s SpanOfDue) bool { return s.Messages > 0 })
}

// SpanOfDue are the messages that become visible within a time from now, and not before the span before it.
type SpanOfDue struct {
	// Within is minute, hour, day or later.
	Within string `json:"within"`
	// Messages is how many they are, and Looked of how many the reasons are: of all, or of some that are
	// spread evenly over the queue.
	Messages int       `json:"messages"`
	Looked   int       `json:"looked"`
	First    time.Time `json:"first,omitzero"` // of their due times
	Last     time.Time `json:"last,omitzero"`
	// Why are the reasons, the most frequent first; Others counts the messages of further ones.
	Why    []WhyDue `json:"why,omitempty"`
	Others int      `json:"others,omitempty"`
}

// WhyDue is why messages wait: see operate.Standing.
type WhyDue struct {
	State    string `json:"state"`
	Why      string `json:"why"`
	Error    string `json:"error,omitempty"` // without what differs between the messages
	Messages int    `json:"messages"`
}

const (
	// maxSampled is of how many messages of a span the reasons are found out: that takes a hundred times
	// as long as counting one.
	maxSampled = 500
	// maxWhys bounds the reasons of a span.
	maxWhys = 8
)

// spans are those of Due, each until its end from now; the last has no end.
var spans = []string{"minute", "hour", "day", "later"}

var spanEnds = []time.Duration{time.Minute, time.Hour, 24 * time.Hour}

type whyKey struct{ state, why, pattern string }

func (a *API) due(r *http.Request) (due Due, err error) {
	server, err := a.server()
	if err != nil {
		return due, err
	}
	queue := r.PathValue("queue")
	now, counted, err := server.Due(queue, spanEnds, maxSampled)
	if err != nil {
		return due, inspectError(err)
	}
	due.At, due.Complete = now.UTC(), true
	asks := a.asker(queue)
	for i := range counted {
		c := &counted[i]
		span := SpanOfDue{Within: spans[i], Messages: c.Messages, First: c.First.UTC(), Last: c.Last.UTC()}
		byWhy := make(map[whyKey]int)
		var infos []sqsserver.MessageInfo
		if len(c.Sample) > 0 {
			if infos, err = server.Messages(queue, sqsserver.Page{Numbers: c.Sample, WithoutBodies: true}); err != nil {
				return due, inspectError(err)
			}
		}
		for j := range infos {
			if infos[j].State == sqsserver.Visible { // meanwhile
				continue
			}
			m := messageOf(queue, &infos[j])
			standing := asks.standing(&m, "")
			byWhy[whyKey{standing.State, standing.Why, operate.Pattern(standing.Error)}]++
			span.Looked++
		}
		span.explain(byWhy)
		due.Looked += span.Looked
		due.Complete = due.Complete && span.Looked == span.Messages
		due.Spans = append(due.Spans, span)
	}
	return due, nil
}

func (s *SpanOfDue) explain(by map[whyKey]int) {
	for key, n := range by {
		s.Why = append(s.Why, WhyDue{key.state, key.why, key.pattern, n})
	}
	slices.SortFunc(s.Why, func(a, b WhyDue) int {
		return cmp.Or(cmp.Compare(b.Messages, a.Messages), cmp.Compare(a.State, b.State), cmp.Compare(a.Why, b.Why), cmp.Compare(a.Error, b.Error))
	})
	for len(s.Why) > maxWhys {
		s.Others += s.Why[len(s.Why)-1].Messages
		s.Why = s.Why[:len(s.Why)-1]
	}
}
