package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
)

// storageFlags say where a server keeps its messages.
type storageFlags struct {
	data         string
	memory       bool
	sync         string
	syncInterval time.Duration
	minFree      int64
}

const aboutStorage = `Messages are kept in the directory --data, and a send or a delete is
acknowledged when the disk has it: no crash loses it. What a crash of the last
moments can lose are receives and changes of visibility: such messages come
again early. --sync interval acknowledges before the disk has it, for speed: a
crash loses up to --sync-interval of work. --memory keeps nothing. When the disk
fails the program ends with exit code 4 and says what to do.`

// The values of --sync.
const (
	syncAlways   = "always"
	syncInterval = "interval"
)

func (f *storageFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.data, "data", "", "`directory` to keep messages in, which only one server can use at a time (default "+defaultDataText+")")
	flags.BoolVar(&f.memory, "memory", false, "keep messages in memory: they are lost when the program ends")
	flags.StringVar(&f.sync, "sync", syncAlways, "`when` the disk syncs: always, before acknowledging, or interval, within --sync-interval")
	flags.DurationVar(&f.syncInterval, "sync-interval", 100*time.Millisecond, "how much a crash may lose with --sync interval")
	flags.Int64Var(&f.minFree, "min-free", 512, "`MiB` of the disk to leave free: below it sends are refused, and receives and deletes go on; 0 fills the disk")
	cmd.MarkFlagsMutuallyExclusive("memory", "data")
	cmd.MarkFlagsMutuallyExclusive("memory", "sync")
}

// options is what the flags say; its Dir is empty for --memory.
func (f *storageFlags) options() (journal.Options, error) {
	if f.memory {
		return journal.Options{}, nil
	}
	options := journal.Options{MinFree: f.minFree << 20}
	switch {
	case f.sync != syncAlways && f.sync != syncInterval:
		return options, usage(fmt.Errorf("--sync is %q: pass %s or %s", f.sync, syncAlways, syncInterval))
	case f.syncInterval <= 0:
		return options, usage(fmt.Errorf("--sync-interval is %v: pass a time like 100ms", f.syncInterval))
	case f.minFree < 0:
		return options, usage(fmt.Errorf("--min-free is %d: pass a number of MiB", f.minFree))
	case f.minFree == 0:
		options.MinFree = -1
	}
	if f.sync == syncInterval {
		options.SyncInterval = f.syncInterval
	}
	var err error
	options.Dir, err = dataDir(f.data)
	return options, err
}

const defaultDataText = "$XDG_DATA_HOME/reprise/journal or ~/.local/share/reprise/journal"

// dataDir is the absolute path of the directory given by --data, or of the default.
// The directories that the default is in are made, those of another are not: they
// are missing when a disk is not mounted.
func dataDir(given string) (string, error) {
	if given == "" {
		return defaultDataDir()
	}
	dir, err := filepath.Abs(given)
	if err != nil {
		return "", fmt.Errorf("--data %s: %w", given, err)
	}
	if _, err := os.Stat(filepath.Dir(dir)); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("--data %s: there is no directory %s: make it, mount the disk that it is on, or pass another --data", given, filepath.Dir(dir))
	}
	return dir, nil
}

func defaultDataDir() (string, error) {
	share := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(share) { // to be ignored, says the XDG Base Directory Specification
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("there is no place for the messages (%w): pass --data DIR or --memory", err)
		}
		share = filepath.Join(home, ".local", "share")
	}
	return filepath.Join(share, "reprise", "journal"), nil
}

// storageText says how safe messages are.
func storageText(o journal.Options) string {
	switch {
	case o.Dir == "":
		return "memory: messages are lost when this program ends"
	case o.SyncInterval > 0:
		return fmt.Sprintf("%s, synced every %v: a crash loses what is younger", o.Dir, o.SyncInterval)
	}
	return o.Dir + ", synced before every acknowledgement"
}
