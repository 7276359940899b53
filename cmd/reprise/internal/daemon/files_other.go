//go:build !unix

package daemon

// maxOpenFiles is how many files and connections the process may have open; 0 if
// that is not known.
func maxOpenFiles() uint64 { return 0 }
