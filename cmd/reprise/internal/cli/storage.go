package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/diskfault"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
)

// storageFlags are the flags on where a server keeps its messages.
type storageFlags struct {
	data         string
	memory       bool
	sync         string
	syncInterval time.Duration
	syncDelay    time.Duration
	minFree      int64
	existing     bool
}

const aboutStorage = `Messages are kept in the directory --data. A send or a delete is acknowledged when
it is on disk: no crash loses it. A crash can undo the last receives and changes of
visibility: their messages come again too early, or stay hidden as long as before
the change. --sync interval acknowledges earlier, for speed: a crash loses up to
--sync-interval of work. --memory keeps nothing on disk. When the disk fails the
program ends with exit code 4 and says what to do.`

// The values of --sync.
const (
	syncAlways   = "always"
	syncInterval = "interval"
)

const (
	defaultSyncInterval = 100 * time.Millisecond
	defaultMinFree      = 512 // MiB
)

func (f *storageFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.data, "data", "", "`directory` for messages; only one server can use it at a time (default "+defaultDataText+")")
	flags.BoolVar(&f.memory, "memory", false, "keep messages in memory only: they are lost when the program ends")
	flags.StringVar(&f.sync, "sync", syncAlways, "`when` to sync the disk: always (before acknowledging) or interval (within --sync-interval)")
	flags.DurationVar(&f.syncInterval, "sync-interval", defaultSyncInterval, "how much work a crash may lose with --sync interval")
	flags.DurationVar(&f.syncDelay, "sync-delay", 0, "make every sync take this much longer, to try a slower disk")
	flags.Int64Var(&f.minFree, "min-free", defaultMinFree, "`MiB` of the disk to leave free: with less, sends are refused while receives and deletes continue; 0: fill the disk")
	flags.BoolVar(&f.existing, "existing", false, "fail if --data has not been used yet, rather than begin anew: for disks that may not be mounted")
	cmd.MarkFlagsMutuallyExclusive("memory", "data")
	cmd.MarkFlagsMutuallyExclusive("memory", "existing")
	cmd.MarkFlagsMutuallyExclusive("memory", "sync")
	cmd.MarkFlagsMutuallyExclusive("memory", "sync-delay")
}

// maxSyncDelay is the longest time that a sync can be made to take: a start and a stop wait for some.
const maxSyncDelay = 10 * time.Second

// options returns what the flags set; its Dir is empty for --memory.
func (f *storageFlags) options() (journal.Options, error) {
	if f.memory {
		return journal.Options{}, nil
	}
	options := journal.Options{MinFree: f.minFree << 20, Existing: f.existing}
	switch {
	case f.sync != syncAlways && f.sync != syncInterval:
		return options, usage(fmt.Errorf("--sync is %q: pass %s or %s", f.sync, syncAlways, syncInterval))
	case f.syncInterval <= 0:
		return options, usage(fmt.Errorf("--sync-interval is %v: pass a time like 100ms", f.syncInterval))
	case f.syncDelay < 0 || f.syncDelay > maxSyncDelay:
		return options, usage(fmt.Errorf("--sync-delay is %v: pass a time like 1ms, up to %v, or 0 for no delay", f.syncDelay, maxSyncDelay))
	case f.minFree < 0 || f.minFree > math.MaxInt64>>20:
		return options, usage(fmt.Errorf("--min-free is %d: pass a number of MiB, less than there can be on a disk", f.minFree))
	case f.minFree == 0:
		options.MinFree = -1
	}
	if f.sync == syncInterval {
		options.SyncInterval = f.syncInterval
	}
	if f.syncDelay > 0 {
		options.FS = slowSyncs(f.syncDelay)
	}
	var err error
	options.Dir, err = dataDir(f.data)
	return options, err
}

// slowSyncs returns the machine's file system with syncs that take longer.
func slowSyncs(delay time.Duration) vfs.FS {
	return diskfault.Wrap(journal.Disk, func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
			time.Sleep(delay)
		}
		return nil
	})
}

const defaultDataText = "$XDG_DATA_HOME/reprise/journal or ~/.local/share/reprise/journal"

// dataDir returns the absolute path of the directory given by --data, or of the default.
// The parents of the default are created later. Those of another must exist: they are
// missing when a disk is not mounted.
func dataDir(given string) (string, error) {
	if given == "" {
		return defaultDataDir()
	}
	dir, err := filepath.Abs(given)
	if err != nil {
		return "", fmt.Errorf("--data %s: %w", given, err)
	}
	if err := needParent(dir); err != nil {
		return "", &daemon.StorageError{Err: fmt.Errorf("--data %s: %w", given, err)}
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return "", &daemon.StorageError{Err: fmt.Errorf("--data %s is not a directory: pass another, or move the file away", given)}
	}
	return dir, nil
}

// needParent fails if the parent of dir does not exist, mostly because a disk is not
// mounted.
func needParent(dir string) error {
	if _, err := os.Stat(filepath.Dir(dir)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no directory %s: make it, mount the disk that it is on, or name another", filepath.Dir(dir))
	}
	return nil
}

func defaultDataDir() (string, error) {
	share := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(share) { // the XDG Base Directory Specification says to ignore other values
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("there is no place for the messages (%w): pass --data DIR or --memory", err)
		}
		share = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(share, "reprise", "journal"), nil
}

// storageText describes how safe messages are.
func storageText(o journal.Options) string {
	switch {
	case o.Dir == "":
		return "memory: messages are lost when this program ends"
	case o.SyncInterval > 0:
		return fmt.Sprintf("%s, synced every %v: a crash loses younger changes", o.Dir, o.SyncInterval)
	}
	return o.Dir + ", synced before every acknowledgement"
}
