// Package children runs commands so that all that they start ends when they are
// stopped: functions, the commands of --exec, builds.
//
// A command leads a process group, which is signalled as a whole. What leaves the group
// (setsid, a daemon that forks twice) is found on Linux alone: there this program is the
// subreaper of what its commands start (prctl(2), PR_SET_CHILD_SUBREAPER), so that no
// process of theirs becomes a child of init, and each carries in its environment a mark
// of the command that it comes from. Where there are no process groups, only the command
// itself is killed.
package children

import (
	"crypto/rand"
	"os/exec"
	"sync"
	"time"
)

// MarkName is the variable that [NewMark] makes.
const MarkName = "REPRISE_RUN_ID"

// NewMark returns a variable for the environment of a command, NAME=value, that no other
// command has.
func NewMark() string { return MarkName + "=" + rand.Text() }

// Child is a command with what it starts. It is made by [New].
type Child struct {
	cmd   *exec.Cmd
	mark  string
	grace time.Duration

	mu      sync.Mutex
	stopped bool        // its context ended before it did
	killer  *time.Timer // set with stopped, if there is a grace
	waited  bool        // the command itself has ended and was waited for: its id may be another's
	known   members     // that were seen
}

// New prepares cmd, which comes from exec.CommandContext and has not been started. mark
// is a variable, NAME=value, in the environment of cmd and of no other command. When the
// context ends, the command and what it has started are asked to end and, after grace,
// killed; without a grace they are killed at once.
func New(cmd *exec.Cmd, mark string, grace time.Duration) *Child {
	c := &Child{cmd: cmd, mark: mark, grace: grace, known: make(members)}
	prepare(c)
	return c
}

// Run starts the command and waits for it, as exec.Cmd does. If the context's end
// stopped it, nothing of it is left then; otherwise what it has left behind goes on,
// until [KillAll].
func (c *Child) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// Start starts the command.
func (c *Child) Start() error { return threads.start(c.cmd) }

// Wait waits for the command, which was started: see [Child.Run].
func (c *Child) Wait() error {
	err := c.cmd.Wait()
	forget(c.cmd)
	c.mu.Lock()
	c.waited = true
	stopped := c.stopped
	if c.killer != nil {
		c.killer.Stop()
	}
	c.mu.Unlock()
	if stopped {
		c.Kill()
	}
	return err
}

// stop is what the end of the context does.
func (c *Child) stop() {
	c.mu.Lock()
	c.stopped = true
	if c.grace > 0 {
		c.killer = time.AfterFunc(c.grace, c.Kill)
	}
	c.mu.Unlock()
	if c.grace > 0 {
		c.ask()
	} else {
		c.Kill()
	}
}
