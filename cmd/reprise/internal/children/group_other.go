//go:build !unix

package children

import "os/exec"

// prepare does nothing: the end of the context kills only the command itself.
func prepare(*Child) {}

// members is unused here: processes cannot be searched for.
type members map[int]bool

func adopt() {}

func begin(cmd *exec.Cmd) error { return cmd.Start() }

func forget(*exec.Cmd) {}

func (c *Child) ask() { c.Kill() }

// Kill kills the command, which must have been started.
func (c *Child) Kill() { _ = c.cmd.Process.Kill() } // it may have ended

// KillAll does nothing: processes cannot be searched for.
func KillAll() int { return 0 }
