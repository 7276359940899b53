package process

import (
	"syscall"
	"time"
	"unsafe"
)

// cpuTime is the processor time of a process, in nanoseconds: the counts in
// /proc/PID/stat are in ticks of ten milliseconds.
func cpuTime(pid int) (time.Duration, error) {
	// The clock of a process: see clock_getcpuclockid(3), and MAKE_PROCESS_CPUCLOCK
	// in the kernel.
	const scheduled = 2
	clock := ^pid<<3 | scheduled
	var now syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(clock), uintptr(unsafe.Pointer(&now)), 0); errno != 0 {
		return 0, errno
	}
	return time.Duration(now.Nano()), nil
}
