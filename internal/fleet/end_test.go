package fleet_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/world"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// checkUnsettled checks the messages that n has left behind.
func (f *fleet) checkUnsettled(n *node, report reprise.Report) {
	if !f.calm {
		return
	}
	for _, id := range report.Unsettled {
		ended := n.ended[id]
		if h := n.newest[id]; h != nil && h.arrived.After(ended) { // it was not run since
			ended = h.arrived
			if len(h.asked) > 0 {
				ended = h.asked[len(h.asked)-1] // it was kept as long as there was time to run it, and then given back
			}
		}
		if since := time.Since(ended); since > 8*n.most+100*time.Millisecond { // a heartbeat, hiding, a copy, a delete
			f.broken(world.NothingUnsettled, nil, "%s was finished on node %d %v before the end", id, n.number, since)
		}
	}
}

// checkCalls checks how many requests n has made.
func (f *fleet) checkCalls(n *node, report reprise.Report) {
	if !f.calm {
		return
	}
	calls, c := report.Calls, report.Counts
	up := time.Since(n.started)
	for _, kind := range []struct {
		name        string
		made, bound int64
	}{
		{"receives", calls.Receives, 2 + 2*c.Received + int64(up/(19*time.Second))},
		{"deletes", calls.Deletes, c.Deleted + c.DeadLettered + c.Requeued + int64(len(report.Unsettled))}, // which may be under way
		{"sends", calls.Sends, c.DeadLettered + 2*c.Kept + c.Requeued + 2*int64(len(report.Unsettled))},
		{"visibility changes", calls.Visibilities, accountedFor(c) + int64(len(report.Unsettled))},
		{"heartbeats", calls.Heartbeats, 4 * (1 + c.Received) * (1 + int64(up/n.cfg.Lease))},
		{"attribute requests", calls.Attributes, 4 + 2*int64(up/(7*time.Minute))}, // of the queue and its dead-letter queue
	} {
		if kind.made > kind.bound {
			f.broken(world.FewCalls, nil, "node %d has made %d %s, %d would do; %+v", n.number, kind.made, kind.name, kind.bound, c)
		}
	}
}

// accountedFor is how many deliveries c says something about.
func accountedFor(c reprise.Counts) int64 {
	return c.Duplicates + c.Deleted + c.Retried + c.Released + c.Parked + c.DeadLettered + c.Kept + c.Lost
}

// checkNothingLeased checks, when all nodes have stopped, that messages are hidden
// only because they are to come again later.
func (f *fleet) checkNothingLeased() {
	messages := f.queue.Messages()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.calm || f.stranded {
		return
	}
	for _, m := range messages {
		p := f.parts[tokenOf(m.Body)]
		if m.Due.After(time.Now()) && m.Due.After(p.hidden.Add(3*time.Second)) {
			f.broken(world.NothingLeased, p, "it is hidden until %s", clock(m.Due))
		}
	}
}

// checkEnd checks what has become of the messages.
func (f *fleet) checkEnd() {
	waiting, dead := f.queue.Messages(), f.dead.Messages()
	f.mu.Lock()
	defer f.mu.Unlock()
	left := make(map[string]bool)
	for _, m := range waiting {
		left[tokenOf(m.Body)] = true
		if f.mustGo(m) {
			f.broken(world.NothingIsLeft, f.parts[tokenOf(m.Body)], "it is %s, due %s", m.State, clock(m.Due))
		}
	}
	told := make(map[string]bool)
	for _, m := range dead {
		told[tokenOf(m.Body)] = true
		f.checkStory(m)
	}
	for _, p := range f.line {
		if !p.handled && !told[p.token] && !left[p.token] {
			f.broken(world.NothingIsLost, p, "it is gone")
		}
	}
}

