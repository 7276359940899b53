package lambdalocal

import "syscall"

// processAttributes make an instance the leader of a process group, which can be
// killed as one and which a Ctrl-C in the terminal does not reach. The kernel kills
// the leader if this program dies; what the leader started is then left alone.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
