package main_test

import (
	"slices"
	"strings"
	"testing"
)

// TestCrowdAudit: the audit of the crowd finds each law broken, and nothing else.
func TestCrowdAudit(t *testing.T) {
	tenant := map[string]crowdAttribute{"tenant": {DataType: "String", StringValue: "acme"}}
	attributed := func(in *crowdInput) { in.MessageAttributes = tenant }
	for _, c := range []struct {
		name string
		make func(f *forgery)
		want string // a part of the only problem; empty: there is none
	}{
		{"a message's usual life", func(f *forgery) {
			f.send("q", "m", "one", 1)
			f.receive("q", 2, got("m", "one", "1"))
			f.delete("q", "m#1", 3)
		}, ""},
		{"lost before it was received", func(f *forgery) { f.send("q", "m", "one", 1) }, "is lost"},
		{"lost although only a delete with a stale handle was tried", func(f *forgery) {
			f.send("q", "m", "one", 1)
			f.receive("q", 2, got("m", "one", "1"))
			f.receive("q", 6, got("m", "one", "2"))
			f.delete("q", "m#1", 7)
		}, "is lost"},
		{"a send that nobody knows the outcome of", func(f *forgery) {
			f.breaks("kill", 1, 2)
			fails(f.send("q", "m", "one", 1), 0)
		}, ""},
		{"a send of a dead letter", func(f *forgery) {
			f.send("q", "m", "one", 1)
			f.receive("q", 2, got("m", "one", "1"))
			f.receive("dead", 6, got("m", "one", "2"))
			f.delete("dead", "m#2", 7)
		}, ""},
		{"a dead letter that a long poll got, which was asked before the last receive from its queue", func(f *forgery) {
			f.send("q", "m", "one", 1)
			f.receive("q", 4, got("m", "one", "1"))
			f.receive("dead", 3, got("m", "one", "2")).told = seconds(7.6)
			f.delete("dead", "m#2", 8)
		}, ""},
		{"a dead letter that is lost", func(f *forgery) {
			f.send("q", "m", "one", 1)
			f.receive("q", 2, got("m", "one", "1"))
			f.delete("q", "m#1", 8)
			f.receive("dead", 6, got("m", "one", "2"))
		}, "is lost"},
		{"in a queue to which it cannot get", func(f *forgery) {
			f.send("q", "m", "one", 1)
			f.receive("q", 2, got("m", "one", "1"))
			f.delete("q", "m#1", 3)
			f.receive("other", 6, got("m", "one", "1"))
		}, "to a queue from which it could get there"},
		{"never sent", func(f *forgery) {
			f.receive("q", 2, got("m", "one", "1"))
		}, "nobody had tried to send"},
		{"received before it was sent", func(f *forgery) {
			f.receive("q", 2, got("m", "one", "1"))
			f.delete("q", "m#1", 3)
			f.send("q", "m", "one", 5)
		}, "nobody had tried to send"},
		{"another's body", func(f *forgery) {
			f.send("q", "m", "one", 1)
			f.send("q", "o", "two", 1)
			f.receive("q", 2, got("m", "one", "1"), got("o", "two", "1"))
			f.receive("q", 6, got("m", "two", "2"))
			f.delete("q", "m#2", 7)
			f.delete("q", "o#1", 7)
		}, "with two bodies"},
		{"a wrong digest of a body", func(f *forgery) {
			f.send("q", "m", "one", 1)
			m := got("m", "one", "1")
			m.MD5OfBody = md5Of("two")
			f.receive("q", 2, m)
			f.delete("q", "m#1", 3)
		}, "digest"},
		{"attributes as sent", func(f *forgery) {
			f.send("q", "m", "one", 1, attributed)
			m := got("m", "one", "1")
			m.MessageAttributes = tenant
			f.receive("q", 2, m)
			f.delete("q", "m#1", 3)
		}, ""},
		{"attributes otherwise than sent", func(f *forgery) {
			f.send("q", "m", "one", 1, attributed)
			f.receive("q", 2, got("m", "one", "1"))
			f.delete("q", "m#1", 3)
		}, "never sent so"},
		{"a send's reply with a wrong digest", func(f *forgery) {
			f.send("q", "m", "one", 1).reply.MD5OfMessageBody = md5Of("two")
			f.receive("q", 2, got("m", "one", "1"))
			f.delete("q", "m#1", 3)
		}, "digests"},
		{"a send's reply without the digest of its attributes", func(f *forgery) {
			f.send("q", "m", "one", 1, attributed).reply.MD5OfMessageAttributes = ""
			m := got("m", "one", "1")
			m.MessageAttributes = tenant
			f.receive("q", 2, m)
			f.delete("q", "m#1", 3)
		}, "digests"},
		{"received again after its delete", func(f *forgery) {
			f.send("q", "m", "one", 1)
			f.receive("q", 2, got("m", "one", "1"))
			f.delete("q", "m#1", 3)
			f.receive("q", 9, got("m", "one", "2"))
			f.delete("q", "m#2", 10)
		}, "after its delete"},
		{"received again after a crash and its delete", func(f *forgery) {
			f.send("q", "m", "one", 1)
			f.receive("q", 2, got("m", "one", "1"))
			f.delete("q", "m#1", 3)
			f.breaks("kill", 5, 6)
			f.receive("q", 9, got("m", "one", "2"))
			f.delete("q", "m#2", 10)
		}, "after its delete"},
		{"received again after a delete with an old handle", func(f *forgery) {
			f.send("q", "m", "one", 1)
			f.receive("q", 2, got("m", "one", "1"))
			f.receive("q", 6, got("m", "one", "2"))
			f.delete("q", "m#1", 7)
			f.receive("q", 10, got("m", "one", "3"))
			f.delete("q", "m#3", 11)
		}, ""},
		{"received again after a delete, since a reply was lost", func(f *forgery) {
			f.send("q", "m", "one", 1)
			f.receive("q", 2, got("m", "one", "1"))
			f.breaks("stop", 6, 7)
			fails(f.receive("q", 6), 0)
			f.delete("q", "m#1", 9)
			f.receive("q", 12, got("m", "one", "3"))
			f.delete("q", "m#3", 13)
		}, ""},
		{"received while it was hidden", func(f *forgery) {
			f.send("q", "m", "one", 1)
			f.receive("q", 2, got("m", "one", "1"))
			f.receive("q", 3, got("m", "one", "2"))
			f.delete("q", "m#2", 4)
		}, "while it was hidden"},
		{"received while it was hidden: the clock jumped", func(f *forgery) {
			f.send("q", "m", "one", 1)
			f.receive("q", 2, got("m", "one", "1"))
			f.jumps = append(f.jumps, crowdJump{seconds(2.6), seconds(2.6), seconds(2)})
			f.receive("q", 3, got("m", "one", "2"))
			f.delete("q", "m#2", 4)
		}, ""},
		{"received while it was hidden: the clock jumped back", func(f *forgery) {
			f.send("q", "m", "one", 1)
			f.receive("q", 2, got("m", "one", "1"))
			f.jumps = append(f.jumps, crowdJump{seconds(2.6), seconds(2.6), seconds(-2)})
			f.receive("q", 3, got("m", "one", "2"))
			f.delete("q", "m#2", 4)
		}, "while it was hidden"},
		{"received while it was hidden: its visibility was changed", func(f *forgery) {
			f.send("q", "m", "one", 1)
			f.receive("q", 2, got("m", "one", "1"))
			f.change("q", "m#1", 0, 2.6)
			f.receive("q", 3.2, got("m", "one", "2"))
			f.delete("q", "m#2", 4)
		}, ""},
		{"received while it was hidden: a crash undid the receive", func(f *forgery) {
			f.send("q", "m", "one", 1)
			f.receive("q", 2, got("m", "one", "1"))
			f.breaks("kill", 2.6, 2.8)
			f.receive("q", 3, got("m", "one", "1"))
			f.delete("q", "m#1", 4)
		}, ""},
		{"received while it was hidden: a crash, but the receive was on disk", func(f *forgery) {
			f.send("q", "m", "one", 1)
			f.receive("q", 2, got("m", "one", "1"))
			f.send("q", "o", "two", 2.6)
			f.breaks("kill", 3.2, 3.4)
			f.receive("q", 3.5, got("m", "one", "2"))
			f.delete("q", "m#2", 4)
			f.receive("q", 5, got("o", "two", "1"))
			f.delete("q", "o#1", 6)
		}, "while it was hidden"},
		{"received although a change had hidden it", func(f *forgery) {
			f.send("q", "m", "one", 1)
			f.receive("q", 2, got("m", "one", "1"))
			f.change("q", "m#1", 9, 3)
			f.receive("q", 6, got("m", "one", "2"))
			f.delete("q", "m#2", 7)
		}, "had hidden it"},
		{"a receive count that does not grow", func(f *forgery) {
			f.send("q", "m", "one", 1)
			f.receive("q", 2, got("m", "one", "1"))
			f.receive("q", 6, got("m", "one", "1"))
			f.delete("q", "m#1", 7)
		}, "does not grow"},
		{"a receive count that grows by two", func(f *forgery) {
			f.send("q", "m", "one", 1)
			f.receive("q", 2, got("m", "one", "1"))
			f.receive("q", 6, got("m", "one", "3"))
			f.delete("q", "m#3", 7)
		}, "skips others"},
		{"received more often than a dead letter", func(f *forgery) {
			f.receives = map[string]int{"q": 1}
			f.send("q", "m", "one", 1)
			f.receive("q", 2, got("m", "one", "1"))
			f.receive("q", 6, got("m", "one", "2"))
			f.delete("q", "m#2", 7)
		}, "it is a dead letter"},
		{"there twice", func(f *forgery) {
			f.send("q", "m", "one", 1)
			f.receive("q", 2, got("m", "one", "1"), got("o", "one", "1"))
			f.delete("q", "m#1", 3)
			f.delete("q", "o#1", 3)
			f.routes = nil
		}, "2 times, and was sent 1 times"},
		{"before its delay", func(f *forgery) {
			f.send("q", "m", "one", 1, func(in *crowdInput) { in.DelaySeconds = 5 })
			f.receive("q", 2, got("m", "one", "1"))
			f.delete("q", "m#1", 3)
		}, "with a delay"},
		{"a clock that goes back", func(f *forgery) {
			f.send("q", "m", "one", 1)
			f.send("q", "o", "two", 2)
			o := got("o", "two", "1")
			o.Attributes["SentTimestamp"] = "999"
			f.receive("q", 3, got("m", "one", "1"), o)
			f.delete("q", "m#1", 4)
			f.delete("q", "o#1", 4)
		}, "clock went back by 1 ms"},
		{"a clock that goes back by a start, as the machine's has", func(f *forgery) {
			f.send("q", "m", "one", 1)
			f.jumps = append(f.jumps, crowdJump{seconds(1.6), seconds(1.6), seconds(-1)})
			f.breaks("stop", 1.7, 1.8)
			f.send("q", "o", "two", 2)
			o := got("o", "two", "1")
			o.Attributes["SentTimestamp"] = "999"
			f.receive("q", 3, got("m", "one", "1"), o)
			f.delete("q", "m#1", 4)
			f.delete("q", "o#1", 4)
		}, ""},
		{"more messages than were asked for", func(f *forgery) {
			f.send("q", "m", "one", 1)
			f.send("q", "o", "two", 1)
			f.receive("q", 2, got("m", "one", "1"), got("o", "two", "1")).input.MaxNumberOfMessages = 1
			f.delete("q", "m#1", 3)
			f.delete("q", "o#1", 3)
		}, "2 messages came, 1 were asked for"},
		{"in the order of the group", func(f *forgery) {
			f.send("q.fifo", "m", "one", 1, ofGroup("g", "1"))
			f.send("q.fifo", "o", "two", 2, ofGroup("g", "2"))
			f.receive("q.fifo", 3, inGroup(got("m", "one", "1"), "g"), inGroup(got("o", "two", "1"), "g"))
			f.delete("q.fifo", "m#1", 4)
			f.delete("q.fifo", "o#1", 4)
		}, ""},
		{"out of the order of the group", func(f *forgery) {
			f.send("q.fifo", "m", "one", 1, ofGroup("g", "1"))
			f.send("q.fifo", "o", "two", 2, ofGroup("g", "2"))
			f.receive("q.fifo", 3, inGroup(got("o", "two", "1"), "g"), inGroup(got("m", "one", "1"), "g"))
			f.delete("q.fifo", "m#1", 4)
			f.delete("q.fifo", "o#1", 4)
		}, "which is before it in its group"},
		{"the next of a group while the first is in flight", func(f *forgery) {
			f.send("q.fifo", "m", "one", 1, ofGroup("g", "1"))
			fails(f.send("q.fifo", "o", "two", 2, ofGroup("g", "2")), 0)
			f.breaks("stop", 2, 2.1)
			f.receive("q.fifo", 4, inGroup(got("o", "two", "1"), "g"))
			f.receive("q.fifo", 5, inGroup(got("m", "one", "1"), "g"))
			f.delete("q.fifo", "m#1", 6)
			f.delete("q.fifo", "o#1", 6)
			f.exchanges[0], f.exchanges[1] = f.exchanges[1], f.exchanges[0]
			f.exchanges[0].asked = seconds(0.5)
		}, "was in flight"},
		{"the first of a group that was given back, while the next is in flight", func(f *forgery) {
			f.send("q.fifo", "m", "one", 1, ofGroup("g", "1"))
			f.send("q.fifo", "o", "two", 2, ofGroup("g", "2"))
			f.receive("q.fifo", 3, inGroup(got("m", "one", "1"), "g"), inGroup(got("o", "two", "1"), "g"))
			f.change("q.fifo", "m#1", 0, 3.6)
			f.receive("q.fifo", 4.2, inGroup(got("m", "one", "2"), "g"))
			f.delete("q.fifo", "m#2", 5)
			f.delete("q.fifo", "o#1", 5)
		}, ""},
		{"sent again behind the next, which was given back", func(f *forgery) {
			fails(f.send("q.fifo", "m", "one", 1, ofGroup("g", "1")), 0)
			f.breaks("stop", 1, 1.1)
			f.send("q.fifo", "o", "two", 2, ofGroup("g", "2"))
			f.send("q.fifo", "m", "one", 2.6, ofGroup("g", "1"))
			f.receive("q.fifo", 3.2, numbered("1", inGroup(got("o", "two", "1"), "g")), numbered("2", inGroup(got("m", "one", "1"), "g")))
			f.change("q.fifo", "o#1", 0, 3.8)
			f.receive("q.fifo", 4.4, numbered("1", inGroup(got("o", "two", "2"), "g")))
			f.delete("q.fifo", "o#2", 5)
			f.delete("q.fifo", "m#1", 5)
		}, ""},
		{"sent again behind the next, which is in flight", func(f *forgery) {
			fails(f.send("q.fifo", "m", "one", 1, ofGroup("g", "1")), 0)
			f.breaks("stop", 1, 1.1)
			f.send("q.fifo", "o", "two", 2, ofGroup("g", "2"))
			f.send("q.fifo", "m", "one", 2.6, ofGroup("g", "1"))
			f.receive("q.fifo", 3.2, numbered("1", inGroup(got("o", "two", "1"), "g")))
			f.receive("q.fifo", 4, numbered("2", inGroup(got("m", "one", "1"), "g")))
			f.delete("q.fifo", "o#1", 5)
			f.delete("q.fifo", "m#1", 5)
		}, "was in flight"},
		{"deduplicated", func(f *forgery) {
			f.send("q.fifo", "m", "one", 1, ofGroup("g", "1"))
			f.send("q.fifo", "m", "one", 2, ofGroup("g", "1"))
			f.receive("q.fifo", 4, inGroup(got("m", "one", "1"), "g"))
			f.delete("q.fifo", "m#1", 5)
		}, ""},
		{"not deduplicated", func(f *forgery) {
			f.send("q.fifo", "m", "one", 1, ofGroup("g", "1"))
			f.send("q.fifo", "o", "one", 2, ofGroup("g", "1"))
			f.receive("q.fifo", 4, inGroup(got("m", "one", "1"), "g"))
			f.delete("q.fifo", "m#1", 5)
			f.delete("q.fifo", "o#1", 6)
			f.receive("q.fifo", 5.1, inGroup(got("o", "one", "1"), "g"))
		}, "deduplication id 1 gave the ids"},
		{"deduplicated no longer, by the server's clock", func(f *forgery) {
			f.send("q.fifo", "m", "one", 1, ofGroup("g", "1"))
			f.jumps = append(f.jumps, crowdJump{seconds(1.7), seconds(1.7), seconds(300)})
			f.send("q.fifo", "o", "one", 2, ofGroup("g", "1"))
			f.receive("q.fifo", 4, inGroup(got("m", "one", "1"), "g"), inGroup(got("o", "one", "1"), "g"))
			f.delete("q.fifo", "m#1", 5)
			f.delete("q.fifo", "o#1", 6)
		}, ""},
		{"failed while the server was up", func(f *forgery) { fails(f.receive("q", 1), 503) }, "while the server was up"},
		{"no reply while the server was up", func(f *forgery) { fails(f.receive("q", 1), 0) }, "while the server was up"},
		{"failed while the disk was full", func(f *forgery) {
			f.breaks("full", 1, 2)
			fails(f.receive("q", 1), 503)
		}, ""},
		{"refused", func(f *forgery) { fails(f.receive("q", 1), 400) }, "was refused"},
		{"refused, since its lease had ended", func(f *forgery) {
			f.send("q", "m", "one", 1)
			f.receive("q", 2, got("m", "one", "1"))
			fails(f.delete("q", "m#1", 3), 400).code = codeOfGoneLease
			f.receive("q", 6, got("m", "one", "2"))
			f.delete("q", "m#2", 7)
		}, ""},
		{"a batch whose reply lacks an entry", func(f *forgery) {
			f.ask("a", "SendMessageBatch", "q", 1, crowdInput{Entries: []crowdInput{{ID: "0", MessageBody: "one"}}}, &crowdReply{})
		}, "has the entries"},
		{"a delete whose handle nobody has", func(f *forgery) { f.delete("q", "x", 1) }, "that nobody had received"},
		{"a command that fails", func(f *forgery) {
			f.commands = []crowdCommand{{args: []string{"peek", "q"}, asked: 1, told: 2, code: 1, output: "no"}}
		}, "ended with 1"},
		{"a command that leaves some", func(f *forgery) {
			f.commands = []crowdCommand{{args: []string{"move", "q"}, asked: 1, told: 2, code: 3}}
		}, ""},
		{"a command that fails while the server is away", func(f *forgery) {
			f.breaks("stop", 1, 2)
			f.commands = []crowdCommand{{args: []string{"peek", "q"}, asked: seconds(1), told: seconds(2), code: 5}}
		}, ""},
		{"a command that panics while the server is away", func(f *forgery) {
			f.breaks("stop", 1, 2)
			f.commands = []crowdCommand{{args: []string{"peek", "q"}, asked: seconds(1), told: seconds(2), code: 1, output: "panic: x"}}
		}, "ended with 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &forgery{crowdRecord{routes: map[string][]string{"q": {"dead"}}}}
			if strings.HasPrefix(c.name, "there") {
				f.routes = nil
			}
			c.make(f)
			problems := auditCrowd(f.crowdRecord)
			if c.want == "" && len(problems) > 0 || c.want != "" && !slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, c.want) }) {
				t.Errorf("the audit reported %q, want %q", problems, c.want)
			}
			if c.want != "" && len(problems) > 1 {
				t.Logf("besides, it reported %q", problems)
			}
		})
	}
}
