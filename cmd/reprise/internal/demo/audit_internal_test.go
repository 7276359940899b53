package demo

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// sound is evidence in which every promise was kept: message 0 was delivered at its
// second attempt, 1 is a dead letter, 2 is left in the queue. The first attempt of both opened the breaker,
// and then 0 was a canary.
func sound(t *testing.T) evidence {
	t.Helper()
	story, err := json.Marshal(reprise.Story{Reason: "permanent", Attempts: 2, Error: "permanent: the target answered 422 Unprocessable Entity"})
	if err != nil {
		t.Fatal(err)
	}
	number := func(n string) sqsserver.MessageAttribute {
		return sqsserver.MessageAttribute{Name: eventAttribute, DataType: "String", StringValue: n}
	}
	return evidence{
		bodies:      []string{"a", "b", "c"},
		threshold:   2,
		concurrency: 1,
		service:     []serviceRecord{{requests: 3, served: 1, accepted: 1}, {requests: 2, served: 1}, {}},
		consumer: consumerRecords{
			records: []record{
				{runs: 3, attempts: 2, number: 2, successes: 1, ended: true, outcome: reprise.OutcomeDelete},
				{runs: 2, attempts: 2, number: 2, ended: true, outcome: reprise.OutcomeDeadLetter},
				{},
			},
			down: at(1), up: at(5),
			breaker: []reprise.OutageEvent{
				{State: reprise.BreakerOpen, At: at(2), Held: 1},
				{State: reprise.BreakerHalfOpen, Previous: reprise.BreakerOpen, At: at(3), Held: 1},
				{State: reprise.BreakerOpen, Previous: reprise.BreakerHalfOpen, At: at(3), Held: 1},
				{State: reprise.BreakerRamping, Previous: reprise.BreakerHalfOpen, At: at(6)},
				{State: reprise.BreakerClosed, Previous: reprise.BreakerRamping, At: at(7)},
			},
			ends: []end{
				{started: at(1), ended: at(1), unavailable: true, counted: true},
				{started: at(1), ended: at(2), unavailable: true, counted: true},
				{started: at(3), ended: at(3), unavailable: true},
				{started: at(6), ended: at(6), counted: true},
			},
			early:    []wait{{from: at(1), due: at(9), ended: at(7), wakeable: true}},
			failures: map[string]int{"422 Unprocessable Entity": 1, "connection lost": 1},
		},
		dead: []sqsserver.MessageInfo{{Body: "b", Attributes: []sqsserver.MessageAttribute{
			number("1"), {Name: reprise.StoryAttribute, DataType: "String", StringValue: string(story)},
		}}},
		waiting: []sqsserver.MessageInfo{{Body: "c", Attributes: []sqsserver.MessageAttribute{number("2")}}},
	}
}

