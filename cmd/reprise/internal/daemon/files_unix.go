//go:build unix

package daemon

import "golang.org/x/sys/unix"

// maxOpenFiles returns how many files and connections the process may have open; 0 if that
// is unknown. The Go runtime has raised the limit as far as it may.
func maxOpenFiles() uint64 {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return uint64(limit.Cur) //nolint:unconvert // signed on some systems
}
