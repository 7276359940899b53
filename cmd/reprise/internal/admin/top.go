package admin

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// Row is a queue with its consumer, as reprise top shows it. What is not known is left out.
type Row struct {
	At    time.Time `json:"at"`
	Queue string    `json:"queue"` // its name
	URL   string    `json:"url"`
	// Visible, InFlight and Delayed are SQS's counts.
	Visible  *int      `json:"visible,omitempty"`
	InFlight *int      `json:"in_flight,omitempty"`
	Delayed  *int      `json:"delayed,omitempty"`
	Oldest   time.Time `json:"oldest,omitzero"` // when the oldest message was sent
	// Working are the messages in handlers of the process, Backoff those that it has hidden until
	// their retry.
	Working *int `json:"working,omitempty"`
	Backoff *int `json:"in_backoff,omitempty"`
	// In are the messages that were sent to a queue of the process's own, else those that its consumer
	// received; Out those that were deleted; Failed the attempts that failed: each per second since
	// the row before.
	In     *float64 `json:"in_per_second,omitempty"`
	Out    *float64 `json:"out_per_second,omitempty"`
	Failed *float64 `json:"failed_per_second,omitempty"`
	// State is that of the consumer: paused, open for its breaker, or its health.
	State string `json:"state,omitempty"`
	// Problems say what is wrong.
	Problems []string `json:"problems,omitempty"`
	// Troubles are those of the consumer for pages, which offer actions instead of commands, and Consumer is the URL
	// that the actions are about; empty: it is a retry lane, which they are not about.
	Troubles []Trouble `json:"-"`
	Consumer string    `json:"-"`
}

// Rows returns a row for each queue, and for each consumer whose queue is not known. before is of the
// same process some time ago; nil: there are no rates.
func Rows(now, before *Stats) []Row {
	if before == nil || !before.At.Before(now.At) || !before.Since.Equal(now.Since) { // another process
		before = &Stats{At: now.At}
	}
	seconds := now.At.Sub(before.At).Seconds()
	rows := make([]Row, 0, len(now.Queues))
	byURL, byPath := make(map[string]int), make(map[string]int)
	for _, q := range now.Queues {
		row := Row{
			At: now.At, Queue: q.Queue.Name, URL: q.Queue.URL, Oldest: q.Queue.Oldest,
			Visible: &q.Queue.Visible, InFlight: &q.Queue.InFlight, Delayed: &q.Queue.Delayed,
		}
		for _, f := range q.Queue.Findings {
			if f.Code == operate.CodeUnreadable {
				row.Visible, row.InFlight, row.Delayed = nil, nil, nil
				row.Problems = append(row.Problems, f.Problem)
			}
		}
		for _, old := range before.Queues {
			if old.Queue.URL == q.Queue.URL && old.Traffic != nil && q.Traffic != nil {
				row.In = perSecond(q.Traffic.Sent-old.Traffic.Sent, seconds)
				row.Out = perSecond(q.Traffic.Deleted-old.Traffic.Deleted, seconds)
				if q.waitsForNobody(&old, now) {
					row.unreceived(now.At)
				}
			}
		}
		byURL[q.Queue.URL], byPath[pathOf(q.Queue.URL)] = len(rows), len(rows)
		rows = append(rows, row)
	}
	consumed := make(map[string]bool)
	for i := range now.Consumers {
		consumed[now.Consumers[i].Consumer.URL] = true
	}
	add := func(c *Consumer, old *Consumer, failed *float64) (at int) {
		at, known := byURL[c.URL]
		if !known { // the server's own URL of it may have another host; but so may the queue of another region
			at, known = byPath[pathOf(c.URL)]
			known = known && !consumed[rows[at].URL]
		}
		if !known {
			at = len(rows)
			byURL[c.URL] = at
			rows = append(rows, Row{At: now.At, Queue: c.Queue, URL: c.URL})
		}
		rows[at].consumed(c, now.At)
		rows[at].Failed = failed
		if old != nil && rows[at].In == nil {
			rows[at].In = perSecond(c.Counts.Received-old.Counts.Received, seconds)
			rows[at].Out = perSecond(c.Counts.Deleted-old.Counts.Deleted, seconds)
		}
		return at
	}
	for i := range now.Consumers {
		c := &now.Consumers[i]
		var old, oldLane *Consumer
		var failed *float64
		for j := range before.Consumers {
			if b := &before.Consumers[j]; b.Consumer.URL == c.Consumer.URL {
				old, oldLane = &b.Consumer, b.Consumer.RetryLane
				failed = perSecond(c.Attempts.Failed-b.Attempts.Failed, seconds)
			}
		}
		rows[add(&c.Consumer, old, failed)].Consumer = c.Consumer.URL
		if c.Consumer.RetryLane != nil {
			add(c.Consumer.RetryLane, oldLane, nil) // the attempts of both are counted together
		}
	}
	return rows
}

// longUnreceived is for how long a queue's oldest message waits before it is said that nobody receives it.
const longUnreceived = time.Minute

// waitsForNobody reports that nothing in the queue was received since old, or is in flight, and that it has no
// consumer here. Dead letters wait for a person.
func (q *QueueStats) waitsForNobody(old *QueueStats, now *Stats) bool {
	return q.Queue.Visible > 0 && q.Queue.InFlight == 0 && q.Traffic.Received == old.Traffic.Received &&
		len(q.Queue.DeadLettersOf) == 0 && now.At.Sub(q.Queue.Oldest) >= longUnreceived &&
		!slices.ContainsFunc(now.Consumers, func(c ConsumerStats) bool {
			lane := c.Consumer.RetryLane
			return pathOf(c.Consumer.URL) == pathOf(q.Queue.URL) || lane != nil && pathOf(lane.URL) == pathOf(q.Queue.URL)
		})
}

