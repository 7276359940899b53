package stack

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/build"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/emulator"
)

// lookEvery is the interval between two looks at the sources. Polling works on every file system,
// also on those of containers and other machines, which send no events; some hundred files cost
// less than a millisecond.
const lookEvery = 300 * time.Millisecond

// watched is the state of a function's sources.
type watched struct {
	seen  uint64 // the fingerprint at the last look
	tried uint64 // the fingerprint at the last build, successful or not
	older string // the folder of the build before
}

// watch builds functions again when their sources have changed and are stable.
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

// look builds function i again if its sources have changed since the build, but not since the
// last look.
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

// rebuild builds function i and replaces it, and reports whether that succeeded; otherwise the
// old function keeps running.
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
		s.say(f.Name, emulator.SourceTrouble, "not replaced, the build before keeps running: %v", err)
		return false
	}
	s.discard(w.older) // its invokes began two builds ago
	w.older = s.built[i].Made
	s.built[i] = built
	s.say(f.Name, emulator.SourcePlatform, "built again in %v: invokes from now on run the new build", time.Since(start).Round(time.Millisecond))
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

// say writes a line of this program into the log.
func (s *Stack) say(function string, source emulator.Source, format string, args ...any) {
	s.cfg.Log(emulator.Line{Time: time.Now(), Function: function, Source: source, Text: fmt.Sprintf(format, args...)})
}

// modified returns when the file was written; zero if it does not exist.
func modified(file string) time.Time {
	info, err := os.Stat(file)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
