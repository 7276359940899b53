package repriselambda_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// sendTo sends a message for each body, which begins with its group and a dot.
func sendTo(q *reprisetest.Queue, bodies ...string) {
	for i, body := range bodies {
		q.SendMessage(sqsserver.SendMessageEntry{MessageBody: body, MessageGroupId: body[:1], MessageDeduplicationId: strconv.Itoa(i)})
	}
}

// journal notes what ran.
type journal struct {
	mu  sync.Mutex
	ran map[string][]string // by group
}

func (j *journal) note(m *reprise.Message) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.ran == nil {
		j.ran = make(map[string][]string)
	}
	j.ran[m.GroupID] = append(j.ran[m.GroupID], m.Body)
}

// TestGroupStopsAtItsFirstFailure: what is behind a failed message is not run, is
// returned with it, and is hidden no longer than it; other groups go on.
func TestGroupStopsAtItsFirstFailure(t *testing.T) {
	inModes(t, modes, func(t *testing.T, in mode) {
		q := reprisetest.NewQueue(t, map[string]string{"FifoQueue": "true"})
		sendTo(q, "a.1", "b.1", "a.2", "a.3", "b.2", "a.4", "c.1")
		var j journal
		fails := true
		m := in.newMapping(t, q, func(_ context.Context, m *reprise.Message) error {
			j.note(m)
			if m.Body == "a.2" && fails {
				return errors.New("as told")
			}
			return nil
		}, repriselambda.Config{Retry: every40})
		if diff := cmp.Diff([]string{"a.2", "a.3", "a.4"}, m.invoke()); diff != "" {
			t.Errorf("failed (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string]time.Duration{"a.2": 40 * time.Second, "a.3": 40 * time.Second, "a.4": 40 * time.Second}, waits(q, time.Now())); diff != "" {
			t.Errorf("hidden for (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(calls{Attributes: 1, Visibilities: 2, Hidden: 3}, m.client.calls()); diff != "" {
			t.Errorf("calls: the failed message is hidden first, what is behind it when that is confirmed (-want +got):\n%s", diff)
		}
		fails = false
		time.Sleep(41 * time.Second)
		if diff := cmp.Diff([]string{}, m.invoke()); diff != "" {
			t.Errorf("failed the second time (-want +got):\n%s", diff)
		}
		want := map[string][]string{"a": {"a.1", "a.2", "a.2", "a.3", "a.4"}, "b": {"b.1", "b.2"}, "c": {"c.1"}}
		if diff := cmp.Diff(want, j.ran); diff != "" {
			t.Errorf("ran (-want +got):\n%s", diff)
		}
	})
}

// TestGroupGoesOnBehindADeadLetter, and has the function's time for it.
func TestGroupGoesOnBehindADeadLetter(t *testing.T) {
	inModes(t, modes, func(t *testing.T, in mode) {
		q := reprisetest.NewQueue(t, map[string]string{"FifoQueue": "true"})
		dead := q.NewDeadLetterQueue(10)
		sendTo(q, "a.1", "a.2", "a.3")
		var j journal
		m := in.newMapping(t, q, func(_ context.Context, m *reprise.Message) error {
			j.note(m)
			if m.Body == "a.1" {
				return reprise.Permanent(errors.New("as told"))
			}
			time.Sleep(10 * time.Second)
			return nil
		}, repriselambda.Config{})
		if diff := cmp.Diff([]string{}, m.invoke()); diff != "" {
			t.Errorf("failed (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string][]string{"a": {"a.1", "a.2", "a.3"}}, j.ran); diff != "" {
			t.Errorf("ran (-want +got):\n%s", diff)
		}
		if letters := dead.Messages(); len(letters) != 1 || letters[0].Body != "a.1" || letters[0].Group != "a" {
			t.Errorf("dead letters: %+v", letters)
		}
		if diff := cmp.Diff(calls{Attributes: 2, Sends: 1}, m.client.calls()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

// TestGroupOfAnUnknownVisibility: where SQS does not confirm that the failed message
// is hidden, as without the permission, the group comes back all the same, after the
// queue's own timeout, and nothing of it runs. That is tried for some seconds when
// nothing else is left to do, not until the function's time is over.
func TestGroupOfAnUnknownVisibility(t *testing.T) {
	inModes(t, modes, func(t *testing.T, in mode) {
		q := reprisetest.NewQueue(t, map[string]string{"FifoQueue": "true"})
		sendTo(q, "a.0", "a.1", "a.2", "b.1")
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Action: "ChangeMessageVisibilityBatch"})
		var j journal
		m := in.newMapping(t, q, func(_ context.Context, m *reprise.Message) error {
			j.note(m)
			if m.Body == "b.1" {
				time.Sleep(20 * time.Second)
			}
			if m.Body == "a.1" {
				time.Sleep(time.Second) // what is before it in its group has been decided by then
				return errors.New("as told")
			}
			return nil
		}, repriselambda.Config{Retry: every40})
		began := time.Now()
		if diff := cmp.Diff([]string{"a.1", "a.2"}, m.invoke()); diff != "" {
			t.Errorf("failed (-want +got):\n%s", diff)
		}
		if took := time.Since(began); took < 20*time.Second || took > 27*time.Second {
			t.Errorf("the function spent %v on it", took)
		}
		if diff := cmp.Diff(map[string]time.Duration{"a.1": visibility, "a.2": visibility}, waits(q, began)); diff != "" {
			t.Errorf("hidden for (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[string][]string{"a": {"a.0", "a.1"}, "b": {"b.1"}}, j.ran); diff != "" {
			t.Errorf("ran (-want +got):\n%s", diff)
		}
	})
}
