package stack

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/build"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/emulator"
)

// lookEvery is how often sources are looked at. Looking works on every file system,
// those of containers and of other machines too, which tell nobody of changes; some
// hundred files cost less than a millisecond.
const lookEvery = 300 * time.Millisecond

// watched is what is remembered of a function's sources.
type watched struct {
	seen  uint64 // the fingerprint at the last look
	tried uint64 // the one of the last build, whether it succeeded or not
	older string // what was made for the build before
}

// watch builds functions anew when their sources have changed and stopped changing.
func (s *Stack) watch(ctx context.Context) {
	functions := make([]watched, len(s.built))
	for i := range functions {
		now := s.built[i].Fingerprint
		functions[i] = watched{seen: now, tried: now}
	}
	template := modified(s.cfg.File)
	for ticker := time.NewTicker(lookEvery); ; {
		select {
		case <-ctx.Done():
			ticker.Stop()
			return
		case <-ticker.C:
		}
		for i := range functions {
			s.look(ctx, i, &functions[i])
		}
		if now := modified(s.cfg.File); !now.Equal(template) {
			template = now
			s.say("", emulator.SourceTrouble, "%s has changed: stop and start again to run it as it is now", s.cfg.File)
		}
	}
}

// look builds function i anew if its sources have changed since they were built, and
// not since the last look.
func (s *Stack) look(ctx context.Context, i int, w *watched) {
	now := build.Fingerprint(s.built[i].Sources)
	stable := now == w.seen
	w.seen = now
	if now == w.tried || !stable {
		return
	}
	w.tried = now
	if s.rebuild(ctx, i, w) {
		w.seen, w.tried = s.built[i].Fingerprint, s.built[i].Fingerprint
	}
}

// rebuild builds function i and replaces it, and reports whether it could: if not,
// the function goes on as it was.
func (s *Stack) rebuild(ctx context.Context, i int, w *watched) bool {
	f := &s.cfg.Template.Functions[i]
	start := time.Now()
	built, err := s.builder.Build(ctx, f)
	if ctx.Err() != nil {
		return false
	}
	if err == nil {
		err = s.lambda.Replace(runnable(f, built))
	}
	if err != nil {
		s.say(f.Name, emulator.SourceTrouble, "not replaced, the one before goes on: %v", err)
		return false
	}
	s.discard(w.older) // all of its invokes began two builds ago
	w.older = s.built[i].Made
	s.built[i] = built
	s.say(f.Name, emulator.SourcePlatform, "built anew in %v: invokes from now on run it", time.Since(start).Round(time.Millisecond))
	return true
}

// discard removes what was made for an earlier build.
func (s *Stack) discard(dir string) {
	if dir == "" {
		return
	}
	if err := os.RemoveAll(dir); err != nil {
		s.say("", emulator.SourceTrouble, "an earlier build is left behind: %v", err)
	}
}

// say writes a line of our own into the log.
func (s *Stack) say(function string, source emulator.Source, format string, args ...any) {
	s.cfg.Log(emulator.Line{Time: time.Now(), Function: function, Source: source, Text: fmt.Sprintf(format, args...)})
}

// modified is when the file was written; zero if it is not there.
func modified(file string) time.Time {
	info, err := os.Stat(file)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
