package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/redrive"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

const aboutByServer = `A reprise server that has the queues does this itself for this machine, unless it has an
access key: nothing is received, each message is in exactly one queue at any time, and
Ctrl-C ends it after the batch under way. Otherwise:`

// serverQueues are the queues of a request, as the process that has them is to be asked.
type serverQueues struct {
	client   *sqs.Client
	endpoint string // of the process; "": AWS
	url, to  string // to may be empty
}

// byServer has the server of a queue do something to its messages, and waits for the end. It reports
// false if the server is no reprise server, or does not do it for this machine: then nothing has
// happened. When the command is stopped, so is the server.
func (a *app) byServer(q serverQueues, request admin.JobRequest, selection *selectionFlags, words verbs) (j admin.Job, done bool, err error) {
	server, err := admin.NewClient(q.endpoint, "")
	if q.endpoint == "" || err != nil { // the endpoint has a path: it is another server's
		return j, false, nil
	}
	ctx, stop := a.interruptible()
	defer stop()
	if !answersAdmin(ctx, server) {
		return j, false, nil
	}
	for url, name := range map[string]*string{q.url: &request.Queue, q.to: &request.To} {
		if url == "" {
			continue
		}
		arn, err := arnOf(ctx, q.client, url)
		if err != nil {
			return j, false, nil // the command itself says why
		}
		*name = *arn
	}
	if request.Selection, err = selection.criteria(); err != nil {
		return j, true, usage(err)
	}
	request.All, request.Attached, request.Force = selection.empty(), true, true
	j, err = server.StartJob(ctx, request)
	failed, refused := errors.AsType[*admin.Error](err)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return j, true, context.Cause(ctx)
	case refused && (failed.Broken() || failed.Code == "busy" || failed.Code == "too-many"):
		return j, true, fmt.Errorf("the server at %s: %w", q.endpoint, err)
	case refused:
		return j, false, nil // it is read-only, or does not have the queue
	default:
		return j, true, fmt.Errorf("the server at %s has not said whether it began: %w: see what is in the queues, and run it again", q.endpoint, err)
	}
	j, err = a.await(server, j, words)
	if j.Busy > 0 {
		fmt.Fprintf(a.stderr, "reprise: %s in flight or delayed left alone: reprise peek --hidden shows who has them\n", plural.Of(j.Busy, "message"))
	}
	return j, true, err
}

// answersAdmin reports whether a server has the admin API for this machine.
func answersAdmin(ctx context.Context, server *admin.Client) bool {
	ctx, cancel := context.WithTimeout(ctx, witnessTimeout)
	defer cancel()
	process, err := server.Process(ctx)
	return err == nil && process.Description != "" && !process.ReadOnly
}

// firstLook is the time before the first look at a job of the server, which doubles up to
// [followEvery].
const firstLook = 10 * time.Millisecond

// await waits for the end of a job of the server, which ends when the command is stopped.
func (a *app) await(server *admin.Client, j admin.Job, words verbs) (admin.Job, error) {
	screen := terminal.New(a.stderr.file, os.Getenv)
	defer screen.Done()
	verb := words.done
	if j.DryRun {
		verb = words.would
	}
	drain, pause := a.drain, firstLook
	for contact := (reach{time.Now()}); j.State == admin.JobRunning; pause = min(2*pause, followEvery) {
		screen.Redraw(fmt.Sprintf("%s %s; looked at %d, of which %d matched", plural.Of(j.Done, words.noun), verb, j.Looked, j.Matched))
		select {
		case <-time.After(pause):
		case <-drain:
			drain = nil
			_, _ = server.CancelJob(a.ctx, j.ID) // the next look shows whether it has ended
		case <-a.ctx.Done():
			return j, context.Cause(a.ctx)
		}
		now, err := server.Job(a.ctx, j.ID)
		lost := contact.lost(err, time.Now())
		if err == nil {
			j = now
			continue
		}
		if _, answered := errors.AsType[*admin.Error](err); answered || lost {
			return j, unsettled(fmt.Errorf("the server has ended while %s: %w: no message is lost, or in two queues; run it again for the rest", words.during(), err))
		}
	}
	return j, nil
}

// serverOutcome returns an error if the server has not done all that a job was for.
func serverOutcome(j *admin.Job, words verbs) error {
	switch {
	case j.State == admin.JobFailed:
		return errors.New(apiText(j.Problem))
	case j.State == admin.JobCancelled:
		return unsettled(fmt.Errorf("stopped: the remaining %ss are still in the queue; run it again to continue", words.noun))
	case j.Failed > 0 && j.Problem != "":
		return unsettled(errors.New(apiText(j.Problem)))
	case j.Failed > 0:
		return unsettled(fmt.Errorf("left in the queue: %s", plural.Of(j.Failed, words.noun)))
	case j.Problem != "":
		return unsettled(errors.New("there may be more: " + apiText(j.Problem)))
	}
	return nil
}

// redriveByServer is [app.byServer] for messages that go to other queues; it prints what has become of
// them.
func (a *app) redriveByServer(q serverQueues, request admin.JobRequest, selection *selectionFlags, words verbs) (done bool, err error) {
	j, done, err := a.byServer(q, request, selection, words)
	if !done || j.ID == "" {
		return done, err
	}
	if !request.Edit.IsZero() {
		a.printEdited(j.Edited, j.Example, j.DryRun, words.as)
	}
	a.printRedrive(&redrive.Redrive{QueueURL: q.url, DryRun: j.DryRun}, redrive.Report{Sent: j.Sent, Left: j.Left}, err == nil && j.State == admin.JobDone, words)
	return true, errors.Join(err, serverOutcome(&j, words))
}

// requireDeadLetterQueue refuses a queue that no other names as its dead-letter queue: its messages are
// alive. If that cannot be known, the queue is taken for one.
func (a *app) requireDeadLetterQueue(client *sqs.Client, queue, url string) error {
	named, err := operate.IsDeadLetterQueue(a.ctx, client, url)
	if err != nil || named {
		return nil //nolint:nilerr // it may not be permitted, and SQS refuses the rest itself
	}
	return usage(fmt.Errorf("no queue names %q as its dead-letter queue, so its messages may be alive, and nothing was received: name a dead-letter queue, which reprise queues lists; or pass --any-queue to redrive what is in this one; reprise move moves messages as they are", queue))
}
