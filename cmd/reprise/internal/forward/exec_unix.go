//go:build unix

package forward

import (
	"context"
	"os/exec"
	"syscall"
	"time"
)

// shell returns the command that runs line.
func shell(ctx context.Context, line string) *exec.Cmd {
	return exec.CommandContext(ctx, "/bin/sh", "-c", line)
}

// ownGroup makes cmd the leader of a process group, which is asked to end when the
// command's context does and killed after grace. The group keeps a Ctrl-C in the
// terminal away from commands that still have time to finish. The function
// returned is to be called after cmd has ended: it kills what cmd left behind,
// if cmd had to be stopped.
func ownGroup(cmd *exec.Cmd, grace time.Duration) (release func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var killer *time.Timer
	kill := func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // fails when nobody is left
	}
	cmd.Cancel = func() error {
		killer = time.AfterFunc(grace, kill)
		return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	}
	return func() {
		// Run has returned, so Cancel is not running any more.
		if killer != nil && killer.Stop() {
			kill()
		}
	}
}
