package journal_test

import (
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/diskfault"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// script is a sequence of batches drawn from a seed, with the contents after each. Every batch
// sets the key of its number, so that the keys show how many batches are there.
type script struct {
	batches [][]change
	synced  []bool
	after   []map[string]string // after[n] has the first n batches
}

const numberKey = "vnumber"

func newScript(random *rand.Rand, batches int) script {
	s := script{after: []map[string]string{{}}}
	var once []string // keys that are set once and then deleted once
	for n := 1; n <= batches; n++ {
		changes := []change{{numberKey, strconv.Itoa(n)}}
		for range 1 + random.IntN(8) {
			changes = append(changes, randomChange(random))
		}
		once = append(once, fmt.Sprintf("o%05d", n))
		changes = append(changes, change{once[len(once)-1], strings.Repeat("x", random.IntN(2<<10))})
		for len(once) > 0 && random.IntN(2) == 0 {
			i := random.IntN(len(once))
			changes = append(changes, change{once[i], goneOnce})
			once = slices.Delete(once, i, i+1)
		}
		s.batches = append(s.batches, changes)
		s.synced = append(s.synced, random.IntN(3) > 0)
		s.after = append(s.after, applied(s.after[n-1], changes))
	}
	return s
}

func randomChange(random *rand.Rand) change {
	key := func() string { return fmt.Sprintf("b%02d", random.IntN(40)) }
	switch random.IntN(10) {
	case 0, 1, 2:
		return change{key(), gone}
	case 3:
		ends := []string{key(), key()}
		slices.Sort(ends)
		return change{ends[0], goneUntil + ends[1]}
	}
	// Some are as small as a message's state, most like a body, and a few so large
	// that tables in memory fill and logs are changed.
	size := []int{20, 1 << 10, 1 << 10, 5 << 10, 40 << 10, 150 << 10}[random.IntN(6)]
	letter := string(rune('a' + random.IntN(26)))
	return change{key(), strings.Repeat(letter, 1+random.IntN(size))}
}

func applied(before map[string]string, changes []change) map[string]string {
	after := maps.Clone(before)
	for _, c := range changes {
		switch {
		case strings.HasPrefix(c.value, goneUntil):
			end := strings.TrimPrefix(c.value, goneUntil)
			maps.DeleteFunc(after, func(key, _ string) bool { return c.key <= key && key < end })
		case c.value == gone || c.value == goneOnce:
			delete(after, c.key)
		default:
			after[c.key] = c.value
		}
	}
	return after
}

// cut is a disk as a crash left it, and what had been promised by then.
type cut struct {
	disk  *vfs.MemFS
	acked int // batches that must be there
	begun int // batches that may be
	where string
}

// cutter crashes disks: it copies them as they may be after a crash, in the midst
// of what happens to their files.
type cutter struct {
	disk  *vfs.MemFS
	share float64 // of the operations at which to cut

	random *rand.Rand // of hook only, which Pebble calls from several goroutines
	turn   chan struct{}
	acked  atomic.Int64
	begun  atomic.Int64
	cuts   []cut
}

func newCutter(disk *vfs.MemFS, seed uint64, share float64) *cutter {
	return &cutter{disk: disk, share: share, random: rand.New(rand.NewPCG(seed, 1)), turn: make(chan struct{}, 1)}
}

func (c *cutter) fs() vfs.FS { return diskfault.Wrap(c.disk, c.hook) }

func (c *cutter) hook(op errorfs.Op) error {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	if op.Kind.ReadOrWrite() == errorfs.OpIsRead || c.random.Float64() >= c.share {
		return nil
	}
	acked := int(c.acked.Load()) // before the copy; what begins is read after it
	disk := c.disk.CrashClone(vfs.CrashCloneCfg{
		UnsyncedDataPercent: []int{0, 0, 30, 70, 100}[c.random.IntN(5)],
		RNG:                 c.random,
	})
	c.cuts = append(c.cuts, cut{disk, acked, int(c.begun.Load()), fmt.Sprintf("op %d on %s", op.Kind, op.Path)})
	return nil
}

// run commits the script to j.
func (c *cutter) run(t *testing.T, j sqsserver.Journal, s script) {
	t.Helper()
	for i, changes := range s.batches {
		c.begun.Store(int64(i + 1))
		if err := commit(j, s.synced[i], changes...); err != nil {
			t.Fatalf("Commit of batch %d: %v", i+1, err)
		}
		if s.synced[i] {
			c.acked.Store(int64(i + 1))
		}
	}
}

// violation opens the files that a crash left, and returns what is wrong with them.
func (c cut) violation(s script, disk vfs.FS) (string, error) {
	var log strings.Builder
	j, err := journal.Open(small(journal.Options{Dir: dir, FS: disk, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))}))
	if err != nil {
		return "", err
	}
	got := map[string]string{}
	if err := j.Scan(nil, func(key, value []byte) error { got[string(key)] = string(value); return nil }); err != nil {
		return "", err
	}
	number, _ := strconv.Atoi(got[numberKey]) // none: 0
	if err := j.Close(); err != nil {
		return "", err
	}
	switch {
	case log.Len() > 0:
		return log.String(), nil
	case number < c.acked:
		return fmt.Sprintf("%d batches are there, %d were acknowledged", number, c.acked), nil
	case number > c.begun:
		return fmt.Sprintf("%d batches are there, %d were begun", number, c.begun), nil
	}
	if diff := cmp.Diff(s.after[number], got); diff != "" {
		return fmt.Sprintf("not what %d batches leave (-want +got):\n%.2000s", number, diff), nil
	}
	return "", nil
}

