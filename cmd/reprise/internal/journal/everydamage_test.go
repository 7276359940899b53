package journal_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprise-sqs/reprise/sqsserver"
)

var (
	damageSeeds = flag.Int("damage.seeds", 2, "how many directories TestEveryDamage writes and damages, each from a seed of its own")
	damageFrom  = flag.Uint64("damage.from", 1, "the first of the seeds")
)

// TestEveryDamage damages every file of a server's data directory: cuts it at any length, flips any bit,
// removes it, repeats it under another number, swaps it with one of its kind, puts another directory's in its
// place. A server must then refuse the directory, with the file's name, or serve exactly what was acknowledged.
// Only the newest log may end early, since a crash may have come: then it is logged, unless the log was cut
// between two batches, which nobody can notice. Each seed has a part of the lengths and bits, of larger
// files a small one.
func TestEveryDamage(t *testing.T) {
	counts := map[string]int{}
	all := 0
	missing := func() (results []string) {
		for _, result := range []string{refused, unchanged, shortened, unnoticed} {
			if counts[result] == 0 && *damageSeeds > 1 {
				results = append(results, result)
			}
		}
		return results
	}
	const more = 6 // on a busy machine the newest log of a directory may have nothing in it
	for i := 0; i < *damageSeeds || len(missing()) > 0 && i < *damageSeeds+more; i++ {
		seed := *damageFrom + uint64(i)
		d := damager{t: t, seed: seed, directory: writeDirectory(t, seed), other: writeDirectory(t, seed+1), random: rand.New(rand.NewPCG(seed, 0)), counts: counts}
		d.newest = newestLog(t, d.disk)
		for _, name := range list(t, d.disk) {
			d.cuts(name)
			d.flips(name)
			d.others(name)
		}
		all += d.tried
		if t.Failed() {
			t.Fatalf("again: go test -run '^TestEveryDamage$' ./cmd/reprise/internal/journal -damage.seeds=1 -damage.from=%d", seed)
		}
	}
	fmt.Fprintf(os.Stdout, "TestEveryDamage: %d seeds, %d damages\n", *damageSeeds, all)
	for _, result := range missing() {
		t.Errorf("nothing was %s: the test has lost its point: %v", result, counts)
	}
	t.Log(counts)
}

const (
	refused   = "refused"
	unchanged = "unchanged"
	shortened = "shortened, and logged"
	unnoticed = "cut between two batches"
)

// damager damages copies of a directory.
type damager struct {
	directory
	t      *testing.T
	seed   uint64
	other  directory
	random *rand.Rand
	newest string // log
	counts map[string]int
	tried  int
}

// cuts cuts the file: a small one at each length, others at some, the newest log between its batches, too.
func (d *damager) cuts(name string) {
	data := fileData(d.t, d.disk, name)
	var lengths []int
	for length := 0; length < len(data); length += d.step(len(data), 1) {
		lengths = append(lengths, length)
	}
	if name == d.newest {
		lengths = append(lengths, chunkEnds(data)...)
	}
	for _, length := range lengths {
		if length >= len(data) {
			continue
		}
		clone := d.disk.CrashClone(vfs.CrashCloneCfg{})
		writeFile(d.t, clone, clone.PathJoin(dir, name), string(data[:length]))
		between := name == d.newest && slices.Contains(chunkEnds(data), length)
		d.check(fmt.Sprintf("%s cut at byte %d of %d", name, length, len(data)), clone, between, name)
	}
}

// flips flips bits of the file.
func (d *damager) flips(name string) {
	data := fileData(d.t, d.disk, name)
	for bit := d.random.IntN(8); bit < 8*len(data); bit += d.step(len(data), 4) {
		clone := d.disk.CrashClone(vfs.CrashCloneCfg{})
		fileData(d.t, clone, name)[bit/8] ^= 1 << (bit % 8)
		d.check(fmt.Sprintf("%s with bit %d of byte %d of %d flipped", name, bit%8, bit/8, len(data)), clone, false, name)
	}
}

// step returns how far the next of the lengths or bits is that are tried, on average a multiple of mean.
func (d *damager) step(size, mean int) int {
	if size > 1000 {
		mean *= 1 + size/80
	}
	if raceDetector {
		mean *= 10 // it looks for races: nothing runs at once here but reading
	}
	return 1 + d.random.IntN(2*mean-1)
}