// TestAudit: the audit finds what would be wrong. It is the demo's claim to be
// believed, so each promise is broken here in each way.
func TestAudit(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(*evidence)
		want  string // the promise that is broken; empty: none
	}{
		{"sound", func(*evidence) {}, ""},
		{"delivered twice after a late answer", func(ev *evidence) { ev.service[0].accepted = 2 }, ""},
		{"lost from the queue", func(ev *evidence) { ev.waiting = nil }, "accounted for"},
		{"lost from the dead-letter queue", func(ev *evidence) { ev.dead = nil }, "accounted for"},
		{"deleted without a success", func(ev *evidence) { ev.consumer.records[0].successes = 0 }, "accounted for"},
		{"handled twice", func(ev *evidence) { ev.consumer.records[0].successes = 2 }, "accounted for"},
		{"a success that the service knows nothing of", func(ev *evidence) { ev.service[0].accepted = 0 }, "accounted for"},
		{"delivered and left", func(ev *evidence) { ev.waiting = append(ev.waiting, infoOf(0)) }, "accounted for"},
		{"two dead letters", func(ev *evidence) { ev.dead = append(ev.dead, ev.dead[0]) }, "accounted for"},
		{"body changed on the way", func(ev *evidence) { ev.service[0].mangled = 1 }, "byte for byte"},
		{"body changed in the dead letter", func(ev *evidence) { ev.dead[0].Body = "B" }, "byte for byte"},
		{"no story", func(ev *evidence) { ev.dead[0].Attributes = ev.dead[0].Attributes[:1] }, "story"},
		{"a story that is no story", func(ev *evidence) { ev.dead[0].Attributes[1].StringValue = "once upon a time" }, "story"},
		{"a story with other attempts", func(ev *evidence) { ev.consumer.records[1].attempts = 4 }, "story"},
		{"before its Retry-After", func(ev *evidence) { ev.service[0].early = 1 }, "before it was due"},
		{"before the policy's time", func(ev *evidence) { ev.consumer.early[0].wakeable = false }, "before it was due"},
		{"woken before the service was back", func(ev *evidence) { ev.consumer.early[0].ended = at(5) }, "before it was due"},
		{"woken twice", func(ev *evidence) { ev.consumer.early[0].from = at(8); ev.consumer.early[0].ended = at(8) }, "before it was due"},
		{"hidden attempts", func(ev *evidence) { ev.service[2].requests = 1 }, "uncounted"},
		{"attempts told otherwise", func(ev *evidence) { ev.consumer.records[0].number = 1 }, "uncounted"},
		{"failures until the breaker opened, as many as it takes", func(ev *evidence) { ev.fail(1, 1) }, ""},
		{"more of them than it takes", func(ev *evidence) { ev.fail(1, 2) }, "the outage"},
		{"a breaker that never opened", func(ev *evidence) { ev.consumer.breaker = nil; ev.fail(4, 2) }, "the outage"},
		{"more of them, beside a success", func(ev *evidence) {
			ev.fail(1, 3)
			ev.consumer.ends = append(ev.consumer.ends, end{started: at(1), ended: at(1), counted: true})
		}, ""},
		{"an attempt that counts, and was under way when the breaker opened", func(ev *evidence) {
			ev.consumer.ends[1].ended = at(3)
			ev.consumer.ends = slices.Delete(ev.consumer.ends, 2, 3) // no canary
		}, ""},
		{"attempts at a service that was known to be down", func(ev *evidence) { ev.service[1].served, ev.service[0].served = 0, -1 }, "the outage"},
	} {
		t.Run(test.name, func(t *testing.T) {
			ev := sound(t)
			test.spoil(&ev)
			findings, _ := ev.audit()
			var broken []string
			for _, f := range findings {
				if len(f.broken) > 0 {
					broken = append(broken, f.promise)
				}
			}
			switch {
			case test.want == "" && len(broken) > 0:
				t.Errorf("broken: %q", broken)
			case test.want != "" && !slices.ContainsFunc(broken, func(p string) bool { return strings.Contains(p, test.want) }):
				t.Errorf("broken: %q, want the one that says %q", broken, test.want)
			}
		})
	}
}

// at is a time in seconds.
func at(seconds int64) time.Time { return time.Unix(seconds, 0) }

// fail adds n runs that failed, at some time, and counted.
func (ev *evidence) fail(seconds int64, n int) {
	for range n {
		ev.consumer.ends = append(ev.consumer.ends, end{started: at(seconds), ended: at(seconds), unavailable: true, counted: true})
	}
}

func infoOf(e event) sqsserver.MessageInfo {
	return sqsserver.MessageInfo{Attributes: []sqsserver.MessageAttribute{{Name: eventAttribute, StringValue: string(rune('0' + e))}}}
}

// TestReportOfBrokenPromises: they are named, with the messages, a few of many.
func TestReportOfBrokenPromises(t *testing.T) {
	ev := sound(t)
	for range 7 {
		ev.bodies = append(ev.bodies, "lost")
		ev.service = append(ev.service, serviceRecord{})
		ev.consumer.records = append(ev.consumer.records, record{})
	}
	findings, letters := ev.audit()
	var b strings.Builder
	r := report{out: terminal.Plain(&b, 40, false), evidence: ev, findings: findings, letters: letters, calls: reprise.Calls{Receives: 5}}
	r.print()
	text := b.String()
	for _, want := range []string{
		"10 messages in 0.0 s: 1 delivered, 1\n  dead letter, 1 left in the queue\n",
		"  BROKEN every message is accounted for,\n         once\n",
		"         message 3: handled 0 times,\n",
		"         and 2 more\n",
		"  ok every body arrived byte for byte\n",
		"   2 2 ##########",
		"The outage of 4.0 s cost 2 attempts\n      2 failed until the breaker opened\n      1 sent as canaries",
		"      1 permanent: the target answered\n        422 Unprocessable Entity\n",
		"API calls per message: 0.50",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}
