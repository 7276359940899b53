//go:build unix && !linux

package children

import (
	"os/exec"
	"syscall"
)

// attributes make a command the leader of a process group. If this program is
// killed, the command runs on; functions notice that their Runtime API is gone.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// members is unused here: processes cannot be searched for.
type members map[int]bool

func adopt() {}

func begin(cmd *exec.Cmd) error { return cmd.Start() }

func forget(*exec.Cmd) {}

func (c *Child) ask() { c.signalGroup(syscall.SIGTERM) }

// Kill kills the command, which must have been started, and its process group.
func (c *Child) Kill() { c.signalGroup(syscall.SIGKILL) }

// KillAll does nothing: processes that have left their group cannot be found.
func KillAll() int { return 0 }
