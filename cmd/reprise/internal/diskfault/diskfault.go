// Package diskfault makes a disk slow, or fail, where something is to be seen of
// whoever uses it.
package diskfault

import (
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Wrap returns fs with before called ahead of each operation that errorfs.Op knows,
// with the name that the file has then. What it takes is added to the operation; an
// error of it takes the operation's place. It is called from several goroutines at
// once.
func Wrap(fs vfs.FS, before func(errorfs.Op) error) vfs.FS {
	return disk{errorfs.Wrap(fs, errorfs.InjectorFunc(before)), before}
}

// disk is Pebble's errorfs, which lets go of the files that ReuseForWrite opens: of
// every log but the first few.
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
