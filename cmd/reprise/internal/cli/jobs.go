package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// jobFlags have what a command does done by a running process.
type jobFlags struct {
	job     bool
	control controlFlags
}

const aboutJob = `With --job a running process does it, found by --admin as for reprise consumers, on a
queue that it knows. It goes on when this command is stopped: reprise jobs shows how far
it is, and cancels it.`

func (f *jobFlags) register(flags *pflag.FlagSet) {
	flags.BoolVar(&f.job, "job", false, "have a running process do it, as a job that outlives this command")
	f.control.registerProcess(flags)
}

func (a *app) jobs() *cobra.Command {
	var f controlFlags
	cmd := &cobra.Command{
		Use:   "jobs [JOB]",
		Short: "List the jobs of a running process, and cancel them",
		Long: `List the jobs of a running process, or show one: those that run, and the last hundred that
have ended. Commands with --job start them, and POST /admin/v1/jobs. A process forgets
its jobs when it ends; what they have not done is still in the queue.

` + aboutControl,
		Example: `  reprise jobs
  reprise jobs cancel job-4QHZKTWMJ2XB`,
		Args: cobra.MaximumNArgs(1),
	}
	cmd.RunE = run(func(ids []string) error { return a.runJobs(&f, ids) })
	f.register(cmd)
	var c controlFlags
	cancel := &cobra.Command{
		Use:     "cancel JOB...",
		Short:   "Have jobs end after what is under way",
		Long:    "Have jobs end after the batch under way. What they have done stays done.\n\n" + aboutControl,
		Example: `  reprise jobs cancel job-4QHZKTWMJ2XB`,
		Args:    cobra.MinimumNArgs(1),
	}
	cancel.RunE = run(func(ids []string) error { return a.runCancel(&c, ids) })
	c.register(cancel)
	cmd.AddCommand(cancel)
	return cmd
}

func (a *app) runJobs(f *controlFlags, ids []string) error {
	ctx, stop := a.interruptible()
	defer stop()
	client, err := f.client(ctx, a)
	if err != nil {
		return err
	}
	var found []admin.Job
	if len(ids) == 0 {
		found, err = client.Jobs(ctx)
	}
	for _, id := range ids {
		j, problem := client.Job(ctx, id)
		if problem != nil {
			return problem
		}
		found = append(found, j)
	}
	if err != nil {
		return err
	}
	return a.printJobs(f, found)
}

func (a *app) runCancel(f *controlFlags, ids []string) error {
	ctx, stop := a.interruptible()
	defer stop()
	client, err := f.client(ctx, a)
	if err != nil {
		return err
	}
	var after []admin.Job
	var refused []error
	for _, id := range ids {
		j, err := client.CancelJob(ctx, id)
		if err != nil { // the others are cancelled all the same
			refused = append(refused, err)
			continue
		}
		after = append(after, j)
	}
	if len(after) > 0 {
		err = a.printJobs(f, after)
	}
	return errors.Join(append(refused, err)...)
}

// remoteWidth is the width from which on there is room for who asked.
const remoteWidth = 120

// printJobs prints a line for each job, and below them what is wrong.
func (a *app) printJobs(f *controlFlags, jobs []admin.Job) error {
	t := operate.Table{
		Header: []string{"job", "action", "queue", "state", "since", "looked", "matched", "done", "left", "by"},
		Right:  []bool{false, false, false, false, true, true, true, true, true, false},
	}
	for i := range jobs {
		j := &jobs[i]
		if as := f.output.as(); as != asText {
			if err := a.printValue(as, j); err != nil {
				return err
			}
			continue
		}
		action := j.Action
		if j.DryRun {
			action += " (dry run)"
		}
		by := ""
		if a.width() >= remoteWidth {
			by = j.Remote
		}
		t.Rows = append(t.Rows, []string{
			j.ID, action, j.Queue, j.State, operate.Ago(time.Since(j.Created)), strconv.Itoa(j.Looked), strconv.Itoa(j.Matched), strconv.Itoa(j.Done), strconv.Itoa(j.Failed), by,
		})
	}
	if len(jobs) == 0 {
		fmt.Fprintln(a.stderr, "reprise: the process has run no jobs since its start")
	}
	if len(t.Rows) == 0 {
		return nil
	}
	a.printTable(t.WithoutEmpty())
	for _, j := range jobs {
		if j.Problem != "" {
			fmt.Fprintf(a.stdout, "%s: %s\n", apiText(j.ID), apiText(j.Problem))
		}
	}
	return nil
}

const (
	// followEvery is the time between two looks at a job.
	followEvery = 500 * time.Millisecond
	// lostFor is how long a process may be out of reach before a command gives up waiting for its job.
	lostFor = 30 * time.Second
)

// reach is whether a process that a command waits for can be reached.
type reach struct{ answered time.Time } // when it answered last

// lost notes how a question has ended, and reports that the process was out of reach for too long.
func (r *reach) lost(err error, now time.Time) bool {
	if err == nil {
		r.answered = now
	}
	return now.Sub(r.answered) > lostFor
}

