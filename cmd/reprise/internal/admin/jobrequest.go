package admin

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// JobRequest asks for something to be done to the messages of a queue that a selection names.
type JobRequest struct {
	// Action is redrive, move, delete or export.
	Action string `json:"action"`
	// Queue is a queue that the process knows, by name or URL, and To another: where move sends the
	// messages, and redrive all letters; its default is the source of each.
	Queue string `json:"queue"`
	To    string `json:"to,omitempty"`
	// Selection names the messages. It may be empty only if All says that all are meant.
	Selection operate.Criteria `json:"selection,omitzero"`
	All       bool             `json:"all,omitempty"`
	// DeadOnly leaves messages that nothing says are dead letters, unless a queue names this one as its
	// dead-letter queue.
	DeadOnly bool `json:"dead_only,omitempty"`
	// AnyQueue redrives although no queue names this one as its dead-letter queue.
	AnyQueue bool `json:"any_queue,omitempty"`
	// Edit is changed of each message that is redriven. Default: nothing.
	Edit operate.Rewrite `json:"edit,omitzero"`
	// DryRun only counts them, by where they would go.
	DryRun bool `json:"dry_run,omitempty"`
	// Counted is a job, a dry run, that has counted what this one acts on. The request is refused if that was not in the
	// last fifteen minutes, or if the same was done since. Default: nothing is asked.
	Counted string `json:"counted,omitempty"`
	// Limit is how many messages at most, Rate how many a second. Default: any number.
	Limit int     `json:"limit,omitempty"`
	Rate  float64 `json:"rate,omitempty"`
	// Force looks at a queue although SQS moves messages to its dead-letter queue for it.
	Force bool `json:"force,omitempty"`
	// Attached ends the job when nobody has asked for it for a while: it belongs to a command that waits
	// for it.
	Attached bool `json:"attached,omitempty"`
}

// The actions and states of jobs.
const (
	JobRedrive = "redrive"
	JobMove    = "move"
	JobDelete  = "delete"
	JobExport  = "export"

	JobRunning   = "running"
	JobDone      = "done"
	JobCancelled = "cancelled"
	JobFailed    = "failed"
)

// attachedFor is how long an attached job goes on after it was asked for last. The commands ask twice a
// second.
const attachedFor = 15 * time.Second

// endAbandoned cancels an attached job when nobody waits for it any more.
func (a *API) endAbandoned(ctx context.Context, j *job) {
	for left := attachedFor; left > 0; {
		select {
		case <-time.After(left):
		case <-ctx.Done():
			return
		}
		a.jobs.mu.Lock()
		left = time.Until(j.asked.Add(attachedFor))
		a.jobs.mu.Unlock()
	}
	a.jobs.mu.Lock()
	defer a.jobs.mu.Unlock()
	j.cancel()
}

func (r *JobRequest) check() error {
	switch r.Action {
	case JobRedrive:
	case JobMove:
		if r.To == "" {
			return errors.New("to is missing: name the queue to move the messages to")
		}
	case JobDelete, JobExport:
		if r.To != "" {
			return errors.New("to is for redrive and move: leave it out")
		}
	default:
		return errors.New("action is " + strconv.Quote(r.Action) + ": pass redrive, move, delete or export")
	}
	selection, err := r.Selection.Selection()
	if err == nil {
		_, err = r.Edit.Compile()
	}
	switch {
	case err != nil:
		return err
	case !r.Edit.IsZero() && r.Action != JobRedrive:
		return errors.New("edit is for redrive: leave it out, or redrive")
	case r.Counted != "" && r.DryRun:
		return errors.New("counted is for a job that acts, and dry_run only counts: leave one of them out")
	case r.Queue == "":
		return errors.New("queue is missing: name the queue")
	case selection.Empty() != r.All:
		return errors.New("say which messages are meant: give a selection, or all: true for all")
	case r.Limit < 0:
		return errors.New("limit is below 0: give how many messages at most, or leave it out for all")
	case !(r.Rate >= 0 && r.Rate < 1e6):
		return errors.New("rate is out of range: give how many messages a second, or leave it out")
	}
	return nil
}
