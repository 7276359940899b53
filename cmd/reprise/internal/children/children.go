// Package children runs commands such that stopping one also ends all processes that it has
// started: functions, the commands of --exec, builds.
//
// A command leads a process group, which is signalled as a whole. Processes that leave the
// group (by setsid, or daemons that fork twice) are found on Linux only. There this program
// is the subreaper of its commands' processes (prctl(2), PR_SET_CHILD_SUBREAPER), so that
// none of them becomes a child of init, and each has a mark of its command in its
// environment. On systems without process groups only the command itself is killed.
package children

import (
	"crypto/rand"
	"os/exec"
	"sync"
	"time"
)

// MarkName is the variable that [NewMark] makes.
const MarkName = "REPRISE_RUN_ID"

// NewMark returns a new variable, NAME=value, to mark the environment of one command.
func NewMark() string { return MarkName + "=" + rand.Text() }

// Child is a command with all processes that it starts. It is made by [New].
type Child struct {
	cmd   *exec.Cmd
	mark  string
	grace time.Duration

	mu      sync.Mutex
	stopped bool        // its context ended first
	killer  *time.Timer // set together with stopped, if there is a grace
	waited  bool        // the command has ended and was waited for: its id may be another process's
	known   members     // all that were ever seen
}

// New prepares cmd, which comes from exec.CommandContext and has not been started. mark is a
// variable, NAME=value, that is in the environment of cmd and of no other command. When the
// context ends, the command and all that it has started get SIGTERM and, after grace, are
// killed; if grace is 0 they are killed at once.
func New(cmd *exec.Cmd, mark string, grace time.Duration) *Child {
	c := &Child{cmd: cmd, mark: mark, grace: grace, known: make(members)}
	prepare(c)
	return c
}

// Run starts the command and waits for it, as exec.Cmd does. If the end of the context
// stopped it, none of its processes are left when Run returns; otherwise processes that it
// has left behind run on, until [KillAll].
func (c *Child) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// Start starts the command.
func (c *Child) Start() error { return threads.start(c.cmd) }

// Wait waits for the command, which must have been started: see [Child.Run].
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

// stop is called when the context ends.
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
