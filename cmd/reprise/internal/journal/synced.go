package journal

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// The file with how long the journal's files are known to be, and checksums of that much of each.
//
// Pebble reads its manifest up to the first record that it cannot read, because a crash may leave half
// a record there. So it takes damage near the end for the end: the tables of the lost records then
// count for nothing, and are removed, while the logs with the same messages have been removed already.
// It does not notice that a log was cut between two batches, nor that a file is another's: of another
// directory, or of another number.
//
// So every log is listed here when the next one is made, and the manifest before a log is removed or
// reused because its batches are in tables. Tables, and files of bodies, are listed with them, by their
// length and their ends, which can be checked without reading all. Of the newest log so much is listed as
// was synced, anew whenever twice as many batches are there, in the background: so it costs commits nothing.
// Logs and the manifest may be longer than listed.
//
// A directory without this file was written by an older version, which ignores it.
const (
	syncedFile = "SYNCED"
	syncedLine = "reprise synced, checksum %08x\n" // of the lines that follow
	fileLine   = "%s %d %08x\n"                    // name, bytes, their checksum

	endBytes = 4 << 10 // at each end of a table
)

const manifestPrefix = "MANIFEST-"

// syncedPart is what is known to be on disk of a file: of a table all, of others so many bytes from the beginning.
type syncedPart struct {
	bytes    int64
	checksum uint32 // of a table's: of its ends
}

// extend returns the part with data behind it.
func (p syncedPart) extend(data []byte) syncedPart {
	return syncedPart{p.bytes + int64(len(data)), crc32.Update(p.checksum, castagnoli, data)}
}

// isTable reports whether the file is a table, or has bodies, which are written once and never extended.
func isTable(name string) bool {
	return strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob")
}

// isListed reports whether SYNCED lists files with such names.
func isListed(name string) bool {
	return isTable(name) || strings.HasSuffix(name, ".log") || strings.HasPrefix(name, manifestPrefix)
}

// syncedParts are the parts of files that SYNCED lists, by the files' names.
type syncedParts map[string]syncedPart

// readSynced returns what the directory's file lists, nothing if there is no file.
func readSynced(fs vfs.FS, dir string) (syncedParts, error) {
	lines, found, err := readChecked(fs, dir, syncedFile, syncedLine,
		"the lengths of the logs and of the manifest are unknown (to open the journal without checking them, remove it)")
	if !found {
		return nil, err
	}
	parts := make(syncedParts)
	for line := range strings.Lines(lines) {
		var file string
		var part syncedPart
		if _, err := fmt.Sscanf(line, fileLine, &file, &part.bytes, &part.checksum); err != nil {
			return nil, fmt.Errorf("%w: %s has the line %q: %w", errDamaged, fs.PathJoin(dir, syncedFile), line, err)
		}
		parts[file] = part
	}
	return parts, nil
}

func (p syncedParts) text() string {
	var lines []string
	for file, part := range p {
		lines = append(lines, fmt.Sprintf(fileLine, file, part.bytes, part.checksum))
	}
	slices.Sort(lines)
	return withChecksum(syncedLine, strings.Join(lines, ""))
}

// checkSynced returns what SYNCED lists of these logs and the manifest. It fails if one of them is
// shorter than listed, or was changed.
func checkSynced(fs vfs.FS, dir string, logs []string) (syncedParts, error) {
	parts, err := readSynced(fs, dir)
	if err != nil || parts == nil {
		return nil, err
	}
	files, err := fs.List(dir)
	if err != nil {
		return nil, err
	}
	manifest := selectedManifest(files)
	checked := make(syncedParts)
	for file, part := range parts {
		switch {
		case strings.HasPrefix(file, manifestPrefix):
			// Pebble begins another manifest when it opens the directory, with all tables in its first record.
			if manifest == "" || laterName(manifest, file) {
				continue
			}
			if manifest != file {
				return nil, fmt.Errorf("%w: the marker selects %s, but %s was in use later, by %s", errDamaged, manifest, file, syncedFile)
			}
		case !slices.Contains(files, file):
			continue // checkLogs and Pebble find what is missing
		case strings.HasSuffix(file, ".log") && logs != nil && !slices.Contains(logs, file):
			continue // no longer needed
		}
		if err := checkPart(fs, fs.PathJoin(dir, file), part); err != nil {
			return nil, err
		}
		checked[file] = part
	}
	return checked, nil
}

