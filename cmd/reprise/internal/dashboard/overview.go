package dashboard

import (
	"cmp"
	"slices"
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
	// Dead is how many messages the dead-letter queue has; nil: there is none, or it is not known.
	Dead      *int
	DeadQueue string
	// Rate is how many handlers of its consumer may start a second; 0: any number.
	Rate float64
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
		if c := consumerAt(now, row.Consumer); c != nil {
			of.Rate = c.Rate
		}
		if q := byURL[row.URL]; q != nil {
			of.DeadLettersOf, of.Findings, of.DeadQueue = q.DeadLettersOf, q.Findings, q.DeadLetterQueue
			if dead := byName[q.DeadLetterQueue]; dead != nil {
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

func (t *totals) add(q *operate.Queue) {
	if len(q.DeadLettersOf) > 0 {
		t.Dead += q.Visible + q.InFlight + q.Delayed
		return
	}
	t.Visible += q.Visible
	t.InFlight += q.InFlight
	t.Delayed += q.Delayed
}
