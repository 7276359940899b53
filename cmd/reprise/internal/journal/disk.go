package journal

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// fileMode is the mode of the files: messages are nobody else's business.
const fileMode = 0o600

// Disk is the machine's file system, in which whatever a journal writes belongs to its
// user alone, whatever the umask: files get the mode 0600. Pebble's own asks for 0666.
var Disk vfs.FS = disk{vfs.Default}

// disk is vfs.Default with other modes. The umask would do it too, but it is the
// process's: commands that the program runs inherit it.
type disk struct{ vfs.FS }

// onDisk reports whether fs, however it is wrapped, is the machine's.
func onDisk(fs vfs.FS) bool { return vfs.Root(fs) == vfs.Default }

// create makes an empty file, and fails if there is one. It never has a wider mode.
func (disk) create(name string) error {
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	return file.Close()
}

// Create makes a new file, also where there is one of this name: that may have other
// names, of backups, under which it has to stay as it is.
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

// Lock opens no lock that exists before it is locked: to close a file, under any
// descriptor, ends the locks that this process has on it.
func (d disk) Lock(name string) (io.Closer, error) {
	if err := d.create(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return d.FS.Lock(name)
}

func (d disk) Unwrap() vfs.FS { return d.FS }
