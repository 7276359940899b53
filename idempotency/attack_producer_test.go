package idempotency_test

// Producers may send to the queue, know the ids of others' messages, and may know what these
// hold. Consumers have no signing keys here.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/idempotency"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// claiming is a message of a forger, which claims to be a copy of another.
func claiming(t *testing.T, q *reprisetest.Queue, origin, body string, attributes ...sqsserver.MessageAttribute) sqsserver.SendMessageEntry {
	t.Helper()
	now := time.Now().UnixMilli()
	history, err := json.Marshal(map[string]any{"queue": q.Name(), "origin": origin, "attempt": 1, "sent": now, "first": now, "sentAt": now})
	if err != nil {
		t.Fatal(err)
	}
	return sqsserver.SendMessageEntry{MessageBody: body, MessageAttributes: append(attributes, sqsserver.MessageAttribute{Name: reprise.HistoryAttribute, DataType: "String", StringValue: string(history)})}
}

// TestAttackForgedOrigin: forged messages that claim the origin of a victim, which waits
// behind them, run before it and complete. The victim runs all the same, nobody gets
// another's result, and a genuine duplicate of the victim is none the wiser.
func TestAttackForgedOrigin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var mu sync.Mutex
		ran, told := make(map[string]int), make(map[string][]string)
		once, _ := guard(t, idempotency.NewMemory(idempotency.MemoryConfig{}), idempotency.Config{
			Key: idempotency.ByOrigin, // which is the default
			Duplicate: func(_ context.Context, m *reprise.Message, result []byte) error {
				mu.Lock()
				defer mu.Unlock()
				told[m.Body] = append(told[m.Body], string(result))
				return nil
			},
		})
		attribute := func(value string) sqsserver.MessageAttribute {
			return sqsserver.MessageAttribute{Name: "reply-to", DataType: "String", StringValue: value}
		}
		victim := q.SendMessage(sqsserver.SendMessageEntry{MessageBody: "pay a", MessageAttributes: []sqsserver.MessageAttribute{attribute("a")}, DelaySeconds: sqsserver.Int(60)})
		q.Consume(once(handler(func(ctx context.Context, m *reprise.Message) error {
			who := m.Body + " for " + m.GroupID + "/" + aws.ToString(m.Attributes["reply-to"].StringValue)
			mu.Lock()
			ran[who]++
			mu.Unlock()
			return idempotency.SetResult(ctx, []byte(who))
		})), reprise.Config{})
		group := claiming(t, q, victim, "pay a", attribute("a"))
		group.MessageGroupId = "b"
		for _, e := range []sqsserver.SendMessageEntry{
			claiming(t, q, victim, "pay b", attribute("a")),
			claiming(t, q, victim, "pay a", attribute("b")),
			claiming(t, q, victim, "pay a"),
			group,
		} {
			q.SendMessage(e)
			q.SendMessage(e) // of which the second is a duplicate of the first, and of nothing else
		}
		time.Sleep(30 * time.Second)
		mu.Lock()
		if len(ran) != 4 || ran["pay a for /a"] != 0 {
			t.Errorf("before the victim is due these ran: %v", ran)
		}
		mu.Unlock()
		q.WaitEmpty(time.Hour)
		for who, n := range ran {
			if n != 1 {
				t.Errorf("%s ran %d times", who, n)
			}
		}
		if ran["pay a for /a"] != 1 || len(ran) != 5 {
			t.Errorf("runs %v, want one of the victim and one of each forgery", ran)
		}
		for body, results := range told {
			for _, result := range results {
				if result == "pay a for /a" {
					t.Errorf("a forger of %q was handed the victim's result", body)
				}
			}
		}
	})
}

// TestAttackForgedOriginOfTheSameContent is what stays possible: who knows the victim's
// id and all that it holds can have that very work done, once, before the victim comes.
func TestAttackForgedOriginOfTheSameContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		victim := q.SendMessage(sqsserver.SendMessageEntry{MessageBody: "pay a", DelaySeconds: sqsserver.Int(60)})
		var runs []string
		once, seen := guard(t, idempotency.NewMemory(idempotency.MemoryConfig{}), idempotency.Config{Key: idempotency.ByOrigin})
		q.Consume(once(handler(func(_ context.Context, m *reprise.Message) error {
			runs = append(runs, m.Body)
			return nil
		})), reprise.Config{})
		q.SendMessage(claiming(t, q, victim, "pay a"))
		q.WaitEmpty(time.Hour)
		if kinds := seen(); len(runs) != 1 || len(kinds) != 2 || kinds[1] != idempotency.KindDuplicate {
			t.Errorf("runs %v, events %v; want the work done once", runs, kinds)
		}
	})
}

// FuzzAttackOrigin: two messages have one key only if both ask for the same: origin,
// body, group and attributes.
func FuzzAttackOrigin(f *testing.F) {
	f.Add("id", "body", "group", "name", "value", []byte(nil), "id", "bod", "ygroup", "name", "value", []byte(nil))
	f.Add("id.x", "", "", "", "", []byte(nil), "id", "", "", "", "", []byte(nil))
	f.Add("id", "a", "", "n", "", []byte("v"), "id", "a", "", "n", "v", []byte(nil))
	f.Fuzz(func(t *testing.T, id1, body1, group1, name1, text1 string, bytes1 []byte, id2, body2, group2, name2, text2 string, bytes2 []byte) {
		message := func(id, body, group, name, text string, value []byte) *reprise.Message {
			m := &reprise.Message{ID: "own", OriginID: id, Body: body, GroupID: group}
			if name != "" && name != reprise.HistoryAttribute {
				m.Attributes = map[string]types.MessageAttributeValue{name: {DataType: aws.String("String"), StringValue: &text, BinaryValue: value}}
			}
			return m
		}
		a, b := message(id1, body1, group1, name1, text1, bytes1), message(id2, body2, group2, name2, text2, bytes2)
		same := cmp.Or(id1, "own") == cmp.Or(id2, "own") && body1 == body2 && group1 == group2 && len(a.Attributes) == len(b.Attributes) &&
			(a.Attributes == nil || name1 == name2 && text1 == text2 && bytes.Equal(bytes1, bytes2))
		first, err := idempotency.ByOrigin(a)
		if err != nil || first == "" {
			t.Fatalf("key %q, error %v", first, err)
		}
		if second, _ := idempotency.ByOrigin(b); (first == second) != same {
			t.Errorf("keys %q and %q of %+v and %+v", first, second, a, b)
		}
	})
}

// TestByOriginCostsOneAllocation, the key, whatever the body's size.
func TestByOriginCostsOneAllocation(t *testing.T) {
	for _, size := range []int{0, 1 << 10, 1 << 20} {
		m := &reprise.Message{ID: "5fea7756-0ea4-451a-a703-a558b933e274", Body: string(make([]byte, size)), Attributes: map[string]types.MessageAttributeValue{
			"tenant": {DataType: aws.String("String"), StringValue: aws.String("a")},
			"kind":   {DataType: aws.String("String"), StringValue: aws.String("order")},
		}}
		if n := testing.AllocsPerRun(20, func() {
			if _, err := idempotency.ByOrigin(m); err != nil {
				t.Fatal(err)
			}
		}); n != 1 {
			t.Errorf("%v allocations for a body of %d bytes, want 1", n, size)
		}
	}
}