// checkNumbers fails if two files have one number: Pebble gives each number once, and finds its files by it.
func checkNumbers(fs vfs.FS, dir string) error {
	files, err := fs.List(dir)
	if err != nil {
		return err
	}
	slices.Sort(files)
	for i, file := range files {
		number, _, _ := strings.Cut(file, ".")
		if i > 0 && isTable(file) && isTable(files[i-1]) && strings.HasPrefix(files[i-1], number+".") {
			return fmt.Errorf("%w: %s and %s have one number: one of them is not of this directory", errDamaged,
				fs.PathJoin(dir, files[i-1]), file)
		}
	}
	return nil
}

// selectedManifest returns the manifest that the newest marker selects, "" if none does.
func selectedManifest(files []string) (manifest string) {
	newest := ""
	for _, file := range files {
		after, isMarker := strings.CutPrefix(file, manifestMarker)
		if number, name, ok := strings.Cut(after, "."); isMarker && ok && laterName(number, newest) {
			newest, manifest = number, name
		}
	}
	return manifest
}

// laterName reports whether a, which ends in a number of six digits or more, comes after b.
func laterName(a, b string) bool { return len(a) > len(b) || len(a) == len(b) && a > b }

// checkPart fails unless the file has the part.
func checkPart(fs vfs.FS, name string, part syncedPart) error {
	found, err := partOf(fs, name, part.bytes)
	switch {
	case err != nil:
		return err
	case found.bytes < part.bytes:
		return fmt.Errorf("%w: %s was cut: it has %d bytes, and %d had been synced, by %s", errDamaged, name, found.bytes, part.bytes, syncedFile)
	case found != part:
		return fmt.Errorf("%w: %s was changed, or is another file: its first %d bytes are not those that had been synced, by %s",
			errDamaged, name, part.bytes, syncedFile)
	}
	return nil
}

// partOf returns the part of a file: of a table all, of others at most so many bytes.
func partOf(fs vfs.FS, name string, bytes int64) (part syncedPart, err error) {
	file, err := fs.Open(name)
	if err != nil {
		return part, err
	}
	if isTable(name) {
		part, err = endsOf(file)
	} else {
		part, err = beginningOf(file, bytes)
	}
	return part, errors.Join(err, file.Close())
}

func beginningOf(file io.Reader, bytes int64) (part syncedPart, err error) {
	from, buffer := io.LimitReader(file, bytes), make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		part = part.extend(buffer[:n])
		if errors.Is(err, io.EOF) {
			return part, nil
		}
		if err != nil {
			return part, err
		}
	}
}

func endsOf(file vfs.File) (part syncedPart, err error) {
	info, err := file.Stat()
	if err != nil {
		return part, err
	}
	size := info.Size()
	first := make([]byte, min(size, endBytes))
	last := make([]byte, len(first))
	if len(first) == 0 {
		return part, nil
	}
	_, err = file.ReadAt(first, 0)
	if err == nil {
		_, err = file.ReadAt(last, size-int64(len(last)))
	}
	if errors.Is(err, io.EOF) { // ReadAt may return it with the last bytes
		err = nil
	}
	return syncedPart{size, syncedPart{}.extend(first).extend(last).checksum}, err
}

// writeSyncedBackup lists the files of a backup, all of which are on disk.
func writeSyncedBackup(fs vfs.FS, dir string) error {
	files, err := fs.List(dir)
	if err != nil {
		return err
	}
	parts := make(syncedParts)
	for _, file := range files {
		if !isListed(file) {
			continue
		}
		if parts[file], err = partOf(fs, fs.PathJoin(dir, file), math.MaxInt64); err != nil {
			return err
		}
	}
	return replaceFile(fs, dir, syncedFile, parts.text())
}
