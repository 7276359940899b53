//go:build !unix

package children

import "os/exec"

// prepare leaves the command as it is: the end of the context kills it alone.
func prepare(*Child) {}

// members are not looked for here.
type members map[int]bool

func adopt() {}

func begin(cmd *exec.Cmd) error { return cmd.Start() }

func forget(*exec.Cmd) {}

func (c *Child) ask() { c.Kill() }

// Kill kills the command, which was started.
func (c *Child) Kill() { _ = c.cmd.Process.Kill() } // it may have ended

// KillAll does nothing where processes cannot be found.
func KillAll() int { return 0 }
