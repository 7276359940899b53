//go:build unix

package lambdalocal

import (
	"os/exec"
	"syscall"
)

// killable lets cmd be killed with everything that it started.
func killable(cmd *exec.Cmd) {
	cmd.SysProcAttr = processAttributes()
	cmd.Cancel = func() error { killGroup(cmd); return nil }
}

// killGroup kills cmd, which has been started, and what it left behind.
func killGroup(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // fails when nobody is left
}
