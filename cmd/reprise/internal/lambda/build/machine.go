package build

import (
	"debug/elf"
	"runtime"
)

// foreign returns the name of the processor that the program is for, if it is one of Linux and
// not this machine's; empty if it may run here. Without this check each instance would only
// report "exec format error".
func foreign(program string) string {
	file, err := elf.Open(program)
	if err != nil {
		return "" // a script, or a program of another system
	}
	defer file.Close() //nolint:errcheck // it was only read
	switch {
	case file.Machine == elf.EM_X86_64 && runtime.GOARCH != "amd64":
		return "x86_64"
	case file.Machine == elf.EM_AARCH64 && runtime.GOARCH != "arm64":
		return "arm64"
	}
	return ""
}
