package redrive

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// sourceOf finds the queue that l came from.
//
// A redrive acts with the operator's permissions on what a sender has written, so the sender must
// not choose the queue. SQS's own information comes first. An unsigned story leads only to queues
// whose owners have made this queue their dead-letter queue, at the URL that SQS returns for
// them.
func (p *run) sourceOf(ctx context.Context, l letter) *queue {
	if source := l.moved(); source != "" {
		return p.once(source, func() *queue { return p.resolve(ctx, source) })
	}
	told, trusted := l.told(p.QueueURL, p.Keys)
	switch {
	case told == "":
		return &queue{closed: "do not say which queue they came from: name one with --to"}
	case trusted && strings.Contains(told, "://"):
		return p.once(told, func() *queue { return p.open(told) })
	case trusted:
		return p.once(told, func() *queue { return p.resolve(ctx, told) })
	}
	path, problem := p.localPath(told)
	if problem != "" {
		return &queue{closed: problem}
	}
	p.list(ctx)
	if p.denied != "" {
		return &queue{closed: p.denied}
	}
	url, listed := p.listed[path]
	if !listed {
		return &queue{closed: fmt.Sprintf("name as their source %s, which does not exist or does not have this queue as its dead-letter queue; any sender can write that, and it is not signed: if it is true, name the queue with --to", quoted(told))}
	}
	return p.once(url, func() *queue { return p.open(url) })
}

// once returns the queue found earlier under name, or calls find.
func (p *run) once(name string, find func() *queue) *queue {
	q, known := p.queues[name]
	if !known {
		q = find()
		p.queues[name] = q
	}
	return q
}

// localPath returns the account and the name, as PathOf does, of the queue that a story calls
// source, or a problem: it is not a queue, or an ARN of another account or region.
func (p *run) localPath(source string) (path, problem string) {
	if strings.Contains(source, "://") {
		return PathOf(source), ""
	}
	name, err := arn.Parse(source)
	switch {
	case err != nil || name.Service != "sqs":
		return "", fmt.Sprintf("name as their source %s, which is not a queue: name a queue with --to", quoted(source))
	case !p.near(name):
		return "", elsewhere(source)
	}
	return name.AccountID + "/" + name.Resource, ""
}

// near reports whether a queue is in the account and the region of this one, as SQS requires of a
// queue and its dead-letter queue.
func (p *run) near(name arn.ARN) bool {
	return name.Partition == p.own.Partition && name.Region == p.own.Region && name.AccountID == p.own.AccountID
}

func elsewhere(source string) string {
	return fmt.Sprintf("came from another account or region, from %s: name a queue with --to", quoted(source))
}

// resolve finds the queue that SQS calls source.
func (p *run) resolve(ctx context.Context, source string) *queue {
	name, err := arn.Parse(source)
	switch {
	case err != nil || name.Service != "sqs":
		return &queue{closed: fmt.Sprintf("came from %s, which is not a queue: name a queue with --to", quoted(source))}
	case !p.near(name):
		return &queue{closed: elsewhere(source)}
	}
	out, err := p.Client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name.Resource, QueueOwnerAWSAccountId: &name.AccountID})
	if _, missing := errors.AsType[*types.QueueDoesNotExist](err); missing {
		return &queue{closed: fmt.Sprintf("came from %s, which does not exist: create it, or name another queue with --to", quoted(source))}
	}
	if err != nil {
		return &queue{closed: fmt.Sprintf("came from %s, whose URL cannot be looked up: %s", quoted(source), brief(err))}
	}
	if aws.ToString(out.QueueUrl) == "" {
		return &queue{closed: fmt.Sprintf("came from %s, for which the endpoint returns no URL: name a queue with --to", quoted(source))}
	}
	return p.open(*out.QueueUrl)
}

// list asks, once, which queues have this one as their dead-letter queue.
func (p *run) list(ctx context.Context) {
	if p.listed != nil {
		return
	}
	p.listed = make(map[string]string)
	pages := sqs.NewListDeadLetterSourceQueuesPaginator(p.Client, &sqs.ListDeadLetterSourceQueuesInput{QueueUrl: &p.QueueURL})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			p.denied = fmt.Sprintf("name their source themselves, and the queues with this dead-letter queue cannot be listed: %s: permit sqs:ListDeadLetterSourceQueues, or name a queue with --to", brief(err))
			return
		}
		for _, url := range page.QueueUrls {
			p.listed[PathOf(url)] = url
		}
	}
}

// maxQuoted is how many characters are shown of a queue's name that a message or a service has
// written. An ARN of a queue has fewer than 160.
const maxQuoted = 200

// quoted quotes text of others in a reason.
func quoted(text string) string { return terminal.Quote(text, maxQuoted) }