// checkStory checks a dead letter. The caller holds f.mu.
func (f *fleet) checkStory(m messageInfo) {
	p := f.parts[tokenOf(m.Body)]
	story, told := storyIn(m)
	told = told && !story.Last.Before(p.since) // otherwise that of its life before
	n := f.named[story.Consumer]
	wrong := ""
	switch {
	case !told && m.Source != "" && (!f.calm || len(m.Body) > unsendable):
		// SQS has moved it: its last permitted receiver crashed, lost it, or could not.
	case !told && p.storyless:
	case !told:
		wrong = "it has none"
	case n == nil:
		wrong = "nobody wrote it"
	case story.Origin != p.id && !f.jumped:
		wrong = "its origin is " + p.id
	case story.Source != f.queue.ARN() && story.Source != f.queue.URL():
		wrong = "it was in " + f.queue.ARN()
	case story.Reason == "permanent" && !p.permanent, story.Reason == "skip" && n.cfg.FIFO != reprise.FIFOSkip, story.Reason == "receives" && story.Receives < f.receives, story.Reason == "crash" && f.calm, story.Reason == "age":
		wrong = "the reason is wrong"
	case story.Reason == "attempts" && uint(story.Attempts) < min(uint(n.cfg.Retry.MaxAttempts), uint(f.receives)):
		wrong = fmt.Sprintf("%d attempts at %d receives were permitted", n.cfg.Retry.MaxAttempts, f.receives)
	case story.Error == "" && (story.Reason == "permanent" || story.Reason == "attempts" || story.Reason == "skip"):
		wrong = "there was an error"
	case f.fifo && story.Attempts > p.total, story.Attempts < 1 && (story.Reason == "permanent" || story.Reason == "skip"):
		wrong = fmt.Sprintf("there were %d runs", p.total)
	case f.signed && !f.jumped && !f.signedStory(m):
		wrong = "no node has signed it"
	case !f.jumped && (story.First.Before(story.Sent) || story.Last.Before(story.First) || story.Last.After(time.Now())):
		wrong = "its times are out of order"
	}
	if wrong != "" {
		f.broken(world.StoriesAreTrue, p, "%s: %+v", wrong, story)
	}
	ours := func(a sqsserver.MessageAttribute) bool { return isStory(a) || !told && isHistory(a) }
	if m.Body != p.body || !slices.EqualFunc(slices.DeleteFunc(slices.Clone(m.Attributes), ours), slices.DeleteFunc(slices.Clone(p.attributes), ours), sameAttribute) {
		f.broken(world.KnowsTheMessage, p, "the dead letter is %+v", m)
	}
}

// signedStory reports whether one of the fleet's keys has signed the story of a dead letter.
func (f *fleet) signedStory(m messageInfo) bool {
	letter := &types.Message{Body: &m.Body, MessageAttributes: make(map[string]types.MessageAttributeValue), Attributes: map[string]string{
		string(types.MessageSystemAttributeNameSentTimestamp):  fmt.Sprint(m.Sent.UnixMilli()),
		string(types.MessageSystemAttributeNameMessageGroupId): m.Group,
	}}
	for _, a := range m.Attributes {
		v := types.MessageAttributeValue{DataType: &a.DataType, BinaryValue: a.BinaryValue}
		if a.BinaryValue == nil {
			v.StringValue = &a.StringValue
		}
		letter.MessageAttributes[a.Name] = v
	}
	keys := signingKeys()
	_, trusted, err := reprise.ReadStory(f.dead.URL(), letter, keys[:])
	return trusted && err == nil
}

func sameAttribute(a, b sqsserver.MessageAttribute) bool {
	return a.Name == b.Name && a.DataType == b.DataType && a.StringValue == b.StringValue && bytes.Equal(a.BinaryValue, b.BinaryValue)
}

// storyIn returns the story of a dead letter, if it has one.
func storyIn(m messageInfo) (s reprise.Story, told bool) {
	for _, a := range m.Attributes {
		if a.Name == reprise.StoryAttribute {
			return s, json.Unmarshal([]byte(a.StringValue), &s) == nil
		}
	}
	return s, false
}
