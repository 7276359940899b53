package journal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// get returns those of keys that j has, and what ended the sequence early.
func get(j sqsserver.Journal, keys ...string) (found []change, err error) {
	asked := make([][]byte, len(keys))
	for i, key := range keys {
		asked[i] = []byte(key)
	}
	next := 0
	for value, err := range j.Get(asked) {
		switch {
		case next == len(keys):
			return found, fmt.Errorf("more results than the %d keys", next)
		case err == nil:
			found = append(found, change{keys[next], string(value)})
		case !errors.Is(err, sqsserver.ErrNotInJournal):
			return found, err
		case !strings.Contains(err.Error(), fmt.Sprintf("%q", keys[next])):
			return found, fmt.Errorf("key %q is missing, and the error is of another: %w", keys[next], err)
		}
		next++
	}
	if next != len(keys) {
		return found, fmt.Errorf("%d results for %d keys", next, len(keys))
	}
	return found, nil
}

// getOne returns the value of one key.
func getOne(j sqsserver.Journal, key string) (string, error) {
	for value, err := range j.Get([][]byte{[]byte(key)}) {
		return string(value), err
	}
	return "", errors.New("Get has returned nothing")
}

// TestGet reads keys, some of which never existed or no longer exist, from a journal with its
// records in memory, in tables, and beside them.
func TestGet(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 0))
	fs := vfs.NewMem()
	want := map[string]string{}
	const keys = 600
	key := func(n int) string { return fmt.Sprintf("b%04d", n) }
	j := open(t, journal.Options{FS: fs})
	for round := range 4 {
		for n := round; n < keys; n += 4 {
			if n%5 == 0 {
				continue // never set
			}
			want[key(n)] = strings.Repeat(string(rune('a'+n%26)), random.IntN(3000))
			mustCommit(t, j, change{key(n), want[key(n)]})
			if n%7 == 0 {
				delete(want, key(n))
				mustCommit(t, j, change{key(n), goneOnce})
			}
		}
		if round < 3 {
			mustClose(t, j) // which writes tables
			j = open(t, journal.Options{FS: fs})
		}
	}
	mustCommit(t, j, change{key(100), goneUntil + key(200)})
	for n := 100; n < 200; n++ {
		delete(want, key(n))
	}
	if len(want) == 0 {
		t.Fatal("nothing is left")
	}
	for range 200 {
		var asked []string
		var there []change
		few := 1 + random.IntN(30) // one in so many keys
		for n := range keys {
			if random.IntN(few) > 0 {
				continue
			}
			asked = append(asked, key(n))
			if value, found := want[key(n)]; found {
				there = append(there, change{key(n), value})
			}
		}
		got, err := get(j, asked...)
		if diff := cmp.Diff(there, got, cmp.AllowUnexported(change{})); err != nil || diff != "" {
			t.Fatalf("Get(%q): %v, (-want +got):\n%s", asked, err, diff)
		}
	}
	mustClose(t, j)
}

// TestGetUntilBreak: a loop that breaks leaves nothing open, which Close would report.
func TestGetUntilBreak(t *testing.T) {
	j := open(t, journal.Options{FS: vfs.NewMem()})
	mustCommit(t, j, change{"b1", "1"}, change{"b2", "2"})
	for value, err := range j.Get([][]byte{[]byte("b1"), []byte("b2")}) {
		if err != nil || string(value) != "1" {
			t.Errorf("Get = %q, %v", value, err)
		}
		break
	}
	if found, err := get(j); found != nil || err != nil {
		t.Errorf("Get of no key = %v, %v", found, err)
	}
	mustClose(t, j)
}

// TestGetSeesWhatWasCommitted: a sequence has the commits before the beginning of each range
// over it, and none that are made meanwhile.
func TestGetSeesWhatWasCommitted(t *testing.T) {
	j := open(t, journal.Options{FS: vfs.NewMem()})
	values := j.Get([][]byte{[]byte("b1"), []byte("b2")})
	mustCommit(t, j, change{"b1", "1"}, change{"b2", "2"})
	for _, want := range []string{"1 2", "1 gone"} {
		var got []string
		for value, err := range values {
			if err != nil {
				value = []byte("gone")
			}
			got = append(got, string(value))
			if len(got) == 1 && want == "1 2" {
				mustCommit(t, j, change{"b2", gone})
			}
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("values (-want +got):\n%s", diff)
		}
	}
	mustClose(t, j)
}

// checkGet reads keys from a damaged journal. If it fails, the values before must be the first
// of those that are there; if it does not, they must be all of them.
func checkGet(t *testing.T, fs vfs.FS, want []change) (failure error) {
	t.Helper()
	j, err := journal.Open(journal.Options{Dir: dir, FS: fs})
	if err != nil {
		return err
	}
	keys := make([]string, len(want))
	for i, c := range want {
		keys[i] = c.key
	}
	found, err := get(j, keys...)
	if err == nil && len(found) != len(want) || len(found) > len(want) || !slices.Equal(found, want[:len(found)]) {
		t.Errorf("Get has found other values (%d of %d), and the error %v", len(found), len(want), err)
	}
	return errors.Join(err, j.Close())
}
