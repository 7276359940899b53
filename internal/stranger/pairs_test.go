package stranger_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// feature is something that a scenario has or does not have.
type feature struct {
	name string
	in   func(s *scenario) bool
}

// features are those whose pairs are counted.
var features = slices.Concat(ofQueues, ofVersions, ofMessages, ofEvents, ofFaults)

var ofQueues = []feature{
	{"FIFO queue", func(s *scenario) bool { return s.Queue.FIFO }},
	{"queue's delay", func(s *scenario) bool { return s.Queue.Delay > 0 }},
	{"queue's visibility", func(s *scenario) bool { return s.Queue.Visibility > 0 }},
	{"queue's retention", func(s *scenario) bool { return s.Queue.Retention > 0 }},
	{"no dead-letter queue", func(s *scenario) bool { return s.Queue.MaxReceives == 0 && !s.Queue.SeparateDeadLetters }},
	{"dead-letter queue of the consumers", func(s *scenario) bool { return s.Queue.SeparateDeadLetters }},
	{"limit in flight", func(s *scenario) bool { return s.Queue.InFlightLimit > 0 }},
	{"slow requests", func(s *scenario) bool { return s.Latency > 100*time.Millisecond }},
	{"no deduplication ids", (*scenario).contentDeduplication},
	{"sender with tries", func(s *scenario) bool { return s.Sender.Tries > 0 }},
	{"sender with time limits", func(s *scenario) bool { return s.Sender.TimeLimit > 0 }},
	{"sender with limits of waiting", func(s *scenario) bool { return s.Sender.MaxWaiting+s.Sender.MaxBytes != 0 }},
}

// a returns a feature of a process's version.
func a(name string, in func(v settings) bool) feature {
	return feature{name, func(s *scenario) bool {
		return slices.ContainsFunc(s.Processes, func(p process) bool { return in(s.version(p)) })
	}}
}

// consumes is a for versions that are no functions.
func consumes(name string, in func(v settings) bool) feature {
	return a(name, func(v settings) bool { return !v.Lambda && in(v) })
}

var ofVersions = []feature{
	{"versions", func(s *scenario) bool {
		return slices.ContainsFunc(s.Processes, func(p process) bool { return s.version(p) != s.version(s.Processes[0]) })
	}},
	{"several processes", func(s *scenario) bool { return len(s.Processes) > 1 }},
	consumes("prefetch", func(v settings) bool { return v.Prefetch > 0 }),
	consumes("no prefetch", func(v settings) bool { return v.Prefetch < 0 }),
	consumes("rate", func(v settings) bool { return v.Rate > 0 }),
	a("rule", func(v settings) bool { return v.Rule }),
	a("by copies", func(v settings) bool { return v.Via == reprise.ViaRequeue }),
	a("by visibility", func(v settings) bool { return v.Via == reprise.ViaVisibility }),
	consumes("retry lane", func(v settings) bool { return v.Lane }),
	consumes("block", func(v settings) bool { return v.FIFO == reprise.FIFOBlock }),
	consumes("skip", func(v settings) bool { return v.FIFO == reprise.FIFOSkip }),
	consumes("in-flight quota", func(v settings) bool { return v.InFlightQuota != 0 }),
	consumes("handler timeout", func(v settings) bool { return v.HandlerTimeout > 0 }),
	consumes("lease", func(v settings) bool { return v.Lease > 0 }),
	consumes("stop budget", func(v settings) bool { return v.StopBudget > 0 }),
	a("signed", func(v settings) bool { return v.Signed }),
	a("signed with the second key", func(v settings) bool { return v.Signed && v.Rotated }),
	consumes("outage off", func(v settings) bool { return v.OutageOff }),
	consumes("threshold", func(v settings) bool { return v.Threshold > 0 }),
	consumes("keys", func(v settings) bool { return v.Keys > 0 }),
	consumes("probe", func(v settings) bool { return v.Probe }),
	consumes("unavailable by its own function", func(v settings) bool { return v.OwnUnavailable }),
	consumes("after delete", func(v settings) bool { return v.AfterDelete }),
	a("batches", func(v settings) bool { return v.Batch }),
	a("the SDK", func(v settings) bool { return v.SDK }),
	consumes("pool", func(v settings) bool { return v.Pooled }),
	a("function", func(v settings) bool { return v.Lambda }),
}

