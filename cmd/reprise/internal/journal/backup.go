package journal

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"
)

// Backup makes dir a journal with everything that was committed before the call,
// and perhaps more, while commits go on. There must be no dir yet. On the same file
// system it takes next to no space at first, for it shares the files that do not
// change; it keeps theirs from being given back, so that a backup that is to last,
// or to survive the disk, is copied elsewhere.
//
// A backup that fails harms the journal in no way. What it leaves, if anything, is
// not taken for a journal.
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
		err = writeFormat(fs, dir) // last: now it is one
	}
	if err != nil {
		return errors.Join(fmt.Errorf("backing up to %s: %w", dir, describe(dir, err)), fs.RemoveAll(dir))
	}
	return nil
}
