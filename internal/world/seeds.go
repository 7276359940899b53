package world

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Simulation is something that lives in a [Loop] and to which acts of the type A happen.
type Simulation[A any] interface {
	Loop() *Loop
	// Live runs the simulation through acts to its end, once. It returns what was wrong.
	Live(acts []A) error
}

// Seeds are the simulations of one kind, each made from a seed.
type Seeds[A fmt.Stringer] struct {
	// Make makes the simulation of a seed. Each call makes another, equal one.
	Make func(seed uint64) Simulation[A]
	// Acts draws what happens to it.
	Acts func(seed uint64) []A
}

// Findings are what many simulations have found.
type Findings struct {
	Seeds  uint64         // how many have run
	Took   time.Duration  // by the clock of the system
	Noted  map[string]int // the sum of Loop.Noted over all that did not fail
	Failed []uint64       // seeds: no other is begun on a processor after one that fails
}

// Run runs n simulations, from the seed from on, on all processors.
func (s Seeds[A]) Run(from, n uint64) Findings {
	began := time.Now()
	found := Findings{Noted: make(map[string]int)}
	var mu sync.Mutex
	var taken atomic.Uint64
	var working sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		working.Go(func() {
			for i := taken.Add(1) - 1; i < n; i = taken.Add(1) - 1 {
				simulation := s.Make(from + i)
				err := simulation.Live(s.Acts(from + i))
				mu.Lock()
				found.Seeds++
				if err != nil {
					found.Failed = append(found.Failed, from+i)
					mu.Unlock()
					return
				}
				for what, times := range simulation.Loop().Noted() {
					found.Noted[what] += times
				}
				mu.Unlock()
			}
		})
	}
	working.Wait()
	found.Took = time.Since(began)
	return found
}

// String returns how many simulations have run, and how fast.
func (f Findings) String() string {
	return fmt.Sprintf("%d seeds in %.1f s, %.0f a second", f.Seeds, f.Took.Seconds(), float64(f.Seeds)/f.Took.Seconds())
}

// Missing returns which of paths, in the words of [Loop.Note], no simulation has taken.
func (f Findings) Missing(paths []string) (missing []string) {
	for _, path := range paths {
		if f.Noted[path] == 0 {
			missing = append(missing, path)
		}
	}
	return missing
}

// Trace runs the simulation of a seed and returns the hash of all that happened.
func (s Seeds[A]) Trace(seed uint64) (uint64, error) {
	simulation := s.Make(seed)
	err := simulation.Live(s.Acts(seed))
	return simulation.Loop().Trace(), err
}

// Story is what happens in a simulation that fails, after as few acts as possible.
type Story[A fmt.Stringer] struct {
	Acts  []A
	Lines []string // what was noted, with its time
	Err   error    // what is wrong then; nil: the simulation does not fail
}

// Story returns the story of a seed whose simulation fails.
func (s Seeds[A]) Story(seed uint64) Story[A] {
	story := Story[A]{Acts: Shrink(s.Acts(seed), func(some []A) bool { return s.Make(seed).Live(some) != nil })}
	simulation := s.Make(seed)
	simulation.Loop().Listen(func(at time.Duration, what string) {
		story.Lines = append(story.Lines, fmt.Sprintf("%14v %s", at.Round(time.Millisecond), what))
	})
	story.Err = simulation.Live(story.Acts)
	return story
}

// mostLines are shown of a story: its end.
const mostLines = 100

// String returns the acts, the last lines and the error.
func (s Story[A]) String() string {
	var text strings.Builder
	for _, act := range s.Acts {
		fmt.Fprintln(&text, act)
	}
	lines := s.Lines
	if before := len(lines) - mostLines; before > 0 {
		fmt.Fprintf(&text, "(%d lines before)\n", before)
		lines = lines[before:]
	}
	for _, line := range lines {
		fmt.Fprintln(&text, line)
	}
	fmt.Fprintln(&text, s.Err)
	return text.String()
}
