package operate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// TestExplain: the first rule that applies says why a message waits, and until when.
func TestExplain(t *testing.T) {
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	in := func(d time.Duration) time.Time { return at.Add(d) }
	plain := &operate.Message{ID: "m"}
	copied := &operate.Message{ID: "m", Copy: &operate.Copy{Attempts: 2, Due: in(time.Hour), Error: "no"}}
	dead := &operate.Message{ID: "m", Death: &operate.Death{Reason: "attempts", Attempts: 12, At: at, Error: "503"}}
	for name, test := range map[string]struct {
		facts operate.Facts
		want  string
	}{
		"a consumer's word goes first": {
			operate.Facts{Message: dead, State: "in flight", Held: &operate.Held{Stage: "running", Attempt: 2, MaxAttempts: 5, Since: at, LeaseEnd: in(time.Minute)}},
			"working, attempt 2 of 5, since 2026-01-02T12:00:00Z, until 2026-01-02T12:01:00Z: its handler runs; the lease is renewed before it ends",
		},
		"backoff": {
			operate.Facts{Held: &operate.Held{Stage: "backoff", Attempt: 3, MaxAttempts: 5, Until: in(time.Hour), Problem: "503", Policy: "constant(1h) jitter=none"}},
			"waiting for a retry, attempt 3 of 5, until 2026-01-02T13:00:00Z: the policy is constant(1h) jitter=none: 503",
		},
		"retry-after": {
			operate.Facts{Held: &operate.Held{Stage: "due", Attempt: 3, Until: in(time.Hour), Reason: "retry-after"}},
			"waiting for a retry, attempt 3, until 2026-01-02T13:00:00Z: the handler has set the wait; the consumer holds it until then",
		},
		"breaker of a key": {
			operate.Facts{Held: &operate.Held{Stage: "breaker", Attempt: 1, Key: "acme", Since: at, Until: in(time.Minute), Problem: "refused"}},
			"held back, attempt 1, since 2026-01-02T12:00:00Z, until 2026-01-02T12:01:00Z: the circuit breaker of key acme is not closed: held until a probe succeeds: refused",
		},
		"group":         {operate.Facts{Held: &operate.Held{Stage: "group", Attempt: 1, Head: "h"}}, "held back, attempt 1: behind h of its FIFO group"},
		"settling":      {operate.Facts{Held: &operate.Held{Stage: "settling", Attempt: 1, Outcome: "delete"}}, "settling: SQS has not yet acknowledged its settlement: delete"},
		"given up":      {operate.Facts{Held: &operate.Held{Stage: "given-up", Reason: "permanent", Problem: "no"}}, "given up: permanent: no dead-letter queue has accepted it, and its handler does not run again in this process: no"},
		"newer process": {operate.Facts{Held: &operate.Held{Stage: "levitating", Attempt: 1}}, "held back, attempt 1: levitating"},

		"delayed":     {operate.Facts{Message: plain, State: "delayed", Due: in(time.Minute)}, "delayed, until 2026-01-02T12:01:00Z: sent with a delay"},
		"by somebody": {operate.Facts{Message: plain, State: "delayed", Due: in(time.Minute), DelayedLater: true}, "delayed, until 2026-01-02T12:01:00Z: delayed by an operator, not by its sender"},
		"mended copy": {
			operate.Facts{Message: copied, State: "delayed", Due: in(2 * time.Hour), DelayedLater: true},
			"waiting for a retry, attempt 3, until 2026-01-02T14:00:00Z: delayed by an operator, not by its sender: no",
		},
		"delayed copy":  {operate.Facts{Message: copied, State: "delayed", Due: in(time.Minute)}, "waiting for a retry, attempt 3, until 2026-01-02T13:00:00Z: sent back as a copy, and delayed by the queue until its retry is due: no"},
		"in flight":     {operate.Facts{Message: plain, State: "in flight", Due: in(time.Minute)}, "in flight, until 2026-01-02T12:01:00Z: received, and not yet visible again"},
		"another's":     {operate.Facts{Message: plain, State: "in flight", Due: in(time.Minute), Consumer: &operate.Busy{}}, "in flight, until 2026-01-02T12:01:00Z: received by somebody else than the process that was asked"},
		"not on SQS":    {operate.Facts{}, "not known: whether it is in flight, delayed or deleted: SQS shows a message to its receiver only"},
		"dead":          {operate.Facts{Message: dead, State: "visible"}, "dead, since 2026-01-02T12:00:00Z: given up after 12 attempts, reason: attempts; it stays until it is redriven or deleted, or expires: 503"},
		"behind a head": {operate.Facts{Message: plain, State: "visible", Head: "h"}, "held back: behind h of its FIFO group, which is hidden"},
		"no consumer":   {operate.Facts{Message: plain}, "visible: waits for a consumer to receive it; not known: what its consumers wait for"},
		"paused":        {operate.Facts{Message: plain, Consumer: &operate.Busy{Paused: true, Outage: "x"}}, "held back: its consumer is paused: it is received when that is resumed"},
		"outage":        {operate.Facts{Message: plain, Consumer: &operate.Busy{Outage: "refused", NextProbe: in(time.Minute)}}, "held back, until 2026-01-02T12:01:00Z: the circuit breaker is open"},
		"no place":      {operate.Facts{Message: plain, Consumer: &operate.Busy{Running: 10, Concurrency: 10}}, "visible: waits for a free place: 10 of 10 handlers run"},
		"rate":          {operate.Facts{Message: plain, Consumer: &operate.Busy{Running: 1, Concurrency: 10, Rate: 2.5}}, "visible: waits for a receive: handlers start at 2.5/s"},
		"next":          {operate.Facts{Message: copied, Consumer: &operate.Busy{Running: 1, Concurrency: 10}}, "visible, attempt 3: waits for the next receive: 1 of 10 handlers run: no"},
	} {
		test.facts.Address = "http://here"
		s := test.facts.Explain()
		if got := s.Text(); !strings.HasPrefix(got, test.want) && !strings.Contains(got, test.want) {
			t.Errorf("%s:\n got %s\nwant %s", name, got, test.want)
		}
		if known := test.facts.Held != nil || test.facts.Consumer != nil; (s.Consumer != "") != known {
			t.Errorf("%s: according to %q", name, s.Consumer)
		}
	}
	for stage := range reprise.StageGivenUp + 1 {
		held := operate.Held{Stage: stage.String(), Attempt: 1}
		if s := (&operate.Facts{Held: &held}).Explain(); s.Why == held.Stage || s.Why == "" || s.State == "" {
			t.Errorf("stage %v is explained as %+v", stage, s)
		}
	}
}

