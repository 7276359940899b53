package reprise

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/internal/consumer"
)

const maxBatch = consumer.MaxBatch // entries in any batch request of SQS

// results are those of the entries of a request, by position.
type results = [maxBatch]consumer.Failure

// deliver sends a batch and takes in the results. If the user's code, a Client or an
// Observer, ends this goroutine, what it was about is tried again.
func (c *Consumer) deliver(o *consumer.Outbox, batch []*consumer.Delivery) {
	var entries [maxBatch]consumer.Entry
	m := c.enter()
	batch = m.Prepare(o, batch, &entries)
	target := c.deadLetter
	c.leave()
	replied := unanswered(len(batch))
	defer func() {
		c.enter().Acknowledge(o, batch, &replied)
		c.leave()
		c.tellSettled()
	}()
	if len(batch) == 0 {
		return
	}
	switch asked := entries[:len(batch)]; o.Request {
	case consumer.DeleteMessages:
		replied = c.sendDeletes(asked)
	case consumer.HideMessages:
		replied = c.changeVisibility(c.settleLimit.context(c.settleCtx), OpVisibility, asked)
	case consumer.SendDeadLetters:
		replied = c.sendDeadLetters(target, batch, asked)
	case consumer.SendCopies:
		replied = c.sendCopies(batch, asked)
	}
}

// unanswered are the results of n entries of which no reply is known.
func unanswered(n int) (replied results) {
	for i := range n {
		replied[i] = consumer.Failure{Err: consumer.ErrUnanswered}
	}
	return replied
}

// The ids of batch entries are positions: a message id could stand in one batch
// twice, and SQS refuses the whole batch then.
var positions = [maxBatch]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}

// refusal is what SQS said of an entry that it did not carry out.
type refusal struct {
	code, message string
	ours          bool // sending it again unchanged is no use
}

func (r *refusal) Error() string { return r.code + ": " + r.message }

// sortReply sorts the reply to a request with n entries, or err, by position: success for
// each entry that SQS confirmed, a failure for every other, those that the reply forgets
// included. id returns the i-th confirmed entry's id.
func sortReply(n, confirmed int, id func(i int) *string, failed []types.BatchResultErrorEntry, err error) results {
	replied := unanswered(n)
	if err != nil {
		f := failureOf(err)
		for i := range n {
			replied[i] = f
		}
	}
	for i := range confirmed {
		if at, ok := position(id(i), n); ok {
			replied[at] = consumer.Failure{}
		}
	}
	for i := range failed {
		f := &failed[i]
		if at, ok := position(f.Id, n); ok {
			said := &refusal{code: deref(f.Code), message: deref(f.Message), ours: f.SenderFault && !throttled(deref(f.Code))}
			replied[at] = consumer.Failure{Err: said, Kinds: consumer.OfEntry}
			if said.ours {
				replied[at].Kinds |= consumer.BySender
			}
		}
	}
	return replied
}

// position reads an entry's id back.
func position(id *string, n int) (int, bool) {
	if id == nil {
		return 0, false
	}
	at, err := strconv.Atoi(*id)
	return at, err == nil && at >= 0 && at < n
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
