package consumer

// afterDeletes is what is to be done for deleted messages.
type afterDeletes struct {
	waiting []Subject
	running int
}

// left is how many have not ended.
func (a *afterDeletes) left() int { return len(a.waiting) + a.running }

// deleted has done what follows the delete of d, which SQS has confirmed, as soon as fewer
// than Settings.Concurrency of these are under way.
func (c *Machine) deleted(d *Delivery) {
	if !c.AfterDelete {
		return
	}
	c.after.waiting = append(c.after.waiting, d.Subject())
	c.startAfterDeletes()
}

func (c *Machine) startAfterDeletes() {
	if len(c.after.waiting) > 0 && c.after.running < c.concurrency && !c.closed {
		c.after.running++
		c.want(Effect{Kind: RunAfterDelete})
	}
}

// NextDeleted takes the next deleted message for which something is to be done, for the
// shell's goroutine that asks.
func (c *Machine) NextDeleted() (Subject, bool) {
	if len(c.after.waiting) == 0 || c.closed {
		return Subject{}, false
	}
	s := c.after.waiting[0]
	c.after.waiting = c.after.waiting[1:]
	return s, true
}

// AfterDeleteEnded takes in that the goroutine of a [RunAfterDelete] has ended. If the user's code
// has ended it, another goes on.
func (c *Machine) AfterDeleteEnded() {
	c.after.running--
	c.startAfterDeletes()
}

// AfterDeletesLeft is for how many deleted messages something is still to be done.
func (c *Machine) AfterDeletesLeft() int { return c.after.left() }
