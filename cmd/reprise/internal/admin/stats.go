package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/telemetry"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// Stats are the queues and consumers of a process at one time, with what has happened since the
// start. Two of them give rates.
type Stats struct {
	At time.Time `json:"at"`
	// Since is when the process began to count. Zero: nobody counts, as for queues that are known by
	// their attributes alone.
	Since  time.Time    `json:"since,omitzero"`
	Queues []QueueStats `json:"queues"`
	// Problem is why the queues are not known.
	Problem   string          `json:"problem,omitempty"`
	Consumers []ConsumerStats `json:"consumers"`
}

// QueueStats is a queue and, if it is the process's own, what clients did to it.
type QueueStats struct {
	Queue   operate.Queue `json:"queue"`
	Traffic *Traffic      `json:"traffic,omitempty"`
}

// Traffic counts the messages that requests of clients sent to a queue, received and deleted.
type Traffic struct {
	Sent     int64 `json:"sent"`
	Received int64 `json:"received"`
	Deleted  int64 `json:"deleted"`
}

// ConsumerStats is a consumer with what it did. Attempts count from the start of the process, all
// else from the start of the consumer, which begins anew when its settings change.
type ConsumerStats struct {
	Consumer Consumer `json:"consumer"`
	Attempts Attempts `json:"attempts"`
	// Calls are its requests to SQS by kind, those of its retry lane included, and Cost what they are
	// estimated to have cost.
	Calls Calls          `json:"calls"`
	Cost  telemetry.Cost `json:"cost"`
}

// Calls counts requests to SQS: see reprise.Calls.
type Calls struct {
	Receives     int64 `json:"receives"`
	Deletes      int64 `json:"deletes"`
	Visibilities int64 `json:"visibilities"`
	Heartbeats   int64 `json:"heartbeats"`
	Sends        int64 `json:"sends"`
	Attributes   int64 `json:"attributes"`
}

// describeTimeout bounds how long statistics wait for SQS: the consumers are shown without it.
const describeTimeout = 5 * time.Second

func (a *API) stats(r *http.Request) (Stats, error) { return a.takeStats(r.Context()), nil }

func (a *API) takeStats(ctx context.Context) Stats {
	s := Stats{At: time.Now().UTC(), Since: a.since.UTC(), Queues: []QueueStats{}, Consumers: []ConsumerStats{}}
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	described, complete, err := a.cfg.Queues(ctx)
	if err != nil {
		s.Problem = terminal.Line(err.Error(), maxError)
	}
	var traffic map[string]Traffic
	if a.cfg.Traffic != nil {
		traffic = a.cfg.Traffic()
	}
	for _, q := range a.examine(described, complete) {
		of := QueueStats{Queue: q}
		if a.cfg.Traffic != nil {
			counts := traffic[q.ARN]
			of.Traffic = &counts
		}
		s.Queues = append(s.Queues, of)
	}
	for _, running := range a.cfg.Consumers() {
		s.Consumers = append(s.Consumers, a.consumerStats(running))
	}
	return s
}

func (a *API) consumerStats(running Running) ConsumerStats {
	status := running.Status()
	calls, settled := callsOf(status.Calls), status.Counts.Deleted+status.Counts.DeadLettered
	requests := status.Calls.Total()
	if lane := running.RetryLane(); lane != nil {
		of := lane.Status()
		calls = calls.plus(callsOf(of.Calls))
		requests += of.Calls.Total()
		settled += of.Counts.Deleted + of.Counts.DeadLettered
	}
	return ConsumerStats{
		Consumer: consumerOf(running), Attempts: a.cfg.Events.tally(running.URL).attempts(), Calls: calls,
		Cost: telemetry.Estimate(operate.NameOf(running.URL), a.cfg.RequestPrice, requests, settled),
	}
}

func callsOf(c reprise.Calls) Calls {
	return Calls{c.Receives, c.Deletes, c.Visibilities, c.Heartbeats, c.Sends, c.Attributes}
}

func (c Calls) plus(d Calls) Calls {
	return Calls{
		c.Receives + d.Receives, c.Deletes + d.Deletes, c.Visibilities + d.Visibilities,
		c.Heartbeats + d.Heartbeats, c.Sends + d.Sends, c.Attributes + d.Attributes,
	}
}

// Total is the number of requests of all kinds.
func (c Calls) Total() int64 {
	return c.Receives + c.Deletes + c.Visibilities + c.Heartbeats + c.Sends + c.Attributes
}