// some returns a feature of a message.
func some(name string, in func(m message) bool) feature {
	return feature{name, func(s *scenario) bool { return slices.ContainsFunc(s.Messages, in) }}
}

// ends returns a feature of a message's run.
func ends(r result) feature {
	return some("run that ends with "+string(r), func(m message) bool {
		return slices.ContainsFunc(m.Steps, func(st step) bool { return st.Result == r })
	})
}

var ofMessages = []feature{
	some("largest message", func(m message) bool { return m.Size > 1<<19 }),
	some("ten attributes", func(m message) bool { return m.Attributes == 10 }),
	some("attributes", func(m message) bool { return m.Attributes > 0 && m.Attributes < 10 }),
	some("trace header", func(m message) bool { return m.Traced }),
	some("tenant", func(m message) bool { return m.Tenant }),
	{"message's delay", func(s *scenario) bool {
		return !s.Queue.FIFO && slices.ContainsFunc(s.Messages, func(m message) bool { return m.Delay > 0 })
	}},
	some("forged history", func(m message) bool { return m.Forged == garbage || m.Forged == plausible }),
	some("forged story", func(m message) bool { return m.Forged == invalidStory }),
	some("handler that ignores its end", func(m message) bool {
		return slices.ContainsFunc(m.Steps, func(st step) bool { return st.Ignores })
	}),
	ends(fail), ends(failRule), ends(permanent), ends(retryAfter), ends(release), ends(panics), ends(unavailable), ends(kill),
}

// planned returns a feature of what is planned for a process.
func planned(name string, in func(p process) bool) feature {
	return feature{name, func(s *scenario) bool { return slices.ContainsFunc(s.Processes, in) }}
}

// acts returns a feature of what an operator does to a consumer.
func acts(name string, ops ...operation) feature {
	return feature{name, func(s *scenario) bool {
		consumer := slices.ContainsFunc(s.Processes, func(p process) bool { return !s.version(p).Lambda })
		return consumer && s.does(ops...)
	}}
}

var ofEvents = []feature{
	planned("stop", func(p process) bool { return p.Until > 0 && !p.Crash }),
	planned("crash", func(p process) bool { return p.Until > 0 && p.Crash }),
	planned("late start", func(p process) bool { return p.From > 0 }),
	{"outage", func(s *scenario) bool { return len(s.Outages) > 0 }},
	{"outage of a key", func(s *scenario) bool { return len(s.KeyDown) > 0 }},
	{"clocks that differ", func(s *scenario) bool { return s.skew() > 0 }},
	{"clock that jumps", func(s *scenario) bool { return slices.ContainsFunc(s.Jumps, func(j jump) bool { return j.At > 0 }) }},
	{"attributes that change", func(s *scenario) bool { return len(s.Changes) > 0 }},
	{"redrive policy that changes", func(s *scenario) bool {
		return slices.ContainsFunc(s.Changes, func(c change) bool { return c.MaxReceives != 0 })
	}},
	{"retention that changes", func(s *scenario) bool {
		return slices.ContainsFunc(s.Changes, func(c change) bool { return c.Retention > 0 })
	}},
	acts("pause", doPause), acts("pause of a key", doPauseKey), acts("wake", doWake, doWakeKey, doWakeMessage), acts("probe by hand", doProbe, doProbeKey),
	acts("retry by hand", doRetryMessage), acts("set concurrency", doSetConcurrency), acts("set rate", doSetRate),
}

