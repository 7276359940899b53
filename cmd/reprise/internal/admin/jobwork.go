package admin

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/redrive"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// work does what a job is for.
func (a *API) work(ctx context.Context, j *job) error {
	do, rest := a.receive, "reprise purge deletes all, and a selection, such as --older-than 1s, any messages"
	switch {
	case j.request.Action == JobRedrive || j.request.Action == JobMove:
		do, rest = a.send, "reprise move takes any messages"
	case a.cfg.Server != nil:
		do = a.inspect
	}
	err := do(ctx, j)
	a.update(j, func(s *Job) {
		if s.Failed += j.alive; j.alive > 0 {
			left := plural.Of(j.alive, "message") + " left: nothing says that these are dead letters, and no queue names this one as its dead-letter queue: " + rest
			if s.Problem != "" { // not all messages were looked at
				left += "; " + s.Problem
			}
			s.Problem = left
		}
	})
	return err
}

// send sends messages to other queues. A server of this process moves them itself, unless they are changed on the
// way. Otherwise each is received, so that nobody else can send it too, and deleted only when SQS has confirmed the
// message that was sent for it.
func (a *API) send(ctx context.Context, j *job) error {
	edits := !j.request.Edit.IsZero()
	r := redrive.Redrive{
		Client: j.from.Client, QueueURL: j.from.URL, To: j.to.URL, Whole: j.request.Action == JobMove,
		Max: j.request.Limit, Rate: j.request.Rate, DryRun: j.request.DryRun, Logger: a.cfg.Logger, Keys: j.from.Keys,
		WithoutBodies: !edits && !j.selection.ReadsBodies() && len(j.from.Keys) == 0,
		Select: func(m *types.Message, now time.Time) bool {
			letter := operate.Read(j.from.URL, *m, j.from.Keys)
			return a.look(j, &letter, now) && (!edits || a.fits(j, &letter) || !j.request.DryRun) // what is sent is tried once more
		},
		Progress: func(sent int) { a.update(j, func(s *Job) { s.Done = sent }) },
	}
	if edits {
		r.Edit = func(m *reprise.Outgoing, letter *types.Message) error {
			after, err := j.rewriting.Apply(operate.Read(j.from.URL, *letter, j.from.Keys))
			if err == nil {
				after.Become(m)
			}
			return err
		}
	}
	var report redrive.Report
	var err error
	if a.cfg.Server != nil && (!edits || r.DryRun) {
		report, err = r.RunInside(ctx, j.stop, a.cfg.Server)
	} else if err = checkReceives(ctx, j); err == nil {
		report, err = r.Run(ctx, j.stop)
	}
	a.update(j, func(s *Job) {
		s.Sent, s.Left, s.Busy, s.Done, s.Failed, s.Problem = report.Sent, report.Left, report.Busy, 0, 0, report.Partial
		for _, n := range report.Sent {
			s.Done += n
		}
		if edits && r.DryRun { // it has tried them, and sent none
			s.Left = redrive.LeaveUnfit(s.Left, j.rewriting.Unfit())
		}
		for _, n := range s.Left {
			s.Failed += n
		}
	})
	return err
}

// fits notes what the edit changes of a message, and reports whether SQS would take the changed one.
func (a *API) fits(j *job, m *operate.Message) bool {
	fits := j.rewriting.Try(m)
	a.update(j, func(s *Job) { s.Edited, s.Example = j.rewriting.Edited() })
	return fits
}

// checkReceives refuses to receive all messages of a queue that loses some to its dead-letter queue by
// that.
func checkReceives(ctx context.Context, j *job) error {
	if j.request.Force {
		return nil
	}
	attributes, err := operate.Ref{URL: j.from.URL, Client: j.from.Client}.Attributes(ctx)
	if err != nil {
		return err
	}
	if q, err := plan.ReadQueue(attributes); err == nil && q.MaxReceives > 0 {
		return fmt.Errorf("all messages would be received, and SQS moves those that were received %d times already to the dead-letter queue: set force to do it all the same", q.MaxReceives)
	}
	return nil
}

// inspect deletes or exports visible messages of the process's own queue, without receiving them.
func (a *API) inspect(ctx context.Context, j *job) error {
	server, began := a.cfg.Server, time.Now()
	deletes := j.request.Action == JobDelete && !j.request.DryRun
	exports := j.request.Action == JobExport && !j.request.DryRun
	for page := (sqsserver.Page{Limit: pageSize, WithoutBodies: !exports && !j.selection.ReadsBodies()}); ; {
		infos, err := server.Messages(j.from.URL, page)
		if err != nil {
			return err
		}
		var doomed []sqsserver.Shown
		for i := range infos {
			if infos[i].State != sqsserver.Visible { // somebody works on it
				a.update(j, func(s *Job) { s.Busy++ })
				continue
			}
			m := messageOf(j.from.URL, &infos[i]).Message
			if !a.look(j, &m, server.Now()) {
				continue
			}
			enough := false
			if deletes {
				doomed = append(doomed, sqsserver.Shown{Number: infos[i].Number, Receives: infos[i].Receives})
				enough = j.request.Limit > 0 && j.Done+len(doomed) >= j.request.Limit
			} else if enough, err = a.count(j, &m); err != nil {
				return err
			}
			if full := j.request.Rate > 0 && float64(len(doomed)) >= j.request.Rate; full || enough {
				if err := a.deleteShown(j, doomed); err != nil {
					return err
				}
				doomed = nil
				if !enough && !a.pace(ctx, j, began) {
					return context.Cause(ctx)
				}
			}
			if enough {
				return nil
			}
		}
		if err := a.deleteShown(j, doomed); err != nil || len(infos) < pageSize {
			return err
		}
		page.After = infos[len(infos)-1].Number
		if !a.pace(ctx, j, began) {
			return context.Cause(ctx)
		}
	}
}