func unreceivedText(visible int, oldest time.Duration) string {
	return fmt.Sprintf("no consumer receives from it: the oldest of %s has waited for %s", plural.Of(visible, "message"), operate.Ago(oldest))
}

// unreceived adds that nobody receives the queue's messages.
func (r *Row) unreceived(now time.Time) {
	text := unreceivedText(*r.Visible, now.Sub(r.Oldest))
	r.Problems, r.Troubles = append(r.Problems, text), append(r.Troubles, Trouble{Text: text})
}

// consumed adds what the queue's consumer does.
func (r *Row) consumed(c *Consumer, now time.Time) {
	r.Working, r.Backoff, r.State = &c.Running, &c.InBackoff, c.State()
	r.Problems = append(r.Problems, c.Problems(now)...)
	r.Troubles = c.Troubles(now)
}

// perSecond is nil if nothing can be said: no time has passed, or the count began anew.
func perSecond(n int64, seconds float64) *float64 {
	if seconds <= 0 || n < 0 {
		return nil
	}
	rate := float64(n) / seconds
	return &rate
}

// pathOf is the account and name in a queue's URL. The server's own URL of a queue and that of its
// consumer may have different hosts.
func pathOf(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	_, path, _ := strings.Cut(rest, "/")
	return path
}

// RowsText is a line for each row, in so many columns, and below them what is wrong.
func RowsText(rows []Row, width int) string {
	t := operate.Table{
		Header: []string{"queue", "visible", "in flight", "delayed", "oldest", "working", "backoff", "in/s", "out/s", "fail/s", "state"},
		Right:  []bool{false, true, true, true, true, true, true, true, true, true, false},
	}
	count := func(n *int) string {
		if n == nil {
			return ""
		}
		return strconv.Itoa(*n)
	}
	rate := func(r *float64) string {
		switch {
		case r == nil:
			return ""
		case *r >= 100 || *r == 0:
			return strconv.FormatFloat(*r, 'f', 0, 64)
		}
		return strconv.FormatFloat(*r, 'f', 1, 64)
	}
	var problems strings.Builder
	for _, r := range rows {
		oldest, delayed := "", count(r.Delayed)
		if !r.Oldest.IsZero() {
			oldest = operate.Ago(r.At.Sub(r.Oldest))
		}
		if delayed == "0" {
			delayed = "" // so that a column of zeros takes no room
		}
		t.Rows = append(t.Rows, []string{
			r.Queue, count(r.Visible), count(r.InFlight), delayed, oldest, count(r.Working), count(r.Backoff), rate(r.In), rate(r.Out), rate(r.Failed), r.State,
		})
		for _, text := range r.Problems {
			fmt.Fprintf(&problems, "%s: %s\n", terminal.Line(r.Queue, maxShown), terminal.Line(text, maxShown))
		}
	}
	return t.WithoutEmpty().Text(width) + problems.String()
}

// outcomesWidth is the width from which on there is room for what followed attempts.
const outcomesWidth = 120

// StatsText is a line for each consumer: its attempts since the process began, how long they took,
// and what its requests cost.
func StatsText(consumers []ConsumerStats, width int) string {
	t := operate.Table{
		Header: []string{"queue", "attempts", "failed", "p50", "p90", "p99", "deleted", "dead", "calls", "per message", "dollars", "outcomes"},
		Right:  []bool{false, true, true, true, true, true, true, true, true, true, true, false},
	}
	n := func(n int64) string { return strconv.FormatInt(n, 10) }
	for _, c := range consumers {
		took := func(ms float64) string {
			if c.Attempts.Total == 0 {
				return ""
			}
			return ShortDuration(time.Duration(ms * float64(time.Millisecond)))
		}
		perMessage := ""
		if c.Cost.Messages > 0 {
			perMessage = strconv.FormatFloat(float64(c.Cost.Requests)/float64(c.Cost.Messages), 'f', 2, 64)
		}
		outcomes := ""
		if width >= outcomesWidth {
			outcomes = outcomesText(c.Attempts.Outcomes)
		}
		t.Rows = append(t.Rows, []string{
			c.Consumer.Queue, n(c.Attempts.Total), n(c.Attempts.Failed), took(c.Attempts.P50), took(c.Attempts.P90), took(c.Attempts.P99),
			n(c.Consumer.Counts.Deleted), n(c.Consumer.Counts.DeadLettered), n(c.Cost.Requests), perMessage,
			strconv.FormatFloat(c.Cost.Dollars, 'f', 4, 64), outcomes,
		})
	}
	return t.WithoutEmpty().Text(width)
}

// outcomesText are counts by name, the largest first.
func outcomesText(outcomes map[string]int64) string {
	names := slices.SortedFunc(maps.Keys(outcomes), func(a, b string) int {
		return cmp.Or(cmp.Compare(outcomes[b], outcomes[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%s %d", name, outcomes[name]))
	}
	return strings.Join(parts, ", ")
}

// ShortDuration is a duration in two or three digits.
func ShortDuration(d time.Duration) string {
	for _, unit := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
		if d >= 100*unit {
			return d.Round(unit).String()
		}
		if d >= unit {
			return d.Round(unit / 10).String()
		}
	}
	return d.String()
}
