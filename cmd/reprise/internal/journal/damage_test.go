package journal_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
)

// usedDisk returns a journal as a crash leaves it: tables, bodies beside them, and
// a log with the last of its batches.
func usedDisk(t *testing.T) (disk *vfs.MemFS, batches int) {
	t.Helper()
	disk = vfs.NewCrashableMem()
	for range 3 { // closing writes tables
		j := open(t, journal.Options{FS: disk})
		for range 5 {
			batches++
			mustCommit(t, j, numbered(batches)...)
		}
		mustClose(t, j)
	}
	j := open(t, journal.Options{FS: disk})
	for range 5 {
		batches++
		mustCommit(t, j, numbered(batches)...)
		for range 20 { // many in a block of the log
			mustCommit(t, j, change{"m1", strings.Repeat("state", 10)})
		}
	}
	await(j, journal.Listed)
	crashed := disk.CrashClone(vfs.CrashCloneCfg{})
	mustClose(t, j)
	return crashed, batches
}

// TestDamage flips bits in each file. Opening must give everything that was acknowledged, or
// an error that names the place and the remedy: never a part of it.
func TestDamage(t *testing.T) {
	// TestDamagedLog has the log's end, which may lose the last batch; here that
	// changes nothing.
	disk, _ := usedDisk(t)
	healthy := open(t, journal.Options{FS: disk.CrashClone(vfs.CrashCloneCfg{})})
	want := contents(t, healthy, "")
	mustClose(t, healthy)

	names, err := disk.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	flips := 60 // of each file
	if raceDetector {
		flips = 12 // it looks for races: nothing runs at once here but reading
	}
	random := rand.New(rand.NewPCG(1, 0))
	kinds := map[string]int{} // damage found, by kind of file
	for _, name := range names {
		data := fileData(t, disk, name)
		for range flips {
			if len(data) == 0 {
				break
			}
			at, bit := random.IntN(len(data)), byte(1)<<random.IntN(8)
			clone := disk.CrashClone(vfs.CrashCloneCfg{})
			fileData(t, clone, name)[at] ^= bit
			found, err := readAll(clone)
			if err != nil {
				kinds[kindOf(name)]++
			} else if kindOf(name) != "log" && !slices.Equal(found, want) {
				t.Errorf("%s, byte %d of %d flipped: other contents, and no error", name, at, len(data))
			}
			again := disk.CrashClone(vfs.CrashCloneCfg{})
			fileData(t, again, name)[at] ^= bit
			for _, err := range []error{err, checkGet(t, again, want)} {
				if err == nil {
					continue
				}
				if !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "backup") &&
					!strings.Contains(err.Error(), "version of reprise") {
					t.Errorf("%s, byte %d: %v\nwant the directory and what to do", name, at, err)
				}
				if !namesFile(err, name) {
					t.Errorf("%s, byte %d: %v\nwant the file", name, at, err)
				}
			}
		}
	}
	for _, kind := range []string{"log", "sst", "blob", "MANIFEST", "JOURNAL", "LOGS"} {
		if kinds[kind] == 0 {
			t.Errorf("no damage was found in any %s: the test has lost its point: %v", kind, kinds)
		}
	}
}

// TestDamagedLog flips each byte of the log's last block in turn: damage before the
// last batch is always found, damage in it ends the log there.
func TestDamagedLog(t *testing.T) {
	disk := vfs.NewCrashableMem()
	j := open(t, journal.Options{FS: disk})
	const batches = 20
	for n := range batches {
		mustCommit(t, j, change{numberKey, strconv.Itoa(n + 1)}, change{"b" + strconv.Itoa(n), strings.Repeat("x", 50)})
	}
	disk = disk.CrashClone(vfs.CrashCloneCfg{})
	mustClose(t, j)
	log := newestLog(t, disk)
	data := fileData(t, disk, log)
	last := strings.LastIndex(string(data), numberKey)
	flips, silent := 0, 0
	for at := range data {
		clone := disk.CrashClone(vfs.CrashCloneCfg{})
		fileData(t, clone, log)[at] ^= 0x10
		j, err := journal.Open(journal.Options{Dir: dir, FS: clone})
		flips++
		if err != nil {
			if !strings.Contains(err.Error(), log) || !strings.Contains(err.Error(), "restore") {
				t.Errorf("byte %d: %v\nwant the file and the remedy", at, err)
			}
			continue
		}
		silent++
		found, err := getOne(j, numberKey)
		if number, _ := strconv.Atoi(found); err != nil || number < batches-1 {
			t.Errorf("byte %d of %d, the last batch is near %d: %d of %d batches are there, and no error",
				at, len(data), last, number, batches)
		}
		mustClose(t, j)
	}
	if silent == 0 || silent > flips/10 {
		t.Errorf("%d of %d flipped bytes were not reported: want those of the last batch", silent, flips)
	}
}

