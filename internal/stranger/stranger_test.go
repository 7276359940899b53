package stranger_test

import (
	"flag"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/internal/race"
)

var (
	seeds = flag.Int("stranger.seeds", race.Fewer(300, 15), "how many scenarios TestStranger runs, each from a seed of its own")
	from  = flag.Uint64("stranger.from", 1, "the first seed of the scenarios")
	tries = flag.Int("stranger.tries", 400, "how many smaller scenarios are run to find a small one that breaks the same promise")
	only  = flag.String("stranger.only", "", "the name of a check: the others are not made")
)

// TestStranger runs scenarios that nobody chose, and holds what a user sees against what the documents promise:
// see checks.
func TestStranger(t *testing.T) {
	began := time.Now()
	var taken atomic.Int64
	n := *seeds
	if testing.Short() {
		n = min(n, 20)
	}
	t.Run("seeds", func(t *testing.T) {
		for range runtime.GOMAXPROCS(0) {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for i := taken.Add(1); i <= int64(n); i = taken.Add(1) {
					tryOut(t, *from+uint64(i-1))
				}
			})
		}
	})
	took := time.Since(began)
	fmt.Printf("TestStranger: %d seeds from %d in %.1f s: %.1f a second\n", n, *from, took.Seconds(), float64(n)/took.Seconds())
}

// tryOut runs the scenario of a seed, and reports what it breaks with the smallest scenario that still does.
func tryOut(t *testing.T, seed uint64) {
	s := draw(seed)
	if *show {
		fmt.Println(testSource(seed, s, ""))
		return
	}
	slow := time.AfterFunc(time.Minute, func() { fmt.Printf("TestStranger: seed %d has been running for a minute\n", seed) })
	all := run1(t, s)
	slow.Stop()
	for _, b := range all {
		if *only != "" && b.check.name != *only {
			continue
		}
		small, how := s, b.how
		if *tries > 0 {
			small, how = shrink(t, s, b, *tries)
		}
		t.Errorf("seed %d breaks %q:\n\t%s\n%s\n\nA small scenario that breaks it too, %s:\n\n%s\nAgain: go test ./internal/stranger -run '^TestStranger$' -stranger.from=%d -stranger.seeds=1",
			seed, b.check.name, b.check.says, list(b.how), list(how), testSource(seed, small, b.check.name), seed)
	}
}

// run1 runs a scenario, and returns the promises that it breaks.
func run1(t *testing.T, s scenario) []broken {
	return judge(&s, live(t, s))
}

// list is the first few of many lines.
func list(how []string) string {
	const most = 5
	text := "\t- " + strings.Join(how[:min(len(how), most)], "\n\t- ")
	if more := len(how) - most; more > 0 {
		text += fmt.Sprintf("\n\t  and %d more", more)
	}
	return text
}

// replay runs a scenario that was printed, and reports what it breaks.
func replay(t *testing.T, s scenario) {
	for _, b := range run1(t, s) {
		t.Errorf("it breaks %q:\n\t%s\n%s", b.check.name, b.check.says, list(b.how))
	}
}

var show = flag.Bool("stranger.show", false, "print the scenarios instead of running them")