// others are the damages of whole files.
func (d *damager) others(name string) {
	clone := d.disk.CrashClone(vfs.CrashCloneCfg{})
	remove(d.t, clone, name)
	d.check(name+" removed", clone, name == d.newest, name)

	data := string(fileData(d.t, d.disk, name))
	if again := repeatedName(name); again != "" && !slices.Contains(list(d.t, d.disk), again) {
		clone := d.disk.CrashClone(vfs.CrashCloneCfg{})
		writeFile(d.t, clone, clone.PathJoin(dir, again), data)
		d.check(name+" repeated as "+again, clone, false, name, again)
	}
	for _, other := range list(d.t, d.disk) {
		if kindOf(other) == kindOf(name) && other > name {
			clone := d.disk.CrashClone(vfs.CrashCloneCfg{})
			writeFile(d.t, clone, clone.PathJoin(dir, name), string(fileData(d.t, d.disk, other)))
			writeFile(d.t, clone, clone.PathJoin(dir, other), data)
			d.check(name+" swapped with "+other, clone, false, name, other)
		}
	}
	for _, foreign := range list(d.t, d.other.disk) {
		if kindOf(foreign) == kindOf(name) {
			clone := d.disk.CrashClone(vfs.CrashCloneCfg{})
			writeFile(d.t, clone, clone.PathJoin(dir, name), string(fileData(d.t, d.other.disk, foreign)))
			d.check(name+" replaced by "+foreign+" of another directory", clone, false, name)
		}
	}
}

// repeatedName returns the file's name with the next number, "" if it has none.
func repeatedName(name string) string {
	digits, rest, _ := strings.Cut(name, ".")
	number, err := strconv.Atoi(digits)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%06d.%s", number+1, rest)
}

// check opens a server on the disk. between says that the newest log may end early without a word.
func (d *damager) check(what string, disk *vfs.MemFS, between bool, names ...string) {
	d.t.Helper()
	d.tried++
	s, log, err := tryServer(disk, d.seed+9)
	if err != nil {
		d.checkRefusal(what, err, names)
		return
	}
	got, err := readHoldings(d.t.Context(), s)
	if err != nil {
		d.checkRefusal(what, err, names)
		_ = s.Close() // a damaged journal may not close well
		return
	}
	said := slices.ContainsFunc(log.all(), func(line string) bool {
		return strings.Contains(line, names[0]) && strings.Contains(line, "batches=")
	})
	isEarlier := slices.ContainsFunc(d.before, func(b holdings) bool { return slices.Equal(b, got) })
	switch {
	case slices.Equal(got, d.want):
		d.counts[unchanged]++
		if d.random.IntN(20) > 0 {
			_ = s.Close() // tried below for others
			return
		}
	case names[0] != d.newest || !isEarlier:
		d.t.Errorf("seed %d, %s: the server has other contents, and said %q:\n%s", d.seed, what, log.all(), difference(d.want, got))
	case said:
		d.counts[shortened]++
	case between:
		d.counts[unnoticed]++
	default:
		d.t.Errorf("seed %d, %s: the end of the log is lost, and the server said %q", d.seed, what, log.all())
	}
	d.checkWorks(what, s, disk)
}

func (d *damager) checkRefusal(what string, err error, names []string) {
	d.t.Helper()
	d.counts[refused]++
	text := err.Error()
	remedied := strings.Contains(text, "backup") || strings.Contains(text, "version of reprise") || strings.Contains(text, "it is not a journal")
	if !strings.Contains(text, dir) || !remedied || !slices.ContainsFunc(names, func(name string) bool { return namesFile(err, name) }) {
		d.t.Errorf("seed %d, %s: %v\nwant the directory, the file, and what to do", d.seed, what, err)
	}
}

// checkWorks uses the server of a damaged directory, and opens it again: the second time there is nothing to
// say, and everything is there.
func (d *damager) checkWorks(what string, s *sqsserver.Server, disk *vfs.MemFS) {
	d.t.Helper()
	r := &driver{Server: s, t: d.t}
	r.create("later", nil)
	r.send("later", "", "sent later")
	if m := r.receive("later", 60); m.Body != "sent later" {
		d.t.Errorf("seed %d, %s: received %q", d.seed, what, m.Body)
	} else {
		r.delete("later", m)
	}
	r.send("later", "", "sent again")
	before := holdingsOf(d.t, s)
	if err := s.Close(); err != nil {
		d.t.Errorf("seed %d, %s: closing: %v", d.seed, what, err)
	}
	s, log, err := tryServer(disk, d.seed+10)
	if err != nil {
		d.t.Errorf("seed %d, %s: opening it again: %v", d.seed, what, err)
		return
	}
	if after := holdingsOf(d.t, s); !slices.Equal(before, after) || len(log.all()) > 0 {
		d.t.Errorf("seed %d, %s: opened again, the server has (said %q):\n%s", d.seed, what, log.all(), difference(before, after))
	}
	r.must(s.Close())
}

// difference returns the lines that are in one only.
func difference(want, got holdings) string {
	var lines []string
	for _, line := range want {
		if !slices.Contains(got, line) {
			lines = append(lines, fmt.Sprintf("- %.120s", line))
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			lines = append(lines, fmt.Sprintf("+ %.120s", line))
		}
	}
	return strings.Join(lines, "\n")
}

// chunkEnds returns where the chunks of a log end, which is less than a block: in a short log, each is a batch.
func chunkEnds(data []byte) []int {
	ends := []int{0}
	for at := 0; at+11 <= len(data); {
		header := 11
		if data[at+6] > 8 {
			header = 19
		}
		at += header + int(binary.LittleEndian.Uint16(data[at+4:]))
		ends = append(ends, at)
	}
	return ends
}
