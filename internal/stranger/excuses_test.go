package stranger_test

import (
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestExcuses: what excuses a broken promise excuses no more than its reason, in a scenario of one message and one process.
func TestExcuses(t *testing.T) {
	deletes := spell{When: span{time.Minute, time.Hour}, Kind: sqsserver.FaultThrottle, Action: "DeleteMessageBatch"}
	slow := spell{When: span{0, time.Hour}, Kind: sqsserver.FaultSlowReply, Delay: 20 * time.Second}
	for name, tt := range map[string]struct {
		change func(s *scenario, r *record)
		excuse func(f *facts) bool
		want   bool
	}{
		"an original whose delete fails until the crash":    {crashed(deletes, 30*time.Minute, 20*time.Minute), anyOriginalLeft, true},
		"an original whose delete failed long before":       {crashed(deletes, 2*time.Hour, 20*time.Minute), anyOriginalLeft, false},
		"a copy that was sent when deletes did not fail":    {crashed(deletes, 30*time.Minute, 30*time.Second), anyOriginalLeft, false},
		"a copy of a process that has not crashed":          {crashed(deletes, 0, 20*time.Minute), anyOriginalLeft, false},
		"deletes of the dead-letter queue":                  {crashed(spell{When: deletes.When, DeadLetters: true}, 30*time.Minute, 20*time.Minute), anyOriginalLeft, false},
		"the message is left unsettled":                     {unsettled("id"), anyCutShort, true},
		"another message is left unsettled":                 {unsettled("other"), anyCutShort, false},
		"replies of 20 s and a lease of 30 s":               {leased(slow, 30*time.Second), (*facts).shortLeases, true},
		"replies of 20 s and the usual lease":               {leased(slow, 0), (*facts).shortLeases, false},
		"slow replies about the attributes alone":           {leased(spell{Kind: slow.Kind, Action: "GetQueueAttributes", Delay: slow.Delay}, 30*time.Second), (*facts).shortLeases, false},
		"a fault while the message waits":                   {leased(slow, 0), troubledFrom(50 * time.Minute), true},
		"a fault that has ended an hour before it was sent": {leased(slow, 0), troubledFrom(2 * time.Hour), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scenario{Messages: []message{{}}}
			r := &record{sent: []sentMessage{{id: "id"}}, processes: []*life{{}}}
			tt.change(s, r)
			if got := tt.excuse(newFacts(s, r)); got != tt.want {
				t.Errorf("excused: %v, want %v", got, tt.want)
			}
		})
	}
}

func anyOriginalLeft(f *facts) bool { return f.originalsLeft(0) > 0 }

func anyCutShort(f *facts) bool { return f.cutShort(0) > 0 }

func troubledFrom(from time.Duration) func(*facts) bool {
	return func(f *facts) bool { return f.troubled(from, from+time.Minute) }
}

// crashed has the process send a copy at one time, and crash at another; 0: never.
func crashed(fault spell, crash, sent time.Duration) func(*scenario, *record) {
	return func(s *scenario, r *record) {
		s.Faults = []spell{fault}
		r.copies = []copied{{at: sent, accepted: true}}
		r.processes[0].crashed, r.processes[0].until = crash > 0, crash
	}
}

func unsettled(id string) func(*scenario, *record) {
	return func(_ *scenario, r *record) { r.processes[0].report = &reprise.Report{Unsettled: []string{id}} }
}

func leased(fault spell, lease time.Duration) func(*scenario, *record) {
	return func(s *scenario, r *record) {
		s.Faults = []spell{fault}
		r.processes[0].settings.Lease = lease
	}
}
