// Night searches for mistakes for hours, from seeds that no run before has run, which a change's gate has no time for:
// fleets, machines, fuzzing of what strangers can write, mistakes by rule that no test may miss, and a program that is
// killed under load. Then it makes the checks that the gate leaves out. It ends with a table, and writes what it found
// to a file; with -check it says whether that file permits a release of the commit.
//
//	go run ./internal/night -for 6h -result night.json
//	go run ./internal/night -check -result night.json
package main

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"
)

func main() {
	var c config
	flag.DurationVar(&c.lasting, "for", 6*time.Hour, "how long all searches take together; the checks come on top")
	flag.StringVar(&c.result, "result", "night.json", "the file with what the night found")
	flag.StringVar(&c.strangers, "strangers", "", "the packages to fuzz, with spaces between")
	flag.StringVar(&c.mutated, "mutated", "", "the packages to make mistakes in, with spaces between")
	flag.Uint64Var(&c.start, "start", 0, "the first seed of each search (0: at random)")
	check := flag.Bool("check", false, "search nothing: fail unless the file permits a release of the commit that is checked out")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	work := c.night
	if *check {
		work = c.check
	}
	if err := work(ctx); err != nil {
		stop()
		fmt.Fprintf(os.Stderr, "night: %v\n", err)
		os.Exit(1)
	}
}

// config is what the flags say.
type config struct {
	lasting            time.Duration
	result             string
	strangers, mutated string
	start              uint64
}

// night searches, makes the checks, and prints and writes what was found. It fails if anything broke.
func (c config) night(ctx context.Context) error {
	if c.lasting <= 0 {
		return fmt.Errorf("-for is %v: make it longer than nothing", c.lasting)
	}
	commit, changed, err := checkout(ctx)
	if err != nil {
		return err
	}
	for c.start == 0 {
		c.start = draw()
	}
	dir, err := os.MkdirTemp("", "night-") // it is kept: the logs of what broke are in it
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stdout, "Searching for %v on %s, seeds from %d; logs in %s\n", c.lasting, commit, c.start, dir)
	r := Result{Commit: commit, Changed: changed, Began: time.Now().UTC().Truncate(time.Second), Asked: c.lasting.String(), Start: c.start}
	w := &worker{dir: dir, start: c.start, made: make(map[string]made)}
	all := searches(strings.Fields(c.strangers), strings.Fields(c.mutated))
	for _, s := range all {
		if s.compile != nil {
			s.compile(ctx, w)
		}
	}
	for _, s := range inTurn(all, time.Now().Add(c.lasting)) {
		fmt.Fprintf(os.Stdout, "\n== %s, for %v\n", s.name, s.budget().Round(time.Second))
		r.add(s.search, w.carryOut(ctx, s))
		if ctx.Err() != nil {
			return errors.New("interrupted: nothing is written")
		}
	}
	for _, s := range checks() {
		fmt.Fprintf(os.Stdout, "\n== %s\n", s.name)
		r.add(s, w.once(ctx, s))
		if ctx.Err() != nil {
			return errors.New("interrupted: nothing is written")
		}
	}
	r.Took = time.Since(r.Began).Round(time.Second).String()
	fmt.Fprintf(os.Stdout, "\n%s", r.table())
	if err := r.write(c.result); err != nil {
		return err
	}
	if broke := r.broke(); len(broke) > 0 {
		return fmt.Errorf("%d searches or checks broke; what they print is in %s:\n%s", len(broke), dir, strings.Join(broke, "\n"))
	}
	return os.RemoveAll(dir)
}

// check fails unless the result of a night permits a release of the commit that is checked out.
func (c config) check(ctx context.Context) error {
	commit, _, err := checkout(ctx)
	if err != nil {
		return err
	}
	r, err := read(c.result)
	if err != nil {
		return err
	}
	if err := r.permits(commit, releaseOf(ctx), time.Now()); err != nil {
		return fmt.Errorf("%s: %w", c.result, err)
	}
	fmt.Fprintf(os.Stdout, "A night of %s on %s found nothing that breaks\n", r.Asked, r.Commit)
	return nil
}

// draw returns a random seed, as small as those that a commit gives: so it can be read aloud.
func draw() uint64 {
	var bytes [4]byte
	_, _ = rand.Read(bytes[:]) // never fails
	return uint64(binary.BigEndian.Uint32(bytes[:]))
}
