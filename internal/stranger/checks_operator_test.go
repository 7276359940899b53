package stranger_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise"
)

// pausesHold holds that no handler starts while its process, or the key of its message, is paused.
func pausesHold(f *facts) (how []string) {
	for p, l := range f.r.processes {
		how = append(how, l.refusals...)
		for _, r := range f.r.runs {
			if r.process != p {
				continue
			}
			for _, key := range []string{"", l.settings.key(r.message)} {
				if l.paused(key, r.began) {
					how = append(how, fmt.Sprintf("process %d started a run of %s at %v, while it was paused (key %q)", p, f.name(r.message), r.began, key))
				}
			}
		}
	}
	return how
}

// paused reports whether the process, or the key, was paused before and at a time.
func (l *life) paused(key string, at time.Duration) (paused bool) {
	for _, s := range l.pauses {
		if s.key == key && (s.at < at || s.at == at && !s.on) {
			paused = s.on
		}
	}
	return paused
}

// pausedWithin reports whether the process was paused at some time between two.
func (l *life) pausedWithin(from, until time.Duration) bool {
	return l.paused("", from) || slices.ContainsFunc(l.pauses, func(s pauseSwitch) bool { return s.key == "" && s.at >= from && s.at <= until })
}

// keysAreApart holds that breakers are those of keys where there are keys, and that one whose messages never meet
// anything unavailable stays closed.
func keysAreApart(f *facts) (how []string) {
	others := len(f.s.Outages) > 0
	for i := range f.s.Messages {
		others = others || slices.ContainsFunc(f.s.Messages[i].Steps, func(s step) bool { return s.Result == unavailable })
	}
	others = others || f.anyResult(timeout)
	look := func(p int, at time.Duration, key string, open bool) {
		v := f.r.processes[p].settings
		switch {
		case (v.Keys == 0) != (key == "") || v.Keys > 0 && !strings.HasPrefix(key, "key"):
			how = append(how, fmt.Sprintf("process %d has a breaker %q at %v, and %d keys", p, key, at, v.Keys))
		case open && !others && v.Keys > 0 && !slices.ContainsFunc(f.s.KeyDown, func(o keyOutage) bool { return v.key(o.Key) == key && o.When.From <= at }):
			how = append(how, fmt.Sprintf("process %d: the breaker %q was not closed at %v, and nothing that its messages need was unavailable", p, key, at))
		}
	}
	for p, l := range f.r.processes {
		for _, e := range l.outages {
			look(p, f.r.since(e.At), e.Key, e.State != reprise.BreakerClosed)
		}
	}
	for _, s := range f.r.samples {
		for _, b := range s.status.Breakers {
			look(s.process, s.at, b.Key, b.State != reprise.BreakerClosed)
		}
	}
	return how
}