// disturbed returns a feature of a fault of SQS.
func disturbed(name string, kinds ...sqsserver.FaultKind) feature {
	return feature{name, func(s *scenario) bool {
		return slices.ContainsFunc(s.Faults, func(f spell) bool { return slices.Contains(kinds, f.Kind) })
	}}
}

var ofFaults = []feature{
	disturbed("requests that fail", sqsserver.FaultThrottle, sqsserver.FaultServerError, sqsserver.FaultDropConnection),
	disturbed("replies that are lost", sqsserver.FaultLoseReply),
	disturbed("replies that are slow", sqsserver.FaultSlowReply),
	disturbed("entries that fail", sqsserver.FaultFailEntry),
	disturbed("redeliveries", sqsserver.FaultDuplicate, sqsserver.FaultEarlyRedelivery),
	disturbed("leases that are lost", sqsserver.FaultLoseLease),
	disturbed("deletes that are lost", sqsserver.FaultLoseDelete),
	disturbed("stale handles", sqsserver.FaultStaleHandle),
	disturbed("limit reached", sqsserver.FaultOverLimit),
	disturbed("wrong counts", sqsserver.FaultWrongCounts),
	{"faults of the dead-letter queue", func(s *scenario) bool {
		return slices.ContainsFunc(s.Faults, func(f spell) bool { return f.DeadLetters })
	}},
}

// excluded are pairs of features that no scenario can have, and why.
var excluded = map[[2]string]string{
	{"FIFO queue", "by copies"}:                                    "New refuses it",
	{"FIFO queue", "retry lane"}:                                   "New refuses it",
	{"FIFO queue", "tenant"}:                                       "groups of a FIFO queue are no tenants",
	{"FIFO queue", "message's delay"}:                              "SQS refuses it",
	{"no dead-letter queue", "dead-letter queue of the consumers"}: "one is the opposite of the other",
	{"no dead-letter queue", "faults of the dead-letter queue"}:    "there is no queue to disturb",
	{"no deduplication ids", "by copies"}:                          "only FIFO queues can do without them",
	{"no deduplication ids", "retry lane"}:                         "only FIFO queues can do without them",
	{"no deduplication ids", "tenant"}:                             "only FIFO queues can do without them",
	{"no deduplication ids", "message's delay"}:                    "only FIFO queues can do without them",
	{"by visibility", "retry lane"}:                                "New refuses it, and all versions have the lane or none",
}

// TestPairsAreDrawn: each pair of features is together in some scenario.
func TestPairsAreDrawn(t *testing.T) {
	together := make(map[[2]string]int)
	for seed := range uint64(drawn) {
		s := draw(seed + 1)
		var has []string
		for _, f := range features {
			if f.in(&s) {
				has = append(has, f.name)
			}
		}
		for i, one := range has {
			for _, other := range has[i+1:] {
				together[[2]string{one, other}]++
			}
		}
	}
	pairs, missing := 0, 0
	for i, one := range features {
		for _, other := range features[i+1:] {
			pair := [2]string{one.name, other.name}
			why, impossible := excluded[pair]
			switch pairs++; {
			case together[pair] == 0 && !impossible:
				missing++
				t.Errorf("no scenario of %d has both: %s, and %s", drawn, one.name, other.name)
			case together[pair] > 0 && impossible:
				t.Errorf("%d scenarios have both, and excluded says that none can: %s, and %s (%s)", together[pair], one.name, other.name, why)
			}
		}
	}
	for pair := range excluded {
		for _, name := range pair {
			if !slices.ContainsFunc(features, func(f feature) bool { return f.name == name }) {
				t.Errorf("excluded names %q, which is no feature", name)
			}
		}
	}
	fmt.Printf("TestPairsAreDrawn: %d pairs of %d features, %d excluded, %d missing in %d scenarios\n", pairs, len(features), len(excluded), missing, drawn)
}
