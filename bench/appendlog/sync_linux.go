package appendlog

import (
	"os"
	"syscall"
)

// syncData makes durable what was written, but not when.
func syncData(file *os.File) error { return syscall.Fdatasync(int(file.Fd())) }
