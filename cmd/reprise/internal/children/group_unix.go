//go:build unix

package children

import "syscall"

// prepare makes the command the leader of a process group, which does not get the SIGINT of
// a Ctrl-C in the terminal.
func prepare(c *Child) {
	c.cmd.SysProcAttr = attributes()
	c.cmd.Cancel = func() error { c.stop(); return nil }
}

// signalGroup signals the processes of the command's group.
func (c *Child) signalGroup(signal syscall.Signal) {
	_ = syscall.Kill(-c.cmd.Process.Pid, signal) // fails when no process is left
}
