package journal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// The file with the names of the logs, oldest first.
//
// Pebble replays the logs that it finds, and does not notice a missing one: acknowledged records
// in it would be lost silently. So a log is named here before its first record is written, and
// until Pebble has all of it in tables, just before its file is removed or reused. At every
// moment, whatever a crash loses of unsynced changes, every named log exists, and logs without a
// name are not needed.
//
// A directory without this file was written by an older version, or an operator has removed the
// file to open the journal with the remaining logs.
const (
	logsFile = "LOGS"
	logsLine = "reprise logs, checksum %08x\n" // of the names, each with its line's end
)

// checkLogs returns the logs that the file names. It fails if one is missing.
func checkLogs(fs vfs.FS, dir string) (logs []string, err error) {
	logs, err = readLogs(fs, dir)
	if err != nil {
		return nil, err
	}
	files, err := fs.List(dir)
	if err != nil {
		return nil, err
	}
	var missing []string
	left := []string{logsFile} // and the logs after the missing one, which are useless without it
	for _, log := range logs {
		switch {
		case !slices.Contains(files, log):
			missing = append(missing, log)
		case len(missing) > 0:
			left = append(left, log)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%w: missing: %s, perhaps with messages that were acknowledged "+
			"(to open the older records and lose the rest, remove %s)",
			errDamaged, strings.Join(missing, ", "), strings.Join(left, ", "))
	}
	return logs, nil
}

// readLogs returns the names in the directory's file, none if there is no file.
func readLogs(fs vfs.FS, dir string) ([]string, error) {
	names, found, err := readChecked(fs, dir, logsFile, logsLine, "the names of the logs are unknown (to open the journal with the remaining logs, remove it)")
	if !found {
		return nil, err
	}
	return strings.Fields(names), nil
}

func writeLogs(fs vfs.FS, dir string, logs []string) error {
	names := ""
	for _, log := range logs {
		names += log + "\n"
	}
	return replaceFile(fs, dir, logsFile, withChecksum(logsLine, names))
}

// logFiles returns the names of the logs in the directory.
func logFiles(fs vfs.FS, dir string) ([]string, error) {
	names, err := fs.List(dir)
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".log") }), err
}

// addLog adds the name of a log that Pebble has made. The log's directory entry is synced, and
// nothing is written to the log before addLog returns.
func (g *guard) addLog(info pebble.WALCreateInfo) {
	if info.Err != nil {
		return
	}
	g.logsMu.Lock()
	defer g.logsMu.Unlock()
	g.logs = append(g.logs, g.FS.PathBase(info.Path))
	g.saveLogs()
	g.batches.Store(0)
	g.listSoon() // the log before it was closed
}

// dropLog removes the name of a file that Pebble no longer needs, if it is a log.
func (g *guard) dropLog(file string) {
	g.logsMu.Lock()
	defer g.logsMu.Unlock()
	if i := slices.Index(g.logs, g.FS.PathBase(file)); i >= 0 {
		g.logs = slices.Delete(g.logs, i, i+1)
		g.saveSynced() // first: the manifest has what was in the log
		g.saveLogs()
	}
}

func (g *guard) saveLogs() {
	if err := writeLogs(g, g.dir, g.logs); err != nil {
		g.stop(fmt.Errorf("writing %s: %w", logsFile, err))
	}
}