// runJob has a process do it, and waits for the end.
func (a *app) runJob(f *jobFlags, aws awsFlags, selection *selectionFlags, request admin.JobRequest, words verbs) error {
	_, j, err := a.startJob(f, aws, selection, request, words)
	if err != nil {
		return err
	}
	return a.printJob(&j, words)
}

// startJob has a process start a job, and waits for its end. The client is that of the process.
func (a *app) startJob(f *jobFlags, aws awsFlags, selection *selectionFlags, request admin.JobRequest, words verbs) (client *admin.Client, j admin.Job, err error) {
	if aws != (awsFlags{}) {
		return nil, j, usage(errors.New("--job has a process do it, which has its own endpoint and region: leave --endpoint and --region out, or --job"))
	}
	if request.Selection, err = selection.criteria(); err != nil {
		return nil, j, usage(err)
	}
	s, err := selection.selection()
	if err != nil {
		return nil, j, usage(err)
	}
	if request.Action != admin.JobDelete {
		request.All = s.Empty()
	} else if s.Empty() != request.All {
		return nil, j, usage(errors.New("say which letters to delete: pass --reason, --error, --id or another of the flags, or --all for all"))
	}
	ctx, stop := a.interruptible()
	defer stop()
	if client, err = f.control.client(ctx, a); err != nil {
		return nil, j, err
	}
	if j, err = client.StartJob(ctx, request); err != nil {
		return nil, j, err
	}
	id := j.ID
	fmt.Fprintf(a.stderr, "reprise: %s began\n", apiText(id))
	j, err = a.follow(ctx, client, j, words)
	if ctx.Err() != nil {
		return nil, j, unsettled(fmt.Errorf("%s goes on in the process: reprise jobs %s shows how far it is, reprise jobs cancel %s ends it", id, id, id))
	}
	return client, j, err
}

// follow waits for the end of a job, and shows its progress on a terminal. It goes on when the process
// was out of reach for a while.
func (a *app) follow(ctx context.Context, client *admin.Client, j admin.Job, words verbs) (admin.Job, error) {
	screen := terminal.New(a.stderr.file, os.Getenv)
	defer screen.Done()
	for contact := (reach{time.Now()}); j.State == admin.JobRunning; {
		verb := words.done
		if j.DryRun {
			verb = words.would
		}
		screen.Redraw(fmt.Sprintf("%s %s; looked at %d, of which %d matched", plural.Of(j.Done, words.noun), verb, j.Looked, j.Matched))
		select {
		case <-time.After(followEvery):
		case <-ctx.Done():
			return j, context.Cause(ctx)
		}
		now, err := client.Job(ctx, j.ID)
		if _, answered := errors.AsType[*admin.Error](err); answered {
			return j, fmt.Errorf("%w: what is left is still in the queue", err)
		}
		if contact.lost(err, time.Now()) {
			return j, err
		}
		if err == nil {
			j = now
		}
	}
	return j, nil
}

// printJob prints what a job has done, as the command does without a process.
func (a *app) printJob(j *admin.Job, words verbs) error {
	if words.as != asText {
		return errors.Join(a.printValue(words.as, j), jobOutcome(j, words))
	}
	verb := words.done
	if j.DryRun {
		verb = words.would
	}
	if !j.Edit.IsZero() {
		a.printEdited(j.Edited, j.Example, j.DryRun, words.as)
	}
	for _, url := range slices.Sorted(maps.Keys(j.Sent)) {
		fmt.Fprintf(a.stdout, "%d %s to %s\n", j.Sent[url], verb, apiText(url))
	}
	for _, why := range slices.Sorted(maps.Keys(j.Left)) {
		fmt.Fprintf(a.stdout, "%d left in %s: %ss that %s\n", j.Left[why], apiText(j.URL), words.noun, apiText(why))
	}
	if len(j.Sent)+len(j.Left) == 0 {
		fmt.Fprintf(a.stdout, "%d %s from %s\n", j.Done, verb, apiText(j.URL))
	}
	return jobOutcome(j, words)
}

// jobOutcome returns an error if a job has not done all that it was for.
func jobOutcome(j *admin.Job, words verbs) error {
	switch {
	case j.State == admin.JobFailed:
		return fmt.Errorf("%s failed: %s", apiText(j.ID), apiText(j.Problem))
	case j.State == admin.JobCancelled:
		return unsettled(fmt.Errorf("%s was cancelled: what is left is still in the queue; run it again to go on", j.ID))
	case j.Failed > 0 && j.Problem != "":
		return unsettled(errors.New(apiText(j.Problem)))
	case j.Failed > 0:
		return unsettled(fmt.Errorf("left in the queue: %s", plural.Of(j.Failed, words.noun)))
	case j.Problem != "":
		return unsettled(errors.New("there may be more: " + apiText(j.Problem)))
	}
	return nil
}
