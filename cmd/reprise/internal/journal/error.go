package journal

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
)

// errDamaged is in every error about damage that this package finds itself.
var errDamaged = errors.New("damaged")

// describe returns err with the directory, the damaged file if there is one, and the remedy.
func describe(dir string, err error) error {
	switch {
	case isDamage(err):
		return fmt.Errorf("journal %s: %w%s: check the disk; then restore the directory from a backup, "+
			"or move it away to begin with an empty one", dir, err, whereDamaged(err))
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("journal %s: %w: free space on the disk, then start again; "+
			"nothing that was acknowledged is lost", dir, err)
	case errors.Is(err, syscall.EIO):
		return fmt.Errorf("journal %s: %w: check the disk and the system's log, then start again on a disk "+
			"that works", dir, err)
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return fmt.Errorf("journal %s: %w: let the process open more files (ulimit -n), then start again", dir, err)
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("journal %s: %w: make the directory, with all that is in it, writable for the user that reprise runs as, "+
			"or choose another with --data", dir, err)
	}
	return fmt.Errorf("journal %s: %w", dir, err)
}

// openError returns the error of opening as damage unless it has another known cause: then Pebble
// cannot read its own files.
func openError(err error) error {
	for _, other := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS, syscall.EMFILE, syscall.ENFILE, os.ErrPermission} {
		if errors.Is(err, other) {
			return err
		}
	}
	switch {
	case err == nil, errors.Is(err, errDamaged), whereDamaged(err) != "":
		return err
	case errors.Is(err, os.ErrNotExist):
		// Pebble ignores a manifest from its first damaged byte on. What is before that byte
		// names files that were removed later.
		return fmt.Errorf("%w (or the MANIFEST that names it is damaged)", err)
	}
	return fmt.Errorf("%w: MANIFEST, OPTIONS or marker: %w", errDamaged, err)
}

// readError returns the error of reading a body as damage if it is what Pebble says of a body whose length is not
// that in its table, and marks as nothing.
func readError(err error) error {
	if isDamage(err) || !strings.Contains(err.Error(), "value length mismatch") {
		return err
	}
	return fmt.Errorf("%w: a file of bodies (.blob), or a file that refers to it: %w", errDamaged, err)
}

// isDamage reports whether err is about what a file contains. A missing file that the journal
// needs is damage too.
func isDamage(err error) bool {
	return errors.Is(err, errDamaged) || errors.Is(err, os.ErrNotExist) || pebble.IsCorruptionError(err)
}

// whereDamaged returns the file that Pebble found damaged, unless the text of err names it.
func whereDamaged(err error) string {
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil {
		return " (damaged: " + info.Path + ")"
	}
	// Pebble names a damaged log in a detail of the error only; the text does not say which log.
	var detail interface{ ErrorDetail() string }
	if errors.As(err, &detail) {
		return " (" + detail.ErrorDetail() + ")"
	}
	return ""
}
