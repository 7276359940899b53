package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Format is the version of the directory's format that this package reads and writes: there has been
// one. The next one must be read together with the one before, and testdata/formats keeps a directory
// of each. The contents of the records have a version of their own, which belongs to the server.
const Format = 1

// The file with the format of a directory. It is written first in a new journal, last in a
// backup: without it a directory is not a journal.
const (
	formatFile = "JOURNAL"
	formatLine = "reprise journal, format %d\n"
)

// newSuffix ends the name of a file that is being written and will replace another.
const newSuffix = ".new"

// dirMode is the mode of the directories: other users must not read messages.
const dirMode = 0o700

// lockDir makes the directory if it does not exist, and locks it.
func lockDir(o Options) (*pebble.Lock, error) {
	if o.ReadOnly || o.Existing {
		if _, err := o.FS.Stat(o.FS.PathJoin(o.Dir, formatFile)); errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("journal %s: not a journal: it has no file %s: name the data directory of a server, or a backup, or mount the disk that has it", o.Dir, formatFile)
		}
	} else if err := makeDir(o.FS, o.Dir); err != nil {
		return nil, describe(o.Dir, err)
	}
	if err := checkOwners(o); err != nil {
		return nil, err
	}
	lock, err := pebble.LockDirectory(o.Dir, o.FS)
	if err != nil && heldByAnother(err) {
		otherwise := "choose another directory with --data"
		if o.ReadOnly {
			otherwise = "make a backup and read that"
		}
		return nil, fmt.Errorf("journal %s: in use by another process (%w): stop the reprise that runs on it, or %s", o.Dir, err, otherwise)
	}
	if err != nil {
		return nil, describe(o.Dir, fmt.Errorf("locking: %w", err))
	}
	return lock, nil
}

// heldByAnother reports whether err, of locking a file, means that another process has locked it.
// On some systems that is the same error as for a file without permission.
func heldByAnother(err error) bool {
	_, opening := errors.AsType[*os.PathError](err)
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) && !opening ||
		strings.Contains(err.Error(), "held by current process")
}

// makeDir makes dir and its parents, and syncs them.
func makeDir(fs vfs.FS, dir string) error {
	if _, err := fs.Stat(dir); err == nil || !errors.Is(err, os.ErrNotExist) {
		return err
	}
	parent := fs.PathDir(dir)
	if parent != dir {
		if err := makeDir(fs, parent); err != nil {
			return err
		}
	}
	if err := fs.MkdirAll(dir, dirMode); err != nil {
		return err
	}
	return syncDir(fs, parent)
}

func syncDir(fs vfs.FS, dir string) error {
	file, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// checkFormat fails unless the directory is a journal of a format that this package knows. An
// empty directory becomes a journal.
func checkFormat(o Options) error {
	names, err := o.FS.List(o.Dir)
	if err != nil {
		return describe(o.Dir, err)
	}
	if !slices.Contains(names, formatFile) {
		for _, name := range names {
			if name != "LOCK" && name != formatFile+newSuffix && name != "lost+found" {
				return fmt.Errorf("journal %s: it has a file %s, but no file %s: it is not a journal, or a backup that was "+
					"not finished: choose an empty directory", o.Dir, name, formatFile)
			}
		}
		if err := writeFormat(o.FS, o.Dir); err != nil {
			return describe(o.Dir, err)
		}
		return nil
	}
	file := o.FS.PathJoin(o.Dir, formatFile)
	line, err := readFile(o.FS, file)
	if err != nil {
		return describe(o.Dir, err)
	}
	var format int
	if _, err := fmt.Sscanf(line, formatLine, &format); err != nil || line != fmt.Sprintf(formatLine, format) {
		return fmt.Errorf("journal %s: %s is damaged: it contains %.80q instead of %q: check the disk; "+
			"then restore the directory from a backup", o.Dir, file, line, fmt.Sprintf(formatLine, Format))
	}
	if format != Format {
		return fmt.Errorf("journal %s: %s names format %d, and this reprise knows format %d only: "+
			"use the version of reprise that wrote it, go on from a backup that this version or the one before it made, or choose another directory with --data", o.Dir, formatFile, format, Format)
	}
	if lacksMarker(names) {
		return describe(o.Dir, fmt.Errorf("%w: there is no file %s*", errDamaged, manifestMarker))
	}
	return nil
}

// manifestMarker begins the name of the file that selects the manifest.
const manifestMarker = "marker.manifest."

// lacksMarker reports whether Pebble has written into a directory whose marker is missing: Pebble
// would start an empty store there and overwrite the old one. The marker is an empty file, which
// careless copies leave out.
func lacksMarker(names []string) bool {
	written := false
	for _, name := range names {
		if strings.HasPrefix(name, manifestMarker) {
			return false
		}
		// Whenever the machine crashed, only these files can exist without the marker.
		written = written || strings.HasSuffix(name, ".log") || strings.HasSuffix(name, ".sst")
	}
	return written
}

// writeFormat makes dir a journal.
func writeFormat(fs vfs.FS, dir string) error {
	return replaceFile(fs, dir, formatFile, fmt.Sprintf(formatLine, Format))
}

// replaceFile writes a file of dir so that a crash leaves the old one or the new one.
func replaceFile(fs vfs.FS, dir, name, text string) error {
	name = fs.PathJoin(dir, name)
	file, err := fs.Create(name+newSuffix, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = file.Write([]byte(text))
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := fs.Rename(name+newSuffix, name); err != nil {
		return err
	}
	return syncDir(fs, dir)
}

func readFile(fs vfs.FS, name string) (string, error) {
	file, err := fs.Open(name)
	if err != nil {
		return "", err
	}
	data, err := io.ReadAll(io.LimitReader(file, 64<<20))
	return string(data), errors.Join(err, file.Close())
}

// withChecksum returns lines below a first line with their checksum.
func withChecksum(first, lines string) string {
	return fmt.Sprintf(first, logChecksum([]byte(lines))) + lines
}

// readChecked returns the lines of a file that withChecksum made; found is false if there is none. The error of a
// file that was changed says what is unknown without it.
func readChecked(fs vfs.FS, dir, file, first, unknown string) (lines string, found bool, err error) {
	name := fs.PathJoin(dir, file)
	text, err := readFile(fs, name)
	if errors.Is(err, os.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	_, lines, _ = strings.Cut(text, "\n")
	if text != withChecksum(first, lines) {
		return "", false, fmt.Errorf("%w: %s was changed: %s", errDamaged, name, unknown)
	}
	return lines, true, nil
}
