package fleet_test

import (
	"slices"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// act does what an operator, an autoscaler or fate does to the nodes.
func (f *fleet) act() {
	harmless := []func(){f.rollOut, f.replace, f.pause, f.turn, f.night, f.redrive, f.goOn}
	acts := append(harmless, f.kill, f.kill, f.jump, f.endure, f.wake, f.change)
	if f.calm {
		acts = harmless
	}
	acts[f.random.IntN(len(acts))]()
}

// rollOut restarts all nodes, one after the other, with a new configuration.
func (f *fleet) rollOut() {
	f.configure()
	for i, n := range f.nodes {
		f.stop(n)
		f.nodes[i] = f.start()
		f.wait(20 * time.Second)
	}
}

// replace stops one node and starts up to two.
func (f *fleet) replace() {
	i := f.random.IntN(len(f.nodes))
	f.stop(f.nodes[i])
	f.nodes = slices.Delete(f.nodes, i, i+1)
	for range f.random.IntN(3) {
		f.nodes = append(f.nodes, f.start())
	}
	if len(f.nodes) == 0 {
		f.wait(time.Hour)
		f.nodes = append(f.nodes, f.start())
	}
}

// kill crashes a node and starts another, at once or when the leases have ended.
func (f *fleet) kill() {
	i := f.random.IntN(len(f.nodes))
	f.crash(f.nodes[i])
	f.wait(2 * maxFleetLease)
	f.nodes[i] = f.start()
}

// pause pauses a node.
func (f *fleet) pause() {
	n := f.nodes[f.random.IntN(len(f.nodes))]
	n.Pause()
	f.setPaused(n, time.Now())
	f.wait(10 * time.Minute)
	f.setPaused(n, time.Time{})
	n.Resume()
}

func (f *fleet) setPaused(n *node, since time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n.paused = since
	if since.IsZero() {
		n.resumed = time.Now()
	}
}

// turn changes how many handlers a node runs at once.
func (f *fleet) turn() {
	n := f.nodes[f.random.IntN(len(f.nodes))]
	f.setConcurrency(n, 1+f.random.IntN(20))
}

// wake makes what waits visible.
func (f *fleet) wake() {
	n := f.nodes[f.random.IntN(len(f.nodes))]
	f.mu.Lock()
	f.outages = true
	clear(n.setTimes)
	f.mu.Unlock()
	n.Wake()
}

// night stops all nodes for hours.
func (f *fleet) night() {
	f.withoutNodes(func() {
		if f.through == directly {
			f.wait(12 * time.Hour)
		}
	})
}

// withoutNodes calls do while all nodes are stopped.
func (f *fleet) withoutNodes(do func()) {
	for i, n := range f.nodes {
		f.stop(n)
		f.nodes[i] = nil
	}
	f.checkNothingLeased()
	do()
	for i := range f.nodes {
		f.nodes[i] = f.start()
	}
}

// redrive sends dead letters again, and what waits with a history, as scripts do:
// with all attributes.
func (f *fleet) redrive() {
	f.withoutNodes(func() {
		time.Sleep(3 * time.Minute) // by then a history is too old
		dead, waiting := f.dead.Messages(), f.queue.Messages()
		copies := make(map[string]int)
		for _, m := range slices.Concat(dead, waiting) {
			copies[tokenOf(m.Body)]++
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, m := range dead {
			if copies[tokenOf(m.Body)] == 1 {
				f.sendAgain(f.dead, m)
			}
		}
		for _, m := range waiting {
			if copies[tokenOf(m.Body)] == 1 && slices.ContainsFunc(m.Attributes, isHistory) {
				f.sendAgain(f.queue, m)
			}
		}
	})
}

// sendAgain moves m from a queue to the end of the fleet's: it starts anew. The
// caller holds f.mu.
func (f *fleet) sendAgain(from *reprisetest.Queue, m messageInfo) {
	if err := f.queue.Server().Delete(from.ARN(), m.ID); err != nil {
		f.t.Fatal(err)
	}
	entry := sqsserver.SendMessageEntry{MessageBody: m.Body, MessageAttributes: m.Attributes, MessageGroupId: m.Group}
	if f.fifo {
		entry.MessageDeduplicationId = m.ID
	}
	p := f.parts[tokenOf(m.Body)]
	p.id = f.queue.SendMessage(entry)
	p.attributes = slices.DeleteFunc(slices.Clone(m.Attributes), isHistory)
	p.since = time.Now()
	p.total, p.spared, p.failed = 0, 0, 0
	p.deadly = false
	p.promised, p.hidden = time.Time{}, time.Now()
	f.events = append(f.events, event{time.Now(), p.token, 0, "is sent again"})
}

func isHistory(a sqsserver.MessageAttribute) bool { return a.Name == reprise.HistoryAttribute }
func isStory(a sqsserver.MessageAttribute) bool   { return a.Name == reprise.StoryAttribute }

// goOn lets the nodes work for a while.
func (f *fleet) goOn() {
	if f.through == directly {
		f.wait(4 * time.Hour)
	}
}

// jump moves the server's clock on.
func (f *fleet) jump() {
	f.mu.Lock()
	f.leaky, f.jumped = true, true
	f.mu.Unlock()
	by := time.Duration(f.random.Int64N(int64([]time.Duration{time.Second, time.Minute, time.Hour}[f.random.IntN(3)])))
	if err := f.queue.Server().Advance(by); err != nil {
		f.t.Fatal(err)
	}
}

// endure lets the handlers' dependency fail for a while.
func (f *fleet) endure() {
	f.setOutage(true)
	most := 10 * time.Minute
	if f.through == directly && !(f.cfg.Via == reprise.ViaRequeue && f.multiplies()) {
		most = 2 * time.Hour
	}
	for end := time.Now().Add(time.Duration(f.random.Int64N(int64(most)))); time.Now().Before(end); {
		time.Sleep(min(3*time.Minute, time.Until(end)))
		f.checkProgress()
	}
	f.setOutage(false)
}

// multiplies reports whether each retry by a copy may leave one message more: its original, where deletes are
// confirmed and not carried out, or a second copy, where the replies to sends are lost. After an hour of failures
// there would be thousands of each message.
func (f *fleet) multiplies() bool {
	return f.leaky || slices.ContainsFunc(f.faults, func(r sqsserver.Fault) bool {
		return r.Kind == sqsserver.FaultLoseReply && (r.Action == "" || r.Action == "SendMessageBatch")
	})
}

func (f *fleet) setOutage(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.outage, f.outages = on, true
	if !on {
		f.backSince = time.Now()
	}
}

// change replaces the faults.
func (f *fleet) change() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.disturb()
}
