package queuebench

import (
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/latency"
)

// Report is what a bench has measured.
type Report struct {
	// ID is in the bodies of all its messages: {"bench":"ID",...}.
	ID      string `json:"id"`
	Queue   string `json:"queue"`
	Size    int    `json:"size"` // of a body, in bytes
	Groups  int    `json:"groups,omitempty"`
	Counts  Counts `json:"messages"`
	Calls   Calls  `json:"calls"`
	Seconds struct {
		Sending float64 `json:"sending"` // until SQS had taken the last message
		Total   float64 `json:"total"`   // until the last was deleted
	} `json:"seconds"`
	// PerSecond are messages a second: those that SQS took while they were sent, and those that
	// went all the way in the total time.
	PerSecond struct {
		Sent    float64 `json:"sent"`
		Deleted float64 `json:"deleted"`
	} `json:"per_second"`
	// Latency is how long requests took, of receives those that brought messages; and how long
	// messages were under way, from the start of the request that sent them to their arrival.
	Latency struct {
		Send     Latency `json:"send"`
		Receive  Latency `json:"receive"`
		Delete   Latency `json:"delete"`
		EndToEnd Latency `json:"end_to_end"`
	} `json:"latency_ms"`
	// Errors are how many of which code there were.
	Errors map[string]int `json:"errors,omitempty"`
}

// Counts are of messages.
type Counts struct {
	Sent       int `json:"sent"`    // SQS has taken them
	Refused    int `json:"refused"` // SQS has not
	Received   int `json:"received"`
	Deleted    int `json:"deleted"`
	Twice      int `json:"received_again"`
	OutOfOrder int `json:"out_of_order"` // within their message group
	Foreign    int `json:"of_others"`    // receives of messages that are not the bench's
	// Left are those that are in the queue still, or were received by somebody else.
	Left int `json:"left"`
}

// Calls are requests to SQS. Those that the SDK repeats count once.
type Calls struct {
	Send    int64 `json:"send"`
	Receive int64 `json:"receive"`
	Empty   int64 `json:"empty_receive"` // of the receives
	Delete  int64 `json:"delete"`
	Failed  int64 `json:"failed"` // of all
	Billed  int64 `json:"billed"` // by AWS, as which each begun 64 KiB of messages counts
}

// Total is how many there were.
func (c Calls) Total() int64 { return c.Send + c.Receive + c.Delete }

// Latency is how long something took, in milliseconds.
type Latency struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func latencyOf(h *latency.Histogram) Latency {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return Latency{ms(h.Quantile(.5)), ms(h.Quantile(.9)), ms(h.Quantile(.99)), ms(h.Max())}
}

func (r *run) report() Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	report := Report{ID: r.id, Queue: r.QueueURL, Size: r.Size, Counts: r.counts, Calls: r.calls, Errors: r.errors}
	if r.fifo {
		report.Groups = r.Groups
	}
	report.Counts.Left = r.open
	report.Seconds.Sending, report.Seconds.Total = r.sentFor.Seconds(), r.doneFor.Seconds()
	if r.sentFor > 0 {
		report.PerSecond.Sent = float64(r.counts.Sent) / r.sentFor.Seconds()
	}
	if r.doneFor > 0 {
		report.PerSecond.Deleted = float64(r.counts.Deleted) / r.doneFor.Seconds()
	}
	report.Latency.Send, report.Latency.Receive = latencyOf(&r.sendTook), latencyOf(&r.receiveTook)
	report.Latency.Delete, report.Latency.EndToEnd = latencyOf(&r.deleteTook), latencyOf(&r.journeys)
	return report
}
