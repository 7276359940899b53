package redrive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// queue takes letters.
type queue struct {
	url      string
	fifo     bool
	sender   *reprise.Sender
	refusals int    // in a row
	closed   string // why it gets no more letters, as the end of the sentence "letters that ..."
}

// maxRefusals is how many letters in a row a queue may refuse; then it gets no more. Each refusal
// may take a minute.
const maxRefusals = 10

// errSlow ends the attempts to send a batch.
var errSlow = fmt.Errorf("SQS did not confirm them within %v", sendFor)

// open prepares to send to the queue at url.
func (p *run) open(url string) *queue {
	if PathOf(url) == PathOf(p.QueueURL) {
		return &queue{closed: "came from this dead-letter queue itself: name another queue with --to"}
	}
	sender, err := reprise.NewSender(p.Client, url, reprise.SenderConfig{Linger: -1, Logger: p.Logger})
	if err != nil {
		return &queue{closed: fmt.Sprintf("came from %s, which is not a queue: name a queue with --to", quoted(url))}
	}
	return &queue{url: url, fifo: strings.HasSuffix(url, ".fifo"), sender: sender}
}

// send sends letters to q and returns those that SQS has confirmed.
func (p *run) send(ctx context.Context, q *queue, letters []letter) (confirmed []letter) {
	ctx, cancel := context.WithTimeoutCause(ctx, sendFor, errSlow)
	defer cancel()
	if q.fifo { // one batch at a time, in the order in which they were received
		p.inOrder <- struct{}{}
		defer func() { <-p.inOrder }()
	}
	for len(letters) > 0 {
		wave, behind := letters, []letter(nil)
		if q.fifo {
			wave, behind = heads(letters)
		}
		messages := make([]reprise.Outgoing, 0, len(wave))
		fit := wave[:0:0]
		for _, l := range wave {
			m := l.outgoing(q.fifo, p.Whole)
			if p.Edit != nil {
				if err := p.Edit(&m, l.Message); err != nil {
					behind = p.unfit(l, err, behind)
					continue
				}
			}
			messages, fit = append(messages, m), append(fit, l)
		}
		wave = fit
		results, _ := q.sender.Send(ctx, messages...) // each result has its error
		p.mu.Lock()
		for i, l := range wave {
			if err := results[i].Err; err != nil {
				behind = p.refused(q, l, err, behind)
				continue
			}
			q.refusals = 0
			confirmed = append(confirmed, l)
			if time.Since(p.clock) < doubtful {
				p.made[results[i].ID] = true
			}
		}
		p.mu.Unlock()
		letters = behind
	}
	return confirmed
}

// heads returns the first letter of each group, and the others.
func heads(letters []letter) (first, behind []letter) {
	groups := make(map[string]bool, len(letters))
	for _, l := range letters {
		group := l.group()
		if groups[group] {
			behind = append(behind, l)
			continue
		}
		groups[group] = true
		first = append(first, l)
	}
	return first, behind
}

// ofTheMessage are SQS's error codes for problems of a single message.
var ofTheMessage = map[string]bool{
	"InvalidParameterValue": true, "InvalidMessageContents": true, "InvalidAttributeValue": true,
	"MissingParameter": true, "AWS.SimpleQueueService.BatchRequestTooLong": true,
}

// refusedItself reports whether a queue has refused this one message, rather than its whole
// request or all requests for a minute.
func refusedItself(err error) bool {
	if errors.Is(err, errSlow) {
		return false
	}
	api, whole := errors.AsType[smithy.APIError](err)
	return !whole || ofTheMessage[api.ErrorCode()]
}

// refused, which is called with p.mu held, leaves a letter that q did not accept and, to keep the order, the letters of its group
// behind it. It returns the remaining letters.
func (p *run) refused(q *queue, l letter, err error, behind []letter) []letter {
	p.count(fmt.Sprintf("were not accepted by %s: %s", q.url, brief(err)))
	if refusedItself(err) {
		q.refusals = 0 // the queue works: a bad letter must not hold up the others
	} else if q.refusals++; q.refusals == maxRefusals {
		q.closed = fmt.Sprintf("were not tried: %s did not accept %d others in a row", q.url, maxRefusals)
	}
	return p.leaveBehind(l, behind)
}

// unfit leaves a letter that Edit cannot change, and those of its group behind it.
func (p *run) unfit(l letter, err error, behind []letter) []letter {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(Unfit + terminal.Line(err.Error(), maxBrief))
	return p.leaveBehind(l, behind)
}

// Unfit begins the reason why letters were left that cannot be edited.
const Unfit = "cannot be edited so: "

// LeaveUnfit adds letters that cannot be edited, by the reason, to those that are left.
func LeaveUnfit(left, unfit map[string]int) map[string]int {
	if left == nil {
		left = make(map[string]int)
	}
	for why, n := range unfit {
		left[Unfit+why] += n
	}
	return left
}

// leaveBehind leaves the letters of l's group behind it, so that the order is kept, and returns the others. It is called
// with p.mu held.
func (p *run) leaveBehind(l letter, behind []letter) []letter {
	group := l.group()
	return slices.DeleteFunc(behind, func(other letter) bool {
		if other.group() != group {
			return false
		}
		p.count(behindAnother)
		return true
	})
}

// maxBrief is how many bytes of an error's text are shown: a service may have written it.
const maxBrief = 500

// brief returns the text of err without the parts that differ from letter to letter.
func brief(err error) string {
	if errors.Is(err, errSlow) {
		return errSlow.Error()
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return terminal.Line(api.ErrorCode()+": "+api.ErrorMessage(), maxBrief)
	}
	return terminal.Line(err.Error(), maxBrief)
}
