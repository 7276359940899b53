package s3payload_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestPayloadsUnderFaults: a hundred messages meet all faults of SQS and S3, handlers that fail,
// retries by hiding and by copies, and consumers that are killed. No object is deleted before the
// work of its message is done, so that no work is lost because its payload is missing. Only objects
// stay that a message points to, or that could not be removed.
func TestPayloadsUnderFaults(t *testing.T) {
	for _, via := range []reprise.Via{reprise.ViaAuto, reprise.ViaRequeue} {
		t.Run(via.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { payloadsUnderFaults(t, via) })
		})
	}
}

func payloadsUnderFaults(t *testing.T, via reprise.Via) {
	const messages = 100
	q := reprisetest.NewQueue(t, nil)
	dead := q.NewDeadLetterQueue(1000)
	store := newStorage()
	p := newPayloads(t, store)
	orders := make([]reprise.Outgoing, messages)
	for i := range orders {
		orders[i].Body = fmt.Sprintf("%02d%s", i, strings.Repeat(" order", 100))
	}
	if _, err := p.Send(t.Context(), newSender(t, q), orders...); err != nil {
		t.Fatal(err)
	}

	var mu sync.Mutex
	runs, done := make(map[string]int), make(map[string]bool)
	store.deleting = func(at string) {
		mu.Lock()
		defer mu.Unlock()
		if body := store.objects[at]; body != "" && !done[body[:2]] {
			t.Errorf("the payload of %s goes before its work is done", body[:2])
		}
	}
	q.Fault(
		sqsserver.Fault{Kind: sqsserver.FaultLoseReply, Action: "DeleteMessageBatch", Every: 3, Limit: 20},
		sqsserver.Fault{Kind: sqsserver.FaultLoseReply, Action: "SendMessageBatch", Every: 4, Limit: 20},
		sqsserver.Fault{Kind: sqsserver.FaultThrottle, Every: 7, Limit: 50},
		sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Every: 9, Limit: 50},
		sqsserver.Fault{Kind: sqsserver.FaultDuplicate, Every: 11, Limit: 20},
		sqsserver.Fault{Kind: sqsserver.FaultLoseLease, Every: 13, Limit: 20},
		sqsserver.Fault{Kind: sqsserver.FaultLoseDelete, Every: 17, Limit: 20},
	)
	handler := p.Fetch(reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
		mu.Lock()
		defer mu.Unlock()
		name := m.Body[:2]
		if runs[name]++; name[0] == '7' {
			return reprise.Permanent(errWarehouse)
		}
		if runs[name] <= int(name[1]-'0')/3 {
			return errWarehouse
		}
		done[name] = true
		return nil
	}))
	start := func() *reprisetest.Consumer {
		return q.Consume(handler, reprise.Config{Via: via, Retry: retry.Policy{Backoff: retry.Constant(5 * time.Second)}, Outage: reprise.Outage{Off: true}, AfterDelete: p.Remove})
	}
	for range 6 {
		store.fail("get", errBroken, reply("SlowDown", smithy.FaultServer), reply("AccessDenied", smithy.FaultClient))
		store.fail("delete", errBroken)
		c := start()
		time.Sleep(7 * time.Second)
		c.Crash()
	}
	start()
	q.WaitEmpty(24 * time.Hour)
	time.Sleep(time.Minute)

	mu.Lock()
	defer mu.Unlock()
	pointed := make(map[string]bool)
	for _, letter := range dead.Messages() {
		story := storyOf(t, letter)
		if !strings.Contains(story.Error, "NoSuchKey") {
			pointed[letter.Body] = true
		}
	}
	if len(done) != 90 {
		t.Errorf("the work of %d messages is done, want 90", len(done))
	}
	if len(pointed) != 10 {
		t.Errorf("%d payloads have dead letters, want 10", len(pointed))
	}
	left := 0
	for at, body := range store.objects {
		_, key, _ := strings.Cut(at, "/")
		kept := false
		for letter := range pointed {
			kept = kept || strings.Contains(letter, key)
		}
		switch {
		case body[0] == '7' && !kept:
			t.Errorf("no dead letter points to %s", at)
		case body[0] != '7':
			left++
		}
	}
	t.Logf("%d of %d payloads are the lifecycle rule's: %d could not be removed, the others' consumers were killed first", left, messages, p.Stats().NotRemoved)
	if left > messages/3 {
		t.Errorf("%d payloads are left of work that is done", left)
	}
}
