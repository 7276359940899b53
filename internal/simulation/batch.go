package simulation

import "github.com/reprise-sqs/reprise/internal/consumer"

// batch is a run of a handler for several messages.
type batch struct {
	shift
	ends []consumer.End
	lost int // leases
}

// runBatch runs the handler for the next batch, if one is due; otherwise the worker ends.
func (c *Consumer) runBatch() {
	ends := c.enter().TakeBatch()
	c.leave()
	if ends == nil {
		c.workerEnded()
		return
	}
	b := &batch{ends: ends}
	b.batch = b
	c.starts(&b.shift)
	messages := make([]*Message, len(ends))
	for i := range ends {
		d := ends[i].Delivery.Cargo.(*delivery)
		d.in, d.cut = b, consumer.CutNone
		messages[i] = d.message(b.began)
	}
	b.does = c.BatchHandler(messages)
	c.goesOn(&b.shift, c.Settings.HandlerTimeout)
}

// batchReturns handles the end of a batch's run, and runs the next batch.
func (c *Consumer) batchReturns(b *batch, cut bool) {
	results, now := b.results(len(b.ends), cut), c.now()
	for i := range b.ends {
		e := &b.ends[i]
		d := e.Delivery.Cargo.(*delivery)
		result := Result{}
		if results != nil {
			result = results[i]
		}
		cause := consumer.CutNone
		if cut {
			if cause = d.cut; cause == consumer.CutNone {
				cause = b.cut
			}
		}
		e.Opinion = c.opinionOf(d, result, cause, now)
	}
	c.enter().EndedBatch(b.ends, now.Sub(b.began), now)
	c.leave()
	for i := range b.ends {
		e := &b.ends[i]
		c.attempted(e.Delivery.Cargo.(*delivery), b.began, now, e.Opinion.Err, e.Verdict, e.Subject)
	}
	c.tellSettled()
	c.runBatch()
}
