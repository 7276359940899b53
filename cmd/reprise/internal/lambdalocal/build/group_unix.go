//go:build unix

package build

import (
	"os/exec"
	"syscall"
)

// stopWhole makes cmd the leader of a process group, which is asked to end as a
// whole: what a Makefile has started would go on otherwise.
func stopWhole(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}
