package world_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/internal/world"
)

// word is an act, which is noted.
type word string

func (w word) String() string { return string(w) }

var errBad = errors.New("bad has happened")

// wordy is a simulation that notes its acts, one in a second, and fails after a "bad" one.
type wordy struct{ loop *world.Loop }

func (w wordy) Loop() *world.Loop { return w.loop }

func (w wordy) Live(acts []word) error {
	for i, a := range acts {
		w.loop.After(time.Duration(i)*time.Second, "test", func() { w.loop.Note("somebody", string(a), int64(i)) })
	}
	if err := w.loop.Run(time.Hour); err != nil {
		return err
	}
	if slices.Contains(acts, "bad") {
		return errBad
	}
	return nil
}

// wordySeeds are simulations with these acts, and more for the seed bad.
func wordySeeds(bad uint64, more ...word) (seeds world.Seeds[word], made func() []uint64) {
	var mu sync.Mutex
	var all []uint64
	return world.Seeds[word]{
			Make: func(seed uint64) world.Simulation[word] {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, seed)
				return wordy{world.NewLoop(epoch, seed)}
			},
			Acts: func(seed uint64) []word {
				if seed == bad {
					return append([]word{"wakes"}, more...)
				}
				return []word{"wakes", "eats", "eats"}
			},
		}, func() []uint64 {
			slices.Sort(all)
			return all
		}
}

// TestSeedsRunOnceEach: all from the first on, and what they note is summed up.
func TestSeedsRunOnceEach(t *testing.T) {
	seeds, made := wordySeeds(0)
	found := seeds.Run(10, 5)
	if want := []uint64{10, 11, 12, 13, 14}; !slices.Equal(made(), want) || found.Seeds != 5 || len(found.Failed) != 0 {
		t.Errorf("%v have run, %d failed %v; want %v", made(), found.Seeds, found.Failed, want)
	}
	if diff := cmp.Diff(map[string]int{"wakes": 5, "eats": 10}, found.Noted); diff != "" {
		t.Errorf("noted (-want +got):\n%s", diff)
	}
	if missing := found.Missing([]string{"eats", "sleeps", "wakes", "reads"}); !slices.Equal(missing, []string{"sleeps", "reads"}) {
		t.Errorf("missing are %v", missing)
	}
	if found.Took <= 0 {
		t.Errorf("it took %v", found.Took)
	}
	if text := (world.Findings{Seeds: 30, Took: 2 * time.Second}).String(); text != "30 seeds in 2.0 s, 15 a second" {
		t.Error(text)
	}
}

func TestFailingSeedIsNamed(t *testing.T) {
	seeds, _ := wordySeeds(7, "bad")
	if found := seeds.Run(7, 1); !slices.Equal(found.Failed, []uint64{7}) || found.Seeds != 1 || len(found.Noted) != 0 {
		t.Errorf("%+v, want the seed 7 as failed", found)
	}
	if _, err := seeds.Trace(7); !errors.Is(err, errBad) {
		t.Errorf("traced with %v", err)
	}
}

// TestStory: the acts without which the seed does not fail, what happens in them, and how it ends.
func TestStory(t *testing.T) {
	seeds, _ := wordySeeds(7, "eats", "bad", "eats")
	story := seeds.Story(7)
	want := world.Story[word]{Acts: []word{"bad"}, Lines: []string{"            0s somebody bad 0"}, Err: errBad}
	if diff := cmp.Diff(want, story, cmp.Comparer(func(a, b error) bool { return errors.Is(a, b) })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if want := "bad\n            0s somebody bad 0\nbad has happened\n"; story.String() != want {
		t.Errorf("%s\nwant\n%s", story, want)
	}
	for lines, first := range map[int]string{100: "line 0", 101: "(1 lines before)\nline 1"} {
		var long world.Story[word]
		for i := range lines {
			long.Lines = append(long.Lines, fmt.Sprint("line ", i))
		}
		if text := long.String(); !strings.HasPrefix(text, first+"\n") || !strings.Contains(text, fmt.Sprintf("line %d\n", lines-1)) {
			t.Errorf("of %d lines is shown\n%s", lines, text)
		}
	}
}

// TestWhatCannotHappenCostsNoDraw: so a fault that is never injected leaves all else as it was.
func TestWhatCannotHappenCostsNoDraw(t *testing.T) {
	a, b := world.NewLoop(epoch, 1), world.NewLoop(epoch, 1)
	if a.Chance(0) || a.Random.Uint64() != b.Random.Uint64() {
		t.Error("a chance of 0 changes what is drawn next")
	}
}

// TestPasses: a link that is cut off, or on which every request is lost or refused, lets none through.
func TestPasses(t *testing.T) {
	for name, faults := range map[string]world.Faults{
		"": {}, "requests are lost": {LoseRequest: 1}, "replies are lost": {LoseReply: 1}, "throttled": {Throttle: 1}, "failed": {Fail: 1},
	} {
		p := world.NewLoop(epoch, 1).Start("p", 0, 0)
		k := p.NewLink(world.Latency{}, time.Minute)
		k.Faults = map[world.Action]world.Faults{world.Send: faults}
		if k.Passes(world.Send) != (name == "") || !k.Passes(world.Delete) {
			t.Errorf("%q: a send passes: %t, a delete: %t", name, k.Passes(world.Send), k.Passes(world.Delete))
		}
		p.CutOff(time.Second)
		if k.Passes(world.Delete) {
			t.Errorf("%q: something passes a link that is cut off", name)
		}
	}
}
