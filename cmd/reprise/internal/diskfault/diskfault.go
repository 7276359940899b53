// Package diskfault makes a disk slow, or makes it fail, to show what its users do then.
package diskfault

import (
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Wrap returns fs with a call of before ahead of each operation that errorfs.Op knows, with
// the file's current name. The time that before takes delays the operation, and an error of
// before replaces it. before is called from several goroutines at once.
func Wrap(fs vfs.FS, before func(errorfs.Op) error) vfs.FS {
	return disk{errorfs.Wrap(fs, errorfs.InjectorFunc(before)), before}
}

// disk is Pebble's errorfs. That does not wrap the files that ReuseForWrite opens, which
// are all logs but the first few; disk does.
type disk struct {
	*errorfs.FS
	before func(errorfs.Op) error
}

func (d disk) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := d.FS.ReuseForWrite(oldname, newname, category)
	if err != nil {
		return nil, err
	}
	return errorfs.WrapFile(file, errorfs.InjectorFunc(func(op errorfs.Op) error {
		op.Path = newname // WrapFile does not know it
		return d.before(op)
	})), nil
}
