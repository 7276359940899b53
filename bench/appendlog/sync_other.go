//go:build !linux

package appendlog

import "os"

func syncData(file *os.File) error { return file.Sync() }