// TestTornLog cuts the log's file: batches go from the end, whole. What is known to have been synced is missed.
func TestTornLog(t *testing.T) {
	disk, batches := usedDisk(t)
	log := newestLog(t, disk)
	data := fileData(t, disk, log)
	refused := 0
	for length := len(data); length >= 0; length -= 1 + len(data)/100 {
		cut := func() *vfs.MemFS {
			clone := disk.CrashClone(vfs.CrashCloneCfg{})
			writeFile(t, clone, clone.PathJoin(dir, log), string(data[:length]))
			return clone
		}
		if _, err := readAll(cut()); err != nil {
			refused++
			if !namesFile(err, log) || !strings.Contains(err.Error(), "was cut") || !strings.Contains(err.Error(), "backup") {
				t.Errorf("cut at byte %d: %v, want the file and the remedy", length, err)
			}
		}
		clone := cut()
		remove(t, clone, "SYNCED") // an older version has not written it
		checkNumbered(t, clone, batches-5, batches)
	}
	if refused == 0 {
		t.Error("no cut was refused: the test has lost its point")
	}
}

// TestMissingFile removes each file. Opening must give everything, because a crash may leave
// files that are no longer needed, or an error that names the file.
func TestMissingFile(t *testing.T) {
	disk, _ := usedDisk(t)
	healthy := open(t, journal.Options{FS: disk.CrashClone(vfs.CrashCloneCfg{})})
	want := contents(t, healthy, "")
	mustClose(t, healthy)
	names, err := disk.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	missed := map[string]bool{} // kinds of files
	for _, name := range names {
		if kindOf(name) == "marker" { // TestMissingMarker has them
			continue
		}
		clone := disk.CrashClone(vfs.CrashCloneCfg{})
		if err := clone.Remove(clone.PathJoin(dir, name)); err != nil {
			t.Fatal(err)
		}
		found, err := readAll(clone)
		switch {
		case err == nil && !slices.Equal(found, want):
			t.Errorf("without %s: other contents, and no error", name)
		case err != nil:
			missed[kindOf(name)] = true
			if !namesFile(err, name) {
				t.Errorf("without %s: %v, want an error that names it", name, err)
			}
		}
	}
	for _, kind := range []string{"log", "sst", "blob", "MANIFEST", "JOURNAL"} {
		if !missed[kind] {
			t.Errorf("no %s was missed: the test has lost its point", kind)
		}
	}
}

// namesFile reports whether err names the damaged file, at least by its number or, if Pebble
// reports no more, by its kind.
func namesFile(err error, name string) bool {
	number, _, _ := strings.Cut(name, ".")
	kind := kindOf(name)
	return strings.Contains(err.Error(), number) || kind == "blob" && strings.Contains(err.Error(), "(.blob)") ||
		(kind == "MANIFEST" || kind == "OPTIONS" || kind == "marker") && strings.Contains(err.Error(), kind)
}

func readAll(fs vfs.FS) ([]change, error) {
	j, err := journal.Open(journal.Options{Dir: dir, FS: fs})
	if err != nil {
		return nil, err
	}
	var all []change
	err = j.Scan(nil, func(key, value []byte) error {
		all = append(all, change{string(key), string(value)})
		return nil
	})
	return all, errors.Join(err, j.Close())
}

func kindOf(name string) string {
	for _, kind := range []string{"log", "sst", "blob"} {
		if strings.HasSuffix(name, "."+kind) {
			return kind
		}
	}
	kind, _, _ := strings.Cut(name, "-")
	kind, _, _ = strings.Cut(kind, ".")
	return kind
}

// fileData returns the bytes of a file, to be changed in place.
func fileData(t *testing.T, disk *vfs.MemFS, name string) []byte {
	t.Helper()
	data, err := disk.UnsafeGetFileDataBuffer(disk.PathJoin(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func newestLog(t *testing.T, disk vfs.FS) string {
	t.Helper()
	names, err := disk.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	newest := ""
	for _, name := range names {
		if strings.HasSuffix(name, ".log") && name > newest {
			newest = name
		}
	}
	if newest == "" {
		t.Fatalf("no log in %v", names)
	}
	return newest
}
