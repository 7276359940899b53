package admin

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// The timeline is what happened since the process began, for an operator who comes later: events that are rare and
// noteworthy, and none of single messages. It needs no viewer, and ends with the process.

// Timeline is what happened, the newest first.
type Timeline struct {
	At time.Time `json:"at"`
	// Since is when the process began: what was before is not known.
	Since   time.Time       `json:"since"`
	Entries []TimelineEntry `json:"entries"`
	// More is how many further entries match, older than these.
	More int `json:"more,omitempty"`
	// Forgotten is how many entries were dropped, of the queue that was asked for or of all, so that the newest have
	// room.
	Forgotten int64 `json:"forgotten,omitempty"`
	// Queues are the names of the queues that have entries.
	Queues []string `json:"queues"`
}

// TimelineEntry is one thing that happened.
type TimelineEntry struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"`
	// Queue is the name of the queue, and URL its URL if that is known. Empty: it is about the process.
	Queue string `json:"queue,omitempty"`
	URL   string `json:"url,omitempty"`
	// Text is a sentence or two. Errors in it are escaped, and cut off.
	Text string `json:"text"`
	// Job and Message are the ids of those that it is about.
	Job     string `json:"job,omitempty"`
	Message string `json:"message,omitempty"`
}

// The kinds of entries.
const (
	KindStart       = "start"
	KindReload      = "reload"
	KindBreaker     = "breaker"
	KindPause       = "pause"
	KindLimits      = "limits" // concurrency and rate
	KindAction      = "action" // other actions of operators
	KindSignIn      = "sign-in"
	KindJob         = "job"
	KindFinding     = "finding"
	KindDeadLetters = "dead-letters"
)

const (
	// maxEntries bounds the memory of the timeline. maxOfGroup bounds the entries of one kind about one queue, so that
	// a breaker that opens and closes all the time does not push out all others.
	maxEntries = 1000
	maxOfGroup = 50
	// maxEntryText bounds a text, in bytes, before it is escaped; twice of it afterwards.
	maxEntryText = 700
	// maxEntryName and maxEntryURL have room for each name and URL that SQS gives.
	maxEntryName = 200
	maxEntryURL  = 500
)

// timeline is what a process remembers. The zero timeline is ready for use.
type timeline struct {
	mu        sync.Mutex
	entries   []TimelineEntry // the oldest first
	groups    map[group]*groupSize
	forgotten int64
}

// group is what maxOfGroup is for.
type group struct{ kind, queue string }

// groupSize is how many entries a group has, and how many it had.
type groupSize struct {
	held      int
	forgotten int64
}

// add adds an entry about a queue, given by name or URL; empty: about the process.
func (t *timeline) add(queue string, e TimelineEntry) {
	if strings.Contains(queue, "://") {
		e.URL = terminal.Line(queue, maxEntryURL)
	}
	e.Queue = terminal.Line(operate.NameOf(queue), maxEntryName)
	e.Text = terminal.Shorten(terminal.Line(e.Text, maxEntryText), 2*maxEntryText)
	if e.At.IsZero() {
		e.At = time.Now()
	}
	e.At = e.At.UTC()
	of := group{e.Kind, e.Queue}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.groups == nil {
		t.groups = make(map[group]*groupSize)
	}
	switch size := t.groups[of]; {
	case size != nil && size.held >= maxOfGroup:
		t.forget(of)
	case len(t.entries) >= maxEntries:
		t.forget(t.largest())
	}
	if t.groups[of] == nil {
		t.groups[of] = new(groupSize)
	}
	t.groups[of].held++
	at := len(t.entries)
	for at > 0 && t.entries[at-1].At.After(e.At) { // a short job may end before its beginning is told
		at--
	}
	t.entries = slices.Insert(t.entries, at, e)
}

// largest is the group with most entries, of several the one whose entry is the oldest: what happened once stays
// longer than what happens all the time. The caller holds the lock.
func (t *timeline) largest() group {
	of := group{t.entries[0].Kind, t.entries[0].Queue}
	for i := range t.entries {
		if other := (group{t.entries[i].Kind, t.entries[i].Queue}); t.groups[other].held > t.groups[of].held {
			of = other
		}
	}
	return of
}

// forget drops the oldest entry of a group. The caller holds the lock.
func (t *timeline) forget(of group) {
	oldest := slices.IndexFunc(t.entries, func(e TimelineEntry) bool { return e.Kind == of.kind && e.Queue == of.queue })
	t.entries = slices.Delete(t.entries, oldest, oldest+1)
	t.forgotten++
	size := t.groups[of]
	size.forgotten++
	if size.held--; size.held == 0 { // it is not to be remembered for each queue that there ever was
		delete(t.groups, of)
	}
}

// TimelineQuery is which part of the timeline is asked for.
type TimelineQuery struct {
	// Queue is a name or URL. Default: all queues, and the process.
	Queue string
	// Since excludes older entries. Default: none.
	Since time.Time
	// Limit is how many entries are wanted. Default: 100.
	Limit int
}

const defaultTimelineLimit = 100

// read returns the part of the timeline that is asked for.
func (t *timeline) read(q TimelineQuery) Timeline {
	found := Timeline{At: time.Now().UTC(), Entries: []TimelineEntry{}, Queues: []string{}}
	limit := cmp.Or(q.Limit, defaultTimelineLimit)
	name := operate.NameOf(q.Queue)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range slices.Backward(t.entries) {
		switch {
		case q.Queue != "" && q.Queue != e.Queue && q.Queue != e.URL, e.At.Before(q.Since):
		case len(found.Entries) >= limit:
			found.More++
		default:
			found.Entries = append(found.Entries, e)
		}
	}
	found.Forgotten = t.forgotten
	if q.Queue != "" {
		found.Forgotten = 0
	}
	for of, size := range t.groups {
		if q.Queue != "" && of.queue == name {
			found.Forgotten += size.forgotten
		}
		if of.queue != "" && !slices.Contains(found.Queues, of.queue) {
			found.Queues = append(found.Queues, of.queue)
		}
	}
	slices.Sort(found.Queues)
	return found
}

func (a *API) timeline(r *http.Request) (found Timeline, err error) {
	query := r.URL.Query()
	q := TimelineQuery{Queue: query.Get("queue")}
	if q.Since, err = sinceOf(query.Get("since")); err != nil {
		return found, err
	}
	if text := query.Get("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 1 || q.Limit > maxEntries {
			return found, problem(http.StatusBadRequest, "bad-request", "limit is %q: pass a number from 1 to %d", text, maxEntries)
		}
	}
	found = a.cfg.Events.timeline.read(q)
	found.Since = a.since.UTC()
	return found, nil
}

// sinceOf reads a time, or how long ago it was.
func sinceOf(text string) (since time.Time, err error) {
	if text == "" {
		return since, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return time.Now().Add(-ago), nil
	}
	if since, err = time.Parse(time.RFC3339, text); err != nil {
		return since, problem(http.StatusBadRequest, "bad-request", "since is %q: pass how long ago, such as 8h or 90m, or a time such as 2026-11-26T03:00:00Z", text)
	}
	return since, nil
}

// Timeline returns what happened since the process began.
func (c *Client) Timeline(ctx context.Context, q TimelineQuery) (t Timeline, err error) {
	query := make(url.Values)
	if q.Queue != "" {
		query.Set("queue", q.Queue)
	}
	if !q.Since.IsZero() {
		query.Set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	if q.Limit != 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	err = c.call(ctx, http.MethodGet, "timeline?"+query.Encode(), nil, &t)
	return t, err
}
