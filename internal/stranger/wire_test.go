package stranger_test

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise"
)

// wire is the connection of one process, or of the sender, to SQS. It notes what goes over it.
type wire struct {
	reprise.Client
	w       *world
	process int // -1: the sender; -2: a neighbour's
}

// unanswered reports whether a request may have been carried out although it failed.
func unanswered(err error) bool {
	var api smithy.APIError
	return err != nil && !errors.As(err, &api)
}

// travel is the time that a request is on its way.
func (c wire) travel(ctx context.Context) error {
	timer := time.NewTimer(max(c.w.s.Latency, time.Millisecond))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c wire) note(began time.Time, count func(*reprise.Calls)) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if c.w.requests++; c.w.requests == mostRequests {
		close(c.w.enough)
	}
	if c.process >= 0 {
		l := c.w.processes[c.process]
		count(&l.calls)
		l.slowestCall = max(l.slowestCall, time.Since(began))
	}
}

func (c wire) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, o ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	began := time.Now()
	if err := c.travel(ctx); err != nil {
		c.note(began, func(n *reprise.Calls) { n.Receives++ })
		return nil, err
	}
	out, err := c.Client.ReceiveMessage(ctx, in, o...)
	c.note(began, func(n *reprise.Calls) { n.Receives++ })
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if c.process < 0 {
		return out, err
	}
	l := c.w.processes[c.process]
	switch {
	case err == nil:
		l.receiveFailedSince = -1
		l.received += len(out.Messages)
		for _, m := range out.Messages {
			c.w.known[aws.ToString(m.MessageId)] = true
		}
	default:
		if l.receiveFailedSince < 0 {
			l.receiveFailedSince = c.w.now()
		}
		if unanswered(err) {
			l.lossy++
		}
	}
	return out, err
}

func (c wire) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, o ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	began := time.Now()
	if err := c.travel(ctx); err != nil {
		c.note(began, func(n *reprise.Calls) { n.Deletes++ })
		return nil, err
	}
	out, err := c.Client.DeleteMessageBatch(ctx, in, o...)
	c.note(began, func(n *reprise.Calls) { n.Deletes++ })
	return out, err
}

func (c wire) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, o ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	began := time.Now()
	if err := c.travel(ctx); err != nil {
		c.note(began, func(n *reprise.Calls) { n.Visibilities++ })
		return nil, err
	}
	out, err := c.Client.ChangeMessageVisibilityBatch(ctx, in, o...)
	c.note(began, func(n *reprise.Calls) { n.Visibilities++ }) // heartbeats too: only the consumer knows which are
	return out, err
}

func (c wire) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, o ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	began := time.Now()
	if err := c.travel(ctx); err != nil {
		c.note(began, func(n *reprise.Calls) { n.Attributes++ })
		return nil, err
	}
	out, err := c.Client.GetQueueAttributes(ctx, in, o...)
	c.note(began, func(n *reprise.Calls) { n.Attributes++ })
	return out, err
}

func (c wire) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, o ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	began := time.Now()
	if err := c.travel(ctx); err != nil {
		c.note(began, func(n *reprise.Calls) { n.Sends++ })
		return nil, err
	}
	out, err := c.Client.SendMessageBatch(ctx, in, o...)
	c.note(began, func(n *reprise.Calls) { n.Sends++ })
	accepted := make(map[string]bool)
	if out != nil {
		for _, e := range out.Successful {
			accepted[aws.ToString(e.Id)] = true
		}
	}
	letter := c.w.dead != nil && strings.HasSuffix(aws.ToString(in.QueueUrl), "/"+c.w.dead.Name())
	for _, e := range in.Entries {
		n := number(aws.ToString(e.MessageBody))
		c.w.mu.Lock()
		c.w.copies = append(c.w.copies, copied{
			process: c.process, message: n, at: c.w.now(), letter: letter,
			accepted: accepted[aws.ToString(e.Id)], unanswered: unanswered(err),
		})
		c.w.mu.Unlock()
		if !letter && n >= 0 && len(c.w.s.Faults) == 0 {
			c.w.countCopies(n)
		}
	}
	return out, err
}