// TestWaitsText: messages that wait alike are one line, with the first and the last end of their waits.
func TestWaitsText(t *testing.T) {
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	until := func(d time.Duration) string { return operate.Clock(at.Add(d), at) }
	message := func(state, why, problem string, wait time.Duration) operate.Message {
		s := &operate.Standing{State: state, Why: why, Error: problem}
		if wait != 0 {
			s.Until = at.Add(wait)
		}
		return operate.Message{Standing: s}
	}
	retries := func(waits ...time.Duration) (all []operate.Message) {
		for _, w := range waits {
			all = append(all, message("waiting for a retry", "the policy is p", "503\x1b[2J", w))
		}
		return all
	}
	for _, test := range []struct {
		name     string
		messages []operate.Message
		want     string
	}{
		{"nothing is known", []operate.Message{{}, {Standing: &operate.Standing{State: "dead"}}}, ""},
		{"no end", []operate.Message{message("visible", "waits", "", 0)}, "1 visible: waits\n"},
		{"one end", retries(time.Minute, time.Minute), "2 waiting for a retry until " + until(time.Minute) + ": the policy is p; last error: 503\\u001b[2J\n"},
		{
			"two ends, and another reason", append(retries(time.Hour, time.Minute), message("held back", "the queue is paused", "", 0)),
			"2 waiting for a retry, the first until " + until(time.Minute) + ", the last until " + until(time.Hour) + ": the policy is p; last error: 503\\u001b[2J\n" +
				"1 held back: the queue is paused\n",
		},
		{
			"errors that differ in a number", []operate.Message{message("held back", "paused", "order 12: no", 0), message("held back", "paused", "order 34: no", 0)},
			"2 held back: paused; last error: order <n>: no\n",
		},
		{"one is not known", append(retries(24*time.Hour), retries(0)...), "2 waiting for a retry, the last until " + until(24*time.Hour) + ": the policy is p; last error: 503\\u001b[2J\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := operate.WaitsText(test.messages, at); got != test.want {
				t.Errorf("got:\n%swant:\n%s", got, test.want)
			}
		})
	}
	var many []operate.Message
	for i := range 20 {
		many = append(many, message("held back", "behind "+strings.Repeat("m", i+1), "", 0))
	}
	if got := operate.WaitsText(many, at); strings.Count(got, "\n") != 9 || !strings.Contains(got, "and 12 more reasons: -o json") {
		t.Errorf("20 reasons:\n%s", got)
	}
}
