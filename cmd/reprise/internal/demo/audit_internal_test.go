package demo

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// sound is evidence in which every promise was kept: message 0 was delivered at its
// second attempt, 1 is a dead letter, 2 is left in the queue.
func sound(t *testing.T) evidence {
	t.Helper()
	story, err := json.Marshal(reprise.Story{Reason: "permanent", Attempts: 1, Error: "permanent: the target answered 410 Gone"})
	if err != nil {
		t.Fatal(err)
	}
	number := func(n string) sqsserver.MessageAttribute {
		return sqsserver.MessageAttribute{Name: eventAttribute, DataType: "String", StringValue: n}
	}
	return evidence{
		bodies:  []string{"a", "b", "c"},
		service: []page{{requests: 2, served: 2, accepted: 1}, {requests: 1, served: 1}, {}},
		consumer: books{
			records: []record{
				{attempts: 2, successes: 1, ended: true, outcome: reprise.OutcomeDelete},
				{attempts: 1, ended: true, outcome: reprise.OutcomeDeadLetter},
				{},
			},
			failures: map[string]int{"410 Gone": 1, "connection lost": 1},
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
		{"before the policy's time", func(ev *evidence) { ev.consumer.early = 1 }, "before it was due"},
		{"hidden attempts", func(ev *evidence) { ev.service[2].requests = 1 }, "uncounted"},
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

func infoOf(e event) sqsserver.MessageInfo {
	return sqsserver.MessageInfo{Attributes: []sqsserver.MessageAttribute{{Name: eventAttribute, StringValue: string(rune('0' + e))}}}
}

// TestReportOfBrokenPromises: they are named, with the messages, a few of many.
func TestReportOfBrokenPromises(t *testing.T) {
	ev := sound(t)
	for range 7 {
		ev.bodies = append(ev.bodies, "lost")
		ev.service = append(ev.service, page{})
		ev.consumer.records = append(ev.consumer.records, record{})
	}
	findings, letters := ev.audit()
	var b strings.Builder
	r := report{out: terminal.Plain(&b, 40, false), evidence: ev, findings: findings, letters: letters, calls: reprise.Calls{Receives: 5}}
	r.print()
	text := b.String()
	for _, want := range []string{
		"10 messages in 0.0 s: 1 delivered, 1\n  dead letters, 1 left in the queue\n",
		"  BROKEN every message is accounted for,\n         once\n",
		"         message 3: handled 0 times,\n",
		"         and 2 more\n",
		"  ok every body arrived byte for byte\n",
		"   1 1 ##########",
		"      1 permanent: the target answered\n        410 Gone\n",
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
