package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// maxTaskRate is the highest rate of a message move task.
const maxTaskRate = 500

// checkTask returns an error if a flag has no meaning for a message move task.
func (f *redriveFlags) checkTask() error {
	selection, err := f.selection.selection()
	switch {
	case err != nil:
		return err
	case !selection.Empty() || f.most > 0 || f.dryRun:
		return errors.New("--task has SQS move all letters, and it selects none, counts none and shows none before: leave --task out, or the flags that select, --limit and --dry-run")
	case f.rate > maxTaskRate || f.rate != math.Trunc(f.rate):
		return fmt.Errorf("--rate is %g: SQS moves 1 to %d letters a second, a whole number", f.rate, maxTaskRate)
	}
	return nil
}

// runMoveTask has SQS move the letters of the queue at url to the queue at to, or to their sources
// if that is empty, and waits for the end.
func (a *app) runMoveTask(client *sqs.Client, url, to string, rate float64, as form) error {
	in := &sqs.StartMessageMoveTaskInput{}
	var err error
	if in.SourceArn, err = arnOf(a.ctx, client, url); err != nil {
		return err
	}
	if to != "" {
		if in.DestinationArn, err = arnOf(a.ctx, client, to); err != nil {
			return err
		}
	}
	if rate > 0 {
		in.MaxNumberOfMessagesPerSecond = aws.Int32(int32(rate))
	}
	started, err := client.StartMessageMoveTask(a.ctx, in)
	if err != nil {
		return err
	}
	screen := terminal.New(a.stderr.file, os.Getenv)
	defer screen.Done()
	cancelled := false
	for drain := a.drain; ; {
		select {
		case <-time.After(time.Second):
		case <-a.ctx.Done():
			return context.Cause(a.ctx)
		case <-drain:
			drain = nil
			cancelled = true
			if _, err := client.CancelMessageMoveTask(a.ctx, &sqs.CancelMessageMoveTaskInput{TaskHandle: started.TaskHandle}); err != nil {
				return fmt.Errorf("cancelling the task, which continues: %w", err)
			}
		}
		tasks, err := client.ListMessageMoveTasks(a.ctx, &sqs.ListMessageMoveTasksInput{SourceArn: in.SourceArn})
		if err != nil {
			return err
		}
		if len(tasks.Results) == 0 {
			return errors.New("SQS no longer knows the task: see how many letters are left with reprise queues")
		}
		task := tasks.Results[0]
		moved := fmt.Sprintf("%d of %d dead letters moved by SQS", task.ApproximateNumberOfMessagesMoved, aws.ToInt64(task.ApproximateNumberOfMessagesToMove))
		switch status := aws.ToString(task.Status); status {
		case "RUNNING", "CANCELLING":
			screen.Redraw(moved)
			continue
		case "COMPLETED":
			screen.Done()
			return a.printMoved(as, &task, moved)
		default:
			screen.Done()
			if err := a.printMoved(as, &task, moved); err != nil {
				return err
			}
			if cancelled {
				return unsettled(errors.New("stopped: the remaining dead letters are still in the queue; run it again to continue"))
			}
			return unsettled(fmt.Errorf("SQS ended the task as %s: %s; reprise redrive without --task reports what is wrong with which letters", status, apiText(aws.ToString(task.FailureReason))))
		}
	}
}

// printMoved prints what has become of a move task: text says it in words.
func (a *app) printMoved(as form, task *types.ListMessageMoveTasksResultEntry, text string) error {
	if as == asText {
		fmt.Fprintln(a.stdout, text)
		return nil
	}
	return a.printValue(as, struct {
		Queue  string `json:"queue"`
		Moved  int64  `json:"moved"`
		Of     int64  `json:"of"`
		Status string `json:"status"`
	}{aws.ToString(task.SourceArn), task.ApproximateNumberOfMessagesMoved, aws.ToInt64(task.ApproximateNumberOfMessagesToMove), aws.ToString(task.Status)})
}

// arnOf returns the ARN of the queue at url.
func arnOf(ctx context.Context, client *sqs.Client, url string) (*string, error) {
	out, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn}})
	if err != nil {
		return nil, err
	}
	return aws.String(out.Attributes["QueueArn"]), nil
}