// small has tables written while batches are committed, and logs changed.
func small(o journal.Options) journal.Options { return journal.WithMemTable(o, 1<<20) }

// crashes is how many histories are cut, and at which share of the changes of the disk.
// The race detector makes every copy of a disk many times as slow, and has seen what
// runs at once after a few: with it TestCrash looks for races, without it for losses.
func crashes() (histories int, share float64) {
	switch {
	case raceDetector:
		return 2, 0.03
	case testing.Short():
		return 5, 0.1
	}
	return 15, 0.1
}

// TestCrash cuts the power at random points of random histories, including those
// of the recovery from the first cut.
func TestCrash(t *testing.T) {
	histories, share := crashes()
	total, again := 0, 0
	for seed := range uint64(histories) {
		s := newScript(rand.New(rand.NewPCG(seed, 0)), 80)
		c := newCutter(vfs.NewCrashableMem(), seed, share)
		j := open(t, small(journal.Options{FS: c.fs()}))
		c.run(t, j, s)
		mustClose(t, j)

		for n, cut := range c.cuts {
			second := newCutter(cut.disk, seed<<16+uint64(n), 0.02)
			second.acked.Store(int64(cut.acked))
			second.begun.Store(int64(cut.begun))
			check(t, seed, cut, s, second.fs())
			for _, cut := range second.cuts {
				check(t, seed, cut, s, cut.disk)
			}
			again += len(second.cuts)
		}
		total += len(c.cuts)
	}
	t.Logf("%d crashes, and %d more during recovery", total, again)
	if float64(total) < 100*share*float64(histories) || again == 0 {
		t.Errorf("only %d crashes and %d during recovery: the test has lost its point", total, again)
	}
}

func check(t *testing.T, seed uint64, cut cut, s script, disk vfs.FS) {
	t.Helper()
	wrong, err := cut.violation(s, disk)
	if err != nil {
		wrong = err.Error()
	}
	if wrong != "" {
		t.Errorf("seed %d, crash at %s: %s", seed, cut.where, wrong)
	}
}

// TestCrashWithoutSync shows that TestCrash would see a lost sync.
func TestCrashWithoutSync(t *testing.T) {
	violations := 0
	for seed := range uint64(3) {
		s := newScript(rand.New(rand.NewPCG(seed, 0)), 80)
		c := newCutter(vfs.NewCrashableMem(), seed, 0.05)
		j := open(t, small(journal.Options{FS: c.fs(), SyncInterval: time.Hour}))
		c.run(t, j, s)
		mustClose(t, j)
		for _, cut := range c.cuts {
			wrong, err := cut.violation(s, cut.disk)
			if err != nil {
				t.Fatalf("seed %d, crash at %s: %v", seed, cut.where, err)
			}
			if wrong != "" {
				violations++
				if !strings.Contains(wrong, "were acknowledged") { // but a prefix, and whole
					t.Errorf("seed %d, crash at %s: %s", seed, cut.where, wrong)
				}
			}
		}
	}
	if violations == 0 {
		t.Error("no crash lost anything although nothing was synced: TestCrash would not notice")
	}
}

// TestRecoveredIsDurable cuts the power twice: what the first recovery has shown,
// acknowledged or not, may have been acted upon, and must not be gone later.
func TestRecoveredIsDurable(t *testing.T) {
	s := newScript(rand.New(rand.NewPCG(1, 0)), 80)
	c := newCutter(vfs.NewCrashableMem(), 1, 0.05)
	j := open(t, small(journal.Options{FS: c.fs(), SyncInterval: time.Hour}))
	c.run(t, j, s)
	mustClose(t, j)
	ahead := 0
	for _, cut := range c.cuts {
		first := open(t, journal.Options{FS: cut.disk})
		shown := contents(t, first, "")
		second := open(t, journal.Options{FS: cut.disk.CrashClone(vfs.CrashCloneCfg{})})
		checkContents(t, second, "", shown...)
		mustClose(t, second)
		mustClose(t, first)
		if len(shown) > 0 {
			ahead++
		}
	}
	if ahead == 0 {
		t.Error("nothing was recovered: the test has lost its point")
	}
}

// TestNoAcknowledgementBeforeSync holds a sync of the log: Commit must not return.
func TestNoAcknowledgementBeforeSync(t *testing.T) {
	var armed, returned atomic.Bool
	syncing, release := make(chan struct{}), make(chan struct{})
	fs := diskfault.Wrap(vfs.NewMem(), func(op errorfs.Op) error {
		if isSync(op) && strings.HasSuffix(op.Path, ".log") && armed.CompareAndSwap(true, false) {
			close(syncing)
			<-release
			if returned.Load() {
				t.Error("Commit returned before its sync")
			}
		}
		return nil
	})
	j := open(t, journal.Options{FS: fs})
	armed.Store(true)
	done := make(chan error)
	go func() {
		err := commit(j, true, change{"a", "1"})
		returned.Store(true)
		done <- err
	}()
	select {
	case <-syncing:
	case <-done:
		t.Fatal("Commit returned without a sync")
	}
	for range 100 { // a commit that does not wait for the sync would have returned
		time.Sleep(100 * time.Microsecond)
	}
	close(release)
	if err := <-done; err != nil {
		t.Errorf("Commit: %v", err)
	}
	mustClose(t, j)
}

func isSync(op errorfs.Op) bool {
	return op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
}