// deleteShown deletes messages of the process's own queue, unless somebody has received them since.
func (a *API) deleteShown(j *job, doomed []sqsserver.Shown) error {
	if len(doomed) == 0 {
		return nil
	}
	results, err := a.cfg.Server.DeleteShown(j.from.URL, doomed)
	if err != nil {
		return err
	}
	a.update(j, func(s *Job) {
		for _, failed := range results {
			if failed == nil {
				s.Done++
			} else {
				s.Failed++
				s.Problem = textOf(failed)
			}
		}
	})
	return nil
}

// look counts a message that was looked at, and reports whether it is selected.
func (a *API) look(j *job, m *operate.Message, now time.Time) bool {
	matches := j.selection.Matches(m, now)
	alive := matches && j.deadOnly && m.Death == nil
	a.update(j, func(s *Job) {
		s.Looked++
		switch {
		case alive:
			j.alive++
		case matches:
			s.Matched++
		}
	})
	return matches && !alive
}

const (
	// maxExport bounds the memory that the messages of an export take, maxExports that of all exports that are kept.
	maxExport  = 64 << 20
	maxExports = 4 * maxExport
)

// count counts a message that was dealt with, and reports whether these are enough.
func (a *API) count(j *job, m *operate.Message) (enough bool, err error) {
	a.update(j, func(s *Job) {
		if j.request.Action == JobExport && !j.request.DryRun {
			if err = a.keep(j, m); err != nil {
				return
			}
		}
		s.Done++
		enough = j.request.Limit > 0 && s.Done >= j.request.Limit
	})
	return enough, err
}

// keep adds a message to those that a job has exported. If the exports of the process take too much memory, those of the
// jobs that ended first are dropped. The caller holds the lock.
func (a *API) keep(j *job, m *operate.Message) error {
	size := m.Size()
	if j.bytes+size > maxExport {
		return fmt.Errorf("the export has more than %d bytes: narrow the selection, or use reprise dead export, which writes a file", maxExport)
	}
	for a.jobs.bytes+size > a.jobs.room {
		oldest := a.oldestExport()
		if oldest == nil {
			return fmt.Errorf("the exports that run have more than %d bytes together: start this one again when others have ended, or use reprise dead export, which writes a file", a.jobs.room)
		}
		a.jobs.bytes -= oldest.bytes
		oldest.exported, oldest.bytes, oldest.Dropped = nil, 0, true
	}
	j.exported = append(j.exported, *m)
	j.bytes += size
	a.jobs.bytes += size
	return nil
}

// oldestExport returns the job with exported messages that ended first; nil if none has. The caller holds the lock.
func (a *API) oldestExport() (oldest *job) {
	for _, j := range a.jobs.all {
		if j.State != JobRunning && j.bytes > 0 && (oldest == nil || j.Ended.Before(oldest.Ended)) {
			oldest = j
		}
	}
	return oldest
}

// pace waits until the rate permits the next message, and reports whether the job goes on.
func (a *API) pace(ctx context.Context, j *job, began time.Time) bool {
	return a.await(ctx, j, j.permits(began))
}

// permits returns when the rate permits the next message.
func (j *job) permits(began time.Time) time.Time {
	if j.request.Rate == 0 || j.request.DryRun {
		return began
	}
	return began.Add(operate.Pace(j.Done, j.request.Rate))
}

// await waits until that time, and reports whether the job goes on.
func (a *API) await(ctx context.Context, j *job, until time.Time) bool {
	wait := time.Until(until)
	timer := time.NewTimer(max(wait, 0))
	defer timer.Stop()
	select {
	case <-j.stop:
		return false
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// jobLease is how long messages stay hidden if the process is killed.
const jobLease = 15 * time.Minute

// receive deletes or exports messages of a queue of SQS, which shows a message only to who receives it.
func (a *API) receive(ctx context.Context, j *job) error {
	if err := checkReceives(ctx, j); err != nil {
		return err
	}
	began, enough := time.Now(), false
	pass := operate.Pass{
		Client: j.from.Client, QueueURL: j.from.URL, Keys: j.from.Keys, Polls: 3, Lease: jobLease,
		Before: func() { // and not while it holds what is to be deleted
			if enough {
				return
			}
			next, last := j.permits(began), began.Add(jobLease/2+time.Second) // when the pass ends by itself
			if next.After(last) {
				next = last
			}
			a.await(ctx, j, next) // if the job is stopped, the pass notices it by itself
		},
	}
	if rate := j.request.Rate; rate > 0 && rate < 10 && !j.request.DryRun {
		pass.Batch = max(1, int(rate))
	}
	outcome, err := pass.Run(ctx, j.stop, func(batch []operate.Message, now time.Time) ([]operate.Verdict, error) {
		if enough { // what was selected before has been dealt with
			return nil, operate.ErrEnough
		}
		verdicts := make([]operate.Verdict, len(batch))
		for i := range batch {
			if enough || !a.look(j, &batch[i], now) {
				continue
			}
			var err error
			if enough, err = a.count(j, &batch[i]); err != nil {
				return nil, err
			}
			if j.request.Action == JobDelete && !j.request.DryRun {
				verdicts[i] = operate.Delete
			}
		}
		return verdicts, nil
	})
	a.update(j, func(s *Job) {
		if j.request.Action == JobDelete && !j.request.DryRun {
			s.Done, s.Failed = outcome.Deleted, outcome.NotDeleted
		}
		s.Problem = outcome.Partial
	})
	return err
}
