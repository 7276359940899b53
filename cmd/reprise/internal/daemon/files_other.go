//go:build !unix

package daemon

// maxOpenFiles returns 0: the limit of open files is unknown.
func maxOpenFiles() uint64 { return 0 }
