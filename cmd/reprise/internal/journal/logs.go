package journal

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// The file that names the logs, from the oldest on.
//
// Pebble replays the logs that it finds, and misses none: with a log that was deleted
// while nobody looked, whatever was acknowledged since the last table would be gone
// without a word. So a log is named here before anything is written to it, until Pebble
// gives it up, with all of it in tables: just before its file is removed, or made
// another log. At every moment, and however a crash keeps or loses what was not yet
// synced, a log that is named is there, and a log that is not named is not needed.
//
// A directory without this file was written by an older version, or is to be opened
// with the logs that are left.
const (
	logsFile = "LOGS"
	logsLine = "reprise logs, checksum %08x\n" // of the names, each with its line's end
)

// checkLogs returns the logs that the directory names. It fails if one is missing.
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
	left := []string{logsFile} // and the logs that are no use without those before them
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
			"(to open what is older and lose the rest, remove %s)",
			errDamaged, strings.Join(missing, ", "), strings.Join(left, ", "))
	}
	return logs, nil
}

// readLogs returns what the directory's file says, nothing if there is none.
func readLogs(fs vfs.FS, dir string) ([]string, error) {
	name := fs.PathJoin(dir, logsFile)
	text, err := readFile(fs, name)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	_, names, _ := strings.Cut(text, "\n")
	if text != logsText(names) {
		return nil, fmt.Errorf("%w: %s is not as it was written: which logs there were is unknown "+
			"(to open the journal with those that are left, remove it)", errDamaged, name)
	}
	return strings.Fields(names), nil
}

func writeLogs(fs vfs.FS, dir string, logs []string) error {
	names := ""
	for _, log := range logs {
		names += log + "\n"
	}
	return replaceFile(fs, dir, logsFile, logsText(names))
}

func logsText(names string) string {
	return fmt.Sprintf(logsLine, logChecksum([]byte(names))) + names
}

// logFiles returns the names of the logs in the directory.
func logFiles(fs vfs.FS, dir string) ([]string, error) {
	names, err := fs.List(dir)
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".log") }), err
}

// addLog names a log that Pebble has made: its entry in the directory is synced, and
// nothing is written to it before this returns.
func (g *guard) addLog(info pebble.WALCreateInfo) {
	if info.Err != nil {
		return
	}
	g.logsMu.Lock()
	defer g.logsMu.Unlock()
	g.logs = append(g.logs, g.FS.PathBase(info.Path))
	g.saveLogs()
}

// dropLog names a file no longer that Pebble does not need, if it is a log.
func (g *guard) dropLog(file string) {
	g.logsMu.Lock()
	defer g.logsMu.Unlock()
	if i := slices.Index(g.logs, g.FS.PathBase(file)); i >= 0 {
		g.logs = slices.Delete(g.logs, i, i+1)
		g.saveLogs()
	}
}

func (g *guard) saveLogs() {
	if err := writeLogs(g, g.dir, g.logs); err != nil {
		g.stop(fmt.Errorf("writing %s: %w", logsFile, err))
	}
}
