package consumer

import "time"

// TakeBatch takes the next batch of messages to run, for the worker that asks; nil if none
// is due. The end of the section starts another worker for the batch behind it. The shell
// fills in how each attempt ends, and passes the batch to [Machine.EndedBatch].
func (c *Machine) TakeBatch() []End {
	c.workerStarting = false // if the starting worker is another one, one too many may be started, which does no harm
	c.loseEnded()
	first := c.nextGranted()
	if first == nil {
		return nil
	}
	var batch []End
	if first == c.solo.next {
		c.setOff(first)
		batch = []End{{Delivery: first}}
	} else {
		batch = c.fill(first)
	}
	run := &batchRun{messages: len(batch)}
	for i := range batch {
		batch[i].Delivery.batch = run
	}
	c.batches.running++
	c.counts.Batches++
	c.charge()
	return batch
}

// fill makes a batch of the messages that are ready, from first on, as far as they fit. The
// messages that one gate has let through make a batch of their own.
func (c *Machine) fill(first *Delivery) []End {
	most := c.batches.ready.messages + c.groups.Counts().Along
	batch := make([]End, 0, min(c.batches.Size, max(1, most)))
	bytes := 0
	fits := func(d *Delivery) bool { // once a message does not fit, none does
		bytes += d.size
		return len(batch) == 0 || len(batch) < c.batches.Size && bytes <= c.batches.Bytes
	}
	gate := first.gate
	for d := first; d != nil && d.gate == gate && fits(d); d = c.firstInTime() {
		c.setOff(d)
		batch = append(batch, End{Delivery: d})
		if gate == nil && c.Queue.FIFO {
			c.fillWithGroup(&batch, d, fits)
		}
	}
	return batch
}

// End is an attempt at one message of a batch, and its end.
type End struct {
	Delivery *Delivery
	Cargo    any // the shell's own
	Opinion  Opinion
	Escaped  bool   // the user's code ended each goroutine that tried to judge it
	Trail    string // what Observer.Starting returned for it; empty: the trail before it stays

	// What EndedBatch decides.
	Verdict Verdict
	Subject Subject // what the log and observers are told of
}

// EndedBatch judges the attempts of a batch, and begins the settlement of its messages.
func (c *Machine) EndedBatch(ends []End, took time.Duration, now time.Time) {
	c.batches.running--
	for i := range ends {
		if ends[i].Escaped {
			ends[i].Delivery.lease.Lose()
		}
	}
	for i := 0; i < len(ends); {
		if c.Queue.FIFO {
			i += c.settleGroup(ends[i:], took, now)
			continue
		}
		c.endOf(&ends[i], took, now)
		i++
	}
}

// endOf ends one message's attempt.
func (c *Machine) endOf(e *End, took time.Duration, now time.Time) {
	e.Verdict, e.Subject = c.Ended(e.Delivery, e.Opinion, e.Trail, took, now)
}
