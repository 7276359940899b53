package sqsserver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

func delayed(in *sqsserver.SendMessageInput) { in.DelaySeconds = sqsserver.Int(600) }

// states returns the state of each message by its body.
func (b *testServer) states() map[string]sqsserver.MessageInfo {
	b.Helper()
	all, err := b.server.Messages("q", sqsserver.Page{})
	if err != nil {
		b.Fatal(err)
	}
	byBody := make(map[string]sqsserver.MessageInfo)
	for _, m := range all {
		byBody[m.Body] = m
	}
	return byBody
}

// TestEndDelay: a delayed message is visible at once, whoever has delayed it; others are refused, and stay as they are.
func TestEndDelay(t *testing.T) {
	b := newTestServer(t, nil)
	b.send("in flight")
	b.receiveOne()
	b.send("by its sender", delayed)
	b.send("by an operator")
	b.send("visible")
	before := b.states()
	if err := b.server.Hide("q", before["by an operator"].ID, time.Hour); err != nil {
		t.Fatal(err)
	}
	for body, m := range b.states() {
		if later := body == "by an operator"; m.DelayedLater != later {
			t.Errorf("%s: that an operator has delayed it is %v", body, m.DelayedLater)
		}
		err := b.server.EndDelay("q", m.ID)
		if strings.HasPrefix(body, "by ") != (err == nil) || err != nil && !strings.Contains(err.Error(), "it is not delayed") {
			t.Errorf("%s: %v", body, err)
		}
	}
	for body, m := range b.states() {
		if (body == "in flight") != (m.State == sqsserver.InFlight) || m.State == sqsserver.Delayed || m.DelayedLater {
			t.Errorf("%s is %s", body, m.State)
		}
	}
	if err := b.server.EndDelay("q", "00000000-0000-4000-8000-000000000000"); err == nil || !strings.Contains(err.Error(), "no such message") {
		t.Errorf("an unknown message: %v", err)
	}
}

// TestEndDelays: of the delayed messages, each shown once, the chosen ones become visible. One that somebody receives
// after it was shown stays with its receiver.
func TestEndDelays(t *testing.T) {
	b := newTestServer(t, nil)
	b.send("in flight")
	b.receiveOne()
	b.send("visible")
	const many = 5000 // more than are looked at under the lock at a time
	for n := range many {
		b.send(fmt.Sprint(n), delayed)
	}
	shown := make(map[string]bool)
	var first string
	ended, err := b.server.EndDelays(t.Context(), "q", func(m *sqsserver.MessageInfo) bool {
		if m.State != sqsserver.Delayed || shown[m.ID] || m.Body != "" || m.DelayedLater {
			t.Errorf("%+v is shown", m)
		}
		if shown[m.ID] = true; len(shown) == 1 { // its delay ends, and somebody receives it and the visible one
			first = m.ID
			if err := b.server.EndDelay("q", m.ID); err != nil {
				t.Error(err)
			}
			for range 2 {
				if received := b.receiveOne(); len(received) != 1 {
					t.Errorf("received %v", received)
				}
			}
			return true
		}
		return len(shown)%2 == 0
	})
	if err != nil || len(shown) != many || len(ended) != many/2 {
		t.Fatalf("%d of %d ended: %v", len(ended), len(shown), err)
	}
	count := make(map[sqsserver.MessageState]int)
	for _, m := range b.states() {
		count[m.State]++
		if m.ID == first && m.State != sqsserver.InFlight {
			t.Errorf("a message that was received meanwhile is %s", m.State)
		}
	}
	if count[sqsserver.Visible] != many/2 || count[sqsserver.InFlight] != 3 || count[sqsserver.Delayed] != many/2-1 {
		t.Errorf("%v", count)
	}
}

// TestEndDelaysEndsEarly: when its context ends it changes nothing more, and says what it has changed; a queue that does not
// exist is an error.
func TestEndDelaysEndsEarly(t *testing.T) {
	b := newTestServer(t, nil)
	const many = 1000
	for n := range many {
		b.send(fmt.Sprint(n), delayed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	shown := 0
	ended, err := b.server.EndDelays(ctx, "q", func(*sqsserver.MessageInfo) bool {
		if shown++; shown == 100 {
			cancel()
		}
		return true
	})
	if !errors.Is(err, context.Canceled) || len(ended) != shown || shown < 100 || shown > 200 {
		t.Errorf("%d of %d ended: %v", len(ended), shown, err)
	}
	if visible := b.server.Queues()[0].Visible; visible != len(ended) {
		t.Errorf("%d are visible, want %d", visible, len(ended))
	}
	if _, err := b.server.EndDelays(t.Context(), "nothing", nil); err == nil || !strings.Contains(err.Error(), `queue "nothing"`) {
		t.Errorf("no queue: %v", err)
	}
}

// TestDelaysAfterARestart: whether a message is delayed, and by whom, is in the journal.
func TestDelaysAfterARestart(t *testing.T) {
	k := openJournalServer(t, newMemoryJournal(), sqsserver.Config{BodyCache: -1})
	k.create("q", nil)
	for _, delay := range []int32{0, 600, 600, 600} {
		in := &sqsserver.SendMessageInput{QueueUrl: k.url("q")}
		in.MessageBody, in.DelaySeconds = "body", sqsserver.Int(delay)
		if _, err := k.SendMessage(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	sent, err := k.Messages("q", sqsserver.Page{})
	if err == nil {
		err = k.Hide("q", sent[0].ID, time.Hour)
	}
	if err == nil {
		err = k.EndDelay("q", sent[1].ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	if ended, err := k.EndDelays(t.Context(), "q", func(m *sqsserver.MessageInfo) bool { return m.ID == sent[2].ID }); err != nil || len(ended) != 1 || ended[0] != sent[2].ID {
		t.Fatalf("ended %v, %v", ended, err)
	}
	k = k.restart()
	got, err := k.Messages("q", sqsserver.Page{})
	if err != nil || len(got) != 4 {
		t.Fatal(got, err)
	}
	for i, want := range []sqsserver.MessageState{sqsserver.Delayed, sqsserver.Visible, sqsserver.Visible, sqsserver.Delayed} {
		if got[i].State != want || got[i].DelayedLater != (i == 0) {
			t.Errorf("message %d is %s, delayed later %v", i, got[i].State, got[i].DelayedLater)
		}
	}
}
