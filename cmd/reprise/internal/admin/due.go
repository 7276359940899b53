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
	// Looked is how many messages were looked at. Complete reports that these were all; otherwise there was no
	// time for more, and they were the oldest.
	Looked   int  `json:"looked"`
	Complete bool `json:"complete"`
}

// SpanOfDue are the messages that become visible within a time from now, and not before the span before it.
type SpanOfDue struct {
	// Within is minute, hour, day or later.
	Within   string    `json:"within"`
	Messages int       `json:"messages"`
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
	// dueBudget is how long a look at what is due may take: a page asks for it again and again.
	dueBudget = time.Second
	// maxWhys bounds the reasons of a span.
	maxWhys = 8
)

// spans are those of Due, each until its end from now.
var spans = []struct {
	name string
	end  time.Duration
}{{"minute", time.Minute}, {"hour", time.Hour}, {"day", 24 * time.Hour}, {"later", 1<<63 - 1}}

type whyKey struct{ state, why, pattern string }

func (a *API) due(r *http.Request) (due Due, err error) {
	server, err := a.server()
	if err != nil {
		return due, err
	}
	queue, began := r.PathValue("queue"), time.Now()
	due.At = server.Now().UTC()
	asks := a.asker(queue)
	byWhy := make([]map[whyKey]int, len(spans))
	for i, s := range spans {
		due.Spans = append(due.Spans, SpanOfDue{Within: s.name})
		byWhy[i] = make(map[whyKey]int)
	}
	for page := (sqsserver.Page{Limit: pageSize}); ; {
		infos, err := server.Messages(queue, page)
		if err != nil {
			return due, inspectError(err)
		}
		for i := range infos {
			info := &infos[i]
			due.Looked++
			if info.State == sqsserver.Visible {
				continue
			}
			at := slices.IndexFunc(spans, func(s struct {
				name string
				end  time.Duration
			}) bool {
				return info.Due.Sub(due.At) < s.end
			})
			m := messageOf(queue, info)
			standing := asks.standing(&m, "")
			due.Spans[max(at, 0)].add(info.Due.UTC())
			byWhy[max(at, 0)][whyKey{standing.State, standing.Why, operate.Pattern(standing.Error)}]++
		}
		if len(infos) < pageSize {
			due.Complete = true
			break
		}
		page.After = infos[len(infos)-1].Number
		if time.Since(began) > dueBudget || r.Context().Err() != nil {
			break
		}
	}
	for i := range due.Spans {
		due.Spans[i].explain(byWhy[i])
	}
	return due, nil
}

func (s *SpanOfDue) add(due time.Time) {
	s.Messages++
	if s.First.IsZero() || due.Before(s.First) {
		s.First = due
	}
	if due.After(s.Last) {
		s.Last = due
	}
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
