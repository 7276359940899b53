package dashboard

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// The page of a queue: what happens in it now, over time, and what waits in it. Its messages are loaded apart
// from it, since they are not kept up to date: a list that moves cannot be read.
var queuePage = page{
	path: Path + "queues/{queue}", template: "queue", live: 2 * time.Second, charts: true,
	data: func(v *view) (string, any, error) {
		q, err := v.queue(v.PathValue("queue"))
		if err != nil {
			return "", nil, err
		}
		q.Search = searchOf(v.URL.Query())
		q.Own = v.cfg.Own
		if q.Happened, err = v.happened(q.Key, fewEntries); err != nil {
			return "", nil, err
		}
		return q.Queue, q, nil
	},
	parts: map[string]func(*view) (any, error){
		"due": func(v *view) (any, error) { return v.api.Due(v.Context(), v.PathValue("queue")) },
		"messages": func(v *view) (any, error) {
			search := searchOf(v.URL.Query())
			list, err := v.api.Messages(v.Context(), v.PathValue("queue"), admin.MessagesPage{
				State: search.State, Selection: search.criteria(), After: v.URL.Query().Get("after"), Limit: messagesOfPage, Body: 300,
			})
			return messageList{v.PathValue("queue"), search, list, v.URL.Query().Has("after")}, err
		},
	},
	figures: map[string]func(*view) (any, error){
		"figures": func(v *view) (any, error) {
			q, err := v.queue(v.PathValue("queue"))
			if err != nil {
				return nil, err
			}
			after, _ := strconv.ParseFloat(v.URL.Query().Get("after"), 64) // 0: all
			return v.samples.series(q.URL, after), nil
		},
	},
}

// messagesOfPage is how many messages a page of a list has.
const messagesOfPage = 50

// queueView is a queue with what the page of it shows.
type queueView struct {
	queueRow
	FIFO     bool
	Consumer *admin.Consumer
	Lane     bool // the retry lane of a consumer
	Problems []attention
	Search   search
	Own      bool
	Happened happened
}

// noQueueError is the reply to requests about a queue that the process does not know.
type noQueueError struct{ name string }

func (e *noQueueError) Error() string {
	return "This process knows no queue " + strconv.Quote(e.name) + ". It may have been deleted."
}

// ambiguousError is the reply to requests about a queue by a name that several have.
type ambiguousError struct {
	name string
	urls []string
}

func (e *ambiguousError) Error() string {
	return fmt.Sprintf("This process knows %d queues called %q: open one of them from the overview, whose links name it by its URL: %s.", len(e.urls), e.name, strings.Join(e.urls, ", "))
}

// queue finds a queue in what was asked for last, or in what is asked now: it may be new.
func (v *view) queue(name string) (*queueView, error) {
	q, err := v.queueOfSample(name)
	if _, unknown := errors.AsType[*noQueueError](err); unknown && v.samples.take(v.Context(), v.samples.anew) == nil {
		return v.queueOfSample(name)
	}
	return q, err
}

func (v *view) queueOfSample(name string) (*queueView, error) {
	now, before, err := v.samples.latest(v.Context())
	if err != nil {
		return nil, err
	}
	return findQueue(newOverview(now, before), now, name)
}

// findQueue finds a queue by its URL, or by its name, which must then be that of one only: the figures of another region's
// queue would pass for its own.
func findQueue(o *overview, now *admin.Stats, name string) (*queueView, error) {
	var urls []string
	var found *queueRow
	for i := range o.Queues {
		if row := &o.Queues[i]; row.URL == name {
			urls, found = []string{row.URL}, row
			break
		} else if row.Queue == name {
			urls, found = append(urls, row.URL), row
		}
	}
	switch {
	case found == nil:
		return nil, &noQueueError{name}
	case len(urls) > 1:
		return nil, &ambiguousError{name, urls}
	}
	q := &queueView{queueRow: *found, Consumer: consumerAt(now, found.Consumer), Lane: isLane(now, found.URL), FIFO: strings.HasSuffix(found.Queue, ".fifo")}
	for _, a := range o.Attention {
		if a.Key == found.Key {
			q.Problems = append(q.Problems, a)
		}
	}
	return q, nil
}

// search is what a list of messages is to have.
type search struct{ State, Text, ID, Group, Where, Older string }

func searchOf(query url.Values) search {
	get := func(name string) string { return strings.TrimSpace(query.Get(name)) }
	return search{get("state"), query.Get("text"), get("id"), get("group"), get("where"), get("older")}
}

// criteria is the selection. Text is looked for as it is, and not as a pattern.
func (s search) criteria() operate.Criteria {
	c := operate.Criteria{Group: s.Group, OlderThan: s.Older}
	if s.Text != "" {
		c.Body = literal(s.Text)
	}
	if s.ID != "" {
		c.IDs = []string{s.ID}
	}
	if s.Where != "" {
		c.Where = []string{s.Where}
	}
	return c
}

// literal is a pattern that matches a text in upper and lower case. Many programs write only ASCII into JSON: what is
// not ASCII is also found by its numbers.
func literal(text string) string {
	var b strings.Builder
	b.WriteString("(?i)")
	for _, r := range text {
		if r < utf8.RuneSelf {
			b.WriteString(regexp.QuoteMeta(string(r)))
			continue
		}
		b.WriteString("(?:" + regexp.QuoteMeta(string(r)) + "|")
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\\u%04x`, unit)
		}
		b.WriteByte(')')
	}
	return b.String()
}

// query is s in a URL, and after what the next page follows.
func (s search) query(after string) string {
	query := make(url.Values)
	for name, value := range map[string]string{"state": s.State, "text": s.Text, "id": s.ID, "group": s.Group, "where": s.Where, "older": s.Older, "after": after} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query.Encode()
}

// messageList is a page of a list.
type messageList struct {
	Queue  string
	Search search
	admin.Messages
	Later bool // it is not the first page
}

// NextURL loads the next page.
func (l messageList) NextURL() string {
	return queueURL(l.Queue) + "/messages?" + l.Search.query(l.Next)
}

// FirstURL loads the first.
func (l messageList) FirstURL() string { return queueURL(l.Queue) + "/messages?" + l.Search.query("") }

// ListURL is where the page of a queue loads its list.
func (q *queueView) ListURL() string { return queueURL(q.Key) + "/messages?" + q.Search.query("") }

// DueURL and FiguresURL are those of the page's other parts.
func (q *queueView) DueURL() string     { return queueURL(q.Key) + "/due" }
func (q *queueView) FiguresURL() string { return queueURL(q.Key) + "/figures" }

// StateText is the consumer's state in words. A dead-letter queue needs none.
func (q *queueView) StateText() string {
	if q.State == "" && len(q.DeadLettersOf) > 0 {
		return "none: dead letters wait here"
	}
	return cmp.Or(q.State, "no consumer in this process")
}
