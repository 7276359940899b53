//go:build unix && !linux

package lambdalocal

import "syscall"

// processAttributes make an instance the leader of a process group, which can be
// killed as one and which a Ctrl-C in the terminal does not reach. If this program
// is killed, its instances notice by their Runtime API, which is gone.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
