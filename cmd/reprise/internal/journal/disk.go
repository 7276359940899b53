package journal

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fileMode is the mode of the files: other users must not read messages.
const fileMode = 0o600

// Disk is the machine's file system, in which only the user can read the files of a journal: they
// get the mode 0600, whatever the umask. Pebble's own file system asks for 0666.
var Disk vfs.FS = disk{vfs.Default}

// disk is vfs.Default with other modes. Setting the umask would do it too, but commands that the
// program runs inherit the umask.
type disk struct{ vfs.FS }

// onDisk reports whether fs is the machine's file system, possibly wrapped.
func onDisk(fs vfs.FS) bool { return vfs.Root(fs) == vfs.Default }

// create makes an empty file, and fails if name exists. The file never has a wider mode.
func (disk) create(name string) error {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	return file.Close()
}

// Create makes a new file, even if name exists: the old file may be part of a backup under
// another name, and must stay as it is.
func (d disk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	err := d.create(name)
	for errors.Is(err, fs.ErrExist) {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		err = d.create(name)
	}
	if err != nil {
		return nil, err
	}
	return d.FS.OpenReadWrite(name, category)
}

func (d disk) OpenReadWrite(name string, category vfs.DiskWriteCategory, options ...vfs.OpenOption) (vfs.File, error) {
	if err := d.create(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return d.FS.OpenReadWrite(name, category, options...)
}

// Lock locks a file without opening it first: closing a file, under any descriptor, releases the
// locks that this process has on it.
func (d disk) Lock(name string) (io.Closer, error) {
	if err := d.create(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return d.FS.Lock(name)
}

func (d disk) Unwrap() vfs.FS { return d.FS }
