package consumer

// afterDeletes are the runs of Config.AfterDelete for deleted messages.
type afterDeletes struct {
	waiting []Subject
	running int
}

// left returns how many have not ended.
func (a *afterDeletes) left() int { return len(a.waiting) + a.running }

// deleted plans the run of Config.AfterDelete for d, whose delete SQS has confirmed. At most
// Settings.Concurrency of these runs are under way at once.
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

// NextDeleted takes the next deleted message for which Config.AfterDelete is to run, for the
// goroutine of the shell that asks. It returns false if there is none.
func (c *Machine) NextDeleted() (Subject, bool) {
	if len(c.after.waiting) == 0 || c.closed {
		return Subject{}, false
	}
	s := c.after.waiting[0]
	c.after.waiting = c.after.waiting[1:]
	return s, true
}

// AfterDeleteEnded takes in that the goroutine of a [RunAfterDelete] has ended. If the
// user's code ended it, another goroutine takes over.
func (c *Machine) AfterDeleteEnded() {
	c.after.running--
	c.startAfterDeletes()
}

// AfterDeletesLeft returns for how many deleted messages Config.AfterDelete has not ended.
func (c *Machine) AfterDeletesLeft() int { return c.after.left() }
