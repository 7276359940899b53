package appendlog

import (
	"os"
	"syscall"
)

// syncData makes written data durable, but not its time of modification.
func syncData(file *os.File) error { return syscall.Fdatasync(int(file.Fd())) }
