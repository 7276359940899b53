package journal

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"
)

// Backup makes dir a journal with everything that was committed before the call, and perhaps
// more; commits continue meanwhile. dir must not exist yet. On the same file system the
// backup takes next to no space at first, because it shares files with the journal. It keeps
// the space of these files occupied, and is lost with the disk: copy a backup that is to
// last elsewhere.
//
// A backup that fails does not harm the journal. A directory that it leaves behind is not
// accepted as a journal.
func (j *Journal) Backup(dir string) error {
	fs := j.options.FS
	if dir == "" || dir == j.options.Dir || strings.HasPrefix(dir, j.guard.prefix) {
		return fmt.Errorf("journal %s: cannot back up to %q: name a directory outside of it", j.options.Dir, dir)
	}
	if _, err := fs.Stat(dir); err == nil {
		return fmt.Errorf("journal %s: cannot back up to %s: it exists: name a directory that does not", j.options.Dir, dir)
	}
	err := j.guard.await(func() error { return j.db.Checkpoint(dir, pebble.WithFlushedWAL()) })
	if err != nil {
		return fmt.Errorf("backing up to %s: %w", dir, err)
	}
	logs, err := logFiles(fs, dir)
	if err == nil {
		err = writeLogs(fs, dir, logs)
	}
	if err == nil {
		err = writeSyncedBackup(fs, dir)
	}
	if err == nil {
		err = writeFormat(fs, dir) // last: this file makes dir a journal
	}
	if err != nil {
		return errors.Join(fmt.Errorf("backing up to %s: %w", dir, describe(dir, err)), fs.RemoveAll(dir))
	}
	return nil
}
