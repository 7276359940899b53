package simreport

import (
	"strconv"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/simulate"
)

// queueNames lists the queues of a pool: "main, orders and reports".
func queueNames(s simulate.Scenario) string {
	names := []string{simulate.MainQueue}
	for _, one := range s.Pool {
		names = append(names, one.Name)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// queuesTable has a row for each queue of a pool in each run; empty: there is no pool.
func queuesTable(runs []Run) string {
	rows := [][]string{{"queue", "priority", "weight", "done", "dead", "left", "most", "oldest", "first try", "p50", "p99", "cleared"}}
	for i, one := range runs {
		for _, q := range one.Result.Queues {
			name := q.Name
			if len(runs) > 1 {
				name = key(i) + "  " + name
			}
			m := q.Messages
			row := []string{name, strconv.Itoa(q.Priority), strconv.Itoa(q.Weight)}
			for _, n := range []int{m.Done, m.Dead + m.Expired, m.Left, q.PeakOpen} {
				row = append(row, grouped(n))
			}
			for _, d := range []time.Duration{q.Oldest, q.Wait.P99, q.Latency.P50, q.Latency.P99, lastCleared(q)} {
				row = append(row, short(d))
			}
			rows = append(rows, row)
		}
	}
	if len(rows) == 1 {
		return ""
	}
	return "\n" + table(rows)
}

// lastCleared is the longest time after an outage until all that waited in the queue is settled; negative:
// not in the simulated time.
func lastCleared(q simulate.OfQueue) (most time.Duration) {
	for _, d := range q.Cleared {
		if d < 0 {
			return d
		}
		most = max(most, d)
	}
	return most
}

// jsonQueue is one queue of a pool. Times are in seconds.
type jsonQueue struct {
	Name     string            `json:"name"`
	Priority int               `json:"priority"`
	Weight   int               `json:"weight"`
	Messages simulate.Messages `json:"messages"`
	Attempts int               `json:"attempts"`
	Most     int               `json:"most"`   // messages that were unsettled
	Oldest   float64           `json:"oldest"` // at the end of a period, at the most
	Wait     float64           `json:"wait"`   // the 99th percentile of the time to the first attempt
	P50      float64           `json:"p50"`    // of the time until a message is done
	P99      float64           `json:"p99"`
	Max      float64           `json:"max"`
	// Cleared is how long after the end of each outage all that waited was settled; null: not in the
	// simulated time.
	Cleared []*float64 `json:"cleared,omitempty"`
}

func jsonQueues(r *simulate.Result) (all []jsonQueue) {
	for _, q := range r.Queues {
		j := jsonQueue{
			q.Name, q.Priority, q.Weight, q.Messages, q.Attempts, q.PeakOpen, secondsOf(q.Oldest), secondsOf(q.Wait.P99),
			secondsOf(q.Latency.P50), secondsOf(q.Latency.P99), secondsOf(q.Latency.Most), nil,
		}
		for _, d := range q.Cleared {
			j.Cleared = append(j.Cleared, never(d))
		}
		all = append(all, j)
	}
	return all
}
