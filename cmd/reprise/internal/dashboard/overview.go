package dashboard

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

var overviewPage = page{
	path: Home + "{$}", template: "overview", nav: "Overview", live: 2 * time.Second,
	data: func(v *view) (string, any, error) {
		now, before, err := v.samples.latest(v.Context())
		if err != nil {
			return "", nil, err
		}
		o := newOverview(now, before)
		o.Happened, err = v.happened("", fewEntries)
		return "Overview", o, err
	},
}

// overview has what needs attention, then all queues, then what happened last.
type overview struct {
	At        time.Time
	Attention []attention
	Queues    []queueRow
	Totals    totals
	Happened  happened
	// Problem is why the queues are not known.
	Problem string
}

// queueRow is a queue of the table.
type queueRow struct {
	admin.Row
	Level level
	// Key names the queue in links: its name or, if the process knows another of that name, its URL.
	Key string
	// Dead is how many messages the dead-letter queue has; nil: there is none, or it is not known.
	Dead      *int
	DeadQueue string
	// DeadKey names the dead-letter queue in links.
	DeadKey string
	// Rate is how many handlers of its consumer may start a second; 0: any number.
	Rate float64
	// DeadLettersOf are the queues whose dead letters it takes.
	DeadLettersOf []string
	Findings      []operate.Finding
}

type totals struct{ Visible, InFlight, Delayed, Dead int }

func newOverview(now, before *admin.Stats) *overview {
	o := &overview{At: now.At, Problem: now.Problem}
	byURL := make(map[string]*operate.Queue, len(now.Queues))
	for i := range now.Queues {
		byURL[now.Queues[i].Queue.URL] = &now.Queues[i].Queue
	}
	if o.Problem != "" {
		o.Attention = append(o.Attention, attention{Level: levelBad, Text: "The queues cannot be described: " + o.Problem, Remedy: "Check the network, the credentials and the permission sqs:GetQueueAttributes."})
	}
	rows := admin.Rows(now, before)
	keys := keysOf(rows)
	for _, row := range rows {
		of := queueRow{Row: row, Key: keys[row.URL]}
		if c := consumerAt(now, row.Consumer); c != nil {
			of.Rate = c.Rate
		}
		if q := byURL[row.URL]; q != nil {
			of.DeadLettersOf, of.Findings, of.DeadQueue = q.DeadLettersOf, q.Findings, q.DeadLetterQueue
			of.DeadKey = q.DeadLetterQueue
			if dead := deadQueueOf(q, now); dead != nil {
				of.DeadKey = keys[dead.URL]
				n := dead.Visible + dead.InFlight + dead.Delayed
				of.Dead = &n
			}
			o.Totals.add(q)
		}
		all := of.attention()
		if a, many := of.givesUp(now, before); many {
			all = append(all, a)
		}
		for _, a := range all {
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

// keysOf returns what names the queues of rows in links, by their URLs.
func keysOf(rows []admin.Row) map[string]string {
	named := make(map[string]int)
	for i := range rows {
		named[rows[i].Queue]++
	}
	keys := make(map[string]string, len(rows))
	for i := range rows {
		keys[rows[i].URL] = rows[i].Queue
		if named[rows[i].Queue] > 1 {
			keys[rows[i].URL] = rows[i].URL
		}
	}
	return keys
}

// deadQueueOf returns the dead-letter queue of q, which is of the same account and region; nil: it is not known.
func deadQueueOf(q *operate.Queue, now *admin.Stats) (dead *operate.Queue) {
	for i := range now.Queues {
		other := &now.Queues[i].Queue
		switch {
		case q.DeadLetterQueue == "" || other.Name != q.DeadLetterQueue:
		case q.ARN != "" && other.ARN != "":
			if strings.TrimSuffix(other.ARN, other.Name) == strings.TrimSuffix(q.ARN, q.Name) {
				return other
			}
		case dead != nil:
			return nil // which of both it is cannot be told
		default:
			dead = other
		}
	}
	return dead
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
