package stranger_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// plain is a scenario in which nothing goes wrong but a message that fails twice, and one that is permanently refused.
func plain() scenario {
	return scenario{
		Queue:     queueSettings{MaxReceives: 5},
		Versions:  []settings{{Retry: "constant(10s) jitter=none attempts=3", AfterDelete: true, Rate: 100, HandlerTimeout: time.Minute, OutageOff: true}},
		Processes: []process{{}},
		Messages: []message{
			{Steps: []step{{Takes: time.Second}}},
			{Steps: []step{{Result: fail}, {Result: fail}, {}}},
			{Steps: []step{{Result: permanent}}},
		},
	}
}

// TestChecksCanFail forges records: for each check one that breaks the promise that it holds.
func TestChecksCanFail(t *testing.T) {
	forgeries := map[string]func(s *scenario, r *record){
		"accepted": func(_ *scenario, r *record) { r.refused = errors.New("refused") },
		"joined":   func(_ *scenario, r *record) { r.stuck = "deadlock" },
		"not lost": func(_ *scenario, r *record) {
			r.runs = slices.DeleteFunc(r.runs, func(r *run) bool { return r.message == 0 })
		},
		"ends in time": func(_ *scenario, r *record) {
			r.inTime = false
			r.left = []sqsserver.MessageInfo{{ID: "x", Body: "0:", State: "visible"}}
		},
		"once in calm":     func(_ *scenario, r *record) { again := *r.runs[0]; r.runs = append(r.runs, &again) },
		"attempts in calm": func(_ *scenario, r *record) { last(r, 1).attempt = 7 },
		"copies":           func(_ *scenario, r *record) { r.transits = []transit{{message: 0, count: 3}} },
		"innocent": func(_ *scenario, r *record) {
			r.letters = append(r.letters, sqsserver.MessageInfo{ID: "y", Body: "0:"})
			r.readings["y"] = reading{story: reprise.Story{Reason: "attempts"}}
		},
		"story": func(_ *scenario, r *record) {
			told := r.readings[r.letters[0].ID]
			told.story.Attempts = 2
			r.readings[r.letters[0].ID] = told
		},
		"content":       func(_ *scenario, r *record) { r.runs[0].contentOK = false },
		"never early":   func(_ *scenario, r *record) { last(r, 1).began -= time.Second },
		"schedule":      func(_ *scenario, r *record) { r.attempts[slices.IndexFunc(r.attempts, retried)].due++ },
		"one at a time": func(_ *scenario, r *record) { again := *last(r, 0); again.nth++; r.runs = append(r.runs, &again) },
		"concurrency": func(_ *scenario, r *record) {
			for n := range 11 {
				again := *last(r, 0)
				again.id = string(rune('a' + n))
				r.runs = append(r.runs, &again)
			}
		},
		"order": func(s *scenario, _ *record) { s.Queue.FIFO = true },
		"rate": func(_ *scenario, r *record) {
			for range 5 {
				again := *last(r, 0)
				r.runs = append(r.runs, &again)
			}
		},
		"timeout":       func(_ *scenario, r *record) { r.runs[0].ended += time.Hour },
		"lease in calm": func(_ *scenario, r *record) { r.runs[0].cause = "lease lost" },
		"given up": func(_ *scenario, r *record) {
			again := *last(r, 2)
			again.began += time.Second
			r.runs = append(r.runs, &again)
		},
		"sender":       func(_ *scenario, r *record) { r.sent[0].err = errors.New("refused") },
		"budget":       func(_ *scenario, r *record) { r.processes[0].until += time.Minute },
		"counts":       func(_ *scenario, r *record) { r.processes[0].report.Counts.Deleted++ },
		"calls":        func(_ *scenario, r *record) { r.processes[0].report.Calls.Receives++ },
		"after delete": func(_ *scenario, r *record) { r.processes[0].afterDeletes = nil },
		"pool": func(_ *scenario, r *record) {
			r.processes[0].settings.Pooled, r.processes[0].settings.Places = true, 1
			again := *r.calls[0]
			r.calls = append(r.calls, &again)
		},
		"priority": func(s *scenario, r *record) {
			s.Neighbours = []neighbour{{Share: reprise.Share{Priority: 1}}}
			r.processes[0].settings.Pooled = true
			r.arrivals = []arrival{{queue: 0, id: "x", attempt: 1, receives: 1}}
			r.errands = []*errandRun{{id: "x", receives: 1, began: time.Hour}}
		},
		"weights": func(s *scenario, r *record) {
			s.Neighbours = []neighbour{{}}
			r.processes[0].settings.Pooled, r.processes[0].settings.Rate, r.processes[0].stopped = true, 0, 0
			r.arrivals = []arrival{{queue: 0, id: "x", attempt: 1, receives: 1}, {queue: -1, id: "y", attempt: 1, receives: 1}}
			r.errands = []*errandRun{{id: "x", receives: 1, began: time.Hour}}
			r.runs = append(r.runs, &run{id: "y", attempt: 1, receives: 1, began: time.Hour, message: 0, contentOK: true})
			for i := range 30 {
				r.calls = append(r.calls, &call{queue: 0, began: time.Minute + time.Duration(i)*time.Second})
			}
		},
		"errands": func(s *scenario, _ *record) { s.Neighbours = []neighbour{{Errands: []errand{{}}}} },
		"reply": func(_ *scenario, r *record) {
			r.invocations = []*invocation{{ended: 1, messages: map[string]int{"x": 0}}}
		},
		"deadline": func(_ *scenario, r *record) {
			r.invocations = []*invocation{{deadline: time.Second}}
			last(r, 1).invocation = r.invocations[0]
		},
		"group": func(s *scenario, r *record) {
			s.Queue.FIFO = true
			r.invocations = []*invocation{{deadline: time.Hour}}
			for _, run := range r.runs {
				run.invocation = r.invocations[0]
			}
		},
		"paused": func(_ *scenario, r *record) {
			r.processes[0].pauses = []pauseSwitch{{key: r.processes[0].settings.key(1), on: true}}
			last(r, 1).began++
		},
		"keyed": func(_ *scenario, r *record) {
			r.processes[0].settings.Keys = 2
			r.processes[0].outages = []reprise.OutageEvent{{Key: "key1", State: reprise.BreakerOpen, At: r.began.Add(time.Second)}}
		},
		"health": func(_ *scenario, r *record) {
			r.samples = append(r.samples, sample{status: reprise.Status{Health: reprise.HealthOK}, failing: time.Hour})
		},
	}
	good := plain()
	for _, b := range judge(&good, live(t, good)) {
		t.Fatalf("nothing was forged, and it breaks %q:\n%s", b.check.name, list(b.how))
	}
	for _, c := range checks {
		forge, found := forgeries[c.name]
		if !found {
			t.Errorf("no record is forged for the check %q", c.name)
			continue
		}
		s := plain()
		r := live(t, s)
		forge(&s, r)
		if !slices.ContainsFunc(judge(&s, r), func(b broken) bool { return b.check.name == c.name }) {
			t.Errorf("the check %q does not see that its promise is broken", c.name)
		}
	}
}

// last returns the last run of a message.
func last(r *record, n int) (found *run) {
	for _, run := range r.runs {
		if run.message == n {
			found = run
		}
	}
	return found
}

func retried(a attempt) bool {
	return a.outcome == reprise.OutcomeRetry && a.reason == retry.ReasonPolicy
}

// TestShrink: of a scenario with much in it, what does not matter is dropped.
func TestShrink(t *testing.T) {
	s := plain()
	s.Versions[0].Retry = "constant(10s" // New cannot be asked: the text is not valid
	s.Outages = []span{{time.Hour, 2 * time.Hour}}
	all := run1(t, s)
	if len(all) != 1 || all[0].check.name != "accepted" {
		t.Fatalf("a policy that cannot be read breaks %v", all)
	}
	small, _ := shrink(t, s, all[0], 200)
	if len(small.Messages) != 0 || len(small.Outages) != 0 || small.Versions[0].Rate != 0 || len(small.Processes) != 1 || small.Versions[0].Retry == "" {
		t.Errorf("it is shrunk to\n%s", testSource(1, small, "accepted"))
	}
}
