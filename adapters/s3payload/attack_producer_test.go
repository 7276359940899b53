// This file holds off a producer that may send to one queue: by a pointer that it has
// written itself, a consumer must not read or delete, with its own permissions, what the
// producer may not.

package s3payload_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/s3payload"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

const aUUID = "123e4567-e89b-42d3-a456-426614174000"

// TestAttackForgedPointer: an object outside of the bucket and the prefix that are
// configured is neither read nor deleted, and the message is refused for good.
func TestAttackForgedPointer(t *testing.T) {
	for _, at := range []string{
		"secrets/orders/" + aUUID, "payloads/invoices/" + aUUID, "payloads/orders/../invoices/" + aUUID, "payloads/" + aUUID,
		"payloads//orders/" + aUUID, "payloads/orders", "payloads/Orders/" + aUUID, "PAYLOADS/orders/" + aUUID,
		"arn:aws:s3:eu-west-1:1:accesspoint/x/orders/" + aUUID, "payloads/orders/./x", "payloads/orders/..",
	} {
		t.Run(at, func(t *testing.T) {
			store := newStorage()
			store.objects[at] = "secret"
			bucket, key, _ := strings.Cut(at, "/")
			var got *reprise.Message
			m := pointing(bucket, key, len("secret"))
			p := newPayloads(t, store)
			err := p.Fetch(keep(&got)).Handle(t.Context(), m)
			p.Remove(t.Context(), m)
			if err == nil || got != nil || reasonOf(err) != retry.ReasonPermanent || !strings.Contains(err.Error(), "the pointer") {
				t.Errorf("error %v", err)
			}
			if store.count("get")+store.count("delete") > 0 || p.Stats().NotRemoved != 1 {
				t.Errorf("%d objects read, %d deleted", store.count("get"), store.count("delete"))
			}
		})
	}
}

// TestAttackForgedPointerOfAConsumer: the consumer of a queue dead-letters such a message
// with the reason, and nothing is deleted after it.
func TestAttackForgedPointerOfAConsumer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStorage()
		store.objects["secrets/key"] = "secret"
		p := newPayloads(t, watched{store, t})
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(5)
		q.SendMessage(sqsserver.SendMessageEntry{
			MessageBody:       pointing("secrets", "key", 6).Body,
			MessageAttributes: []sqsserver.MessageAttribute{{Name: s3payload.SizeAttribute, DataType: "Number", StringValue: "6"}},
		})
		q.Consume(p.Fetch(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			t.Error("the handler ran")
			return nil
		})), reprise.Config{AfterDelete: p.Remove})
		q.WaitEmpty(time.Minute)
		if story := storyOf(t, dead.Messages()[0]); story.Reason != "permanent" || !strings.Contains(story.Error, "where Config permits nothing") {
			t.Errorf("the story is %+v", story)
		}
		if len(store.keys()) != 1 {
			t.Error("the object is gone")
		}
	})
}

// TestAttackDeleteByGuess: in a bucket without a prefix for payloads, an object whose
// name can be guessed is not deleted; one with the name of a payload is, and under a
// prefix every one, as it is a payload.
func TestAttackDeleteByGuess(t *testing.T) {
	for _, test := range []struct {
		prefix, key string
		goes        bool
	}{
		{"", "backups/2026-11-23.sql", false},
		{"", "index.html", false},
		{"", aUUID[:35] + "g", false},
		{"", "x", false},
		{"", strings.ReplaceAll(aUUID, "-", "0"), false},
		{"", aUUID, true},
		{"", "team/" + strings.ToUpper(aUUID), true},
		{"orders/", "orders/of-its-sender", true},
	} {
		store := newStorage()
		store.objects["payloads/"+test.key] = "x"
		p := newPayloads(t, store, func(c *s3payload.Config) { c.Prefix = test.prefix })
		p.Remove(t.Context(), pointing("payloads", test.key, 1))
		if gone := len(store.keys()) == 0; gone != test.goes || p.Stats().NotRemoved == 1 == test.goes {
			t.Errorf("prefix %q, key %q: gone %v, want %v", test.prefix, test.key, gone, test.goes)
		}
	}
}

// TestAttackSizeOfAnObject: how much is read and held is bounded by Config, not by what
// the message or the reply says.
func TestAttackSizeOfAnObject(t *testing.T) {
	for _, said := range []string{"1001", "9223372036854775807", "99999999999999999999", "1e9", "5"} {
		store := newStorage()
		store.objects["payloads/orders/1"] = strings.Repeat("x", 1<<20)
		store.unsized = true
		p := newPayloads(t, store, func(c *s3payload.Config) { c.MaxSize = 1000 })
		m := pointing("payloads", "orders/1", 0)
		m.Attributes = map[string]types.MessageAttributeValue{s3payload.SizeAttribute: number(said)}
		var got *reprise.Message
		err := p.Fetch(keep(&got)).Handle(t.Context(), m)
		if err == nil || got != nil || reasonOf(err) != retry.ReasonPermanent || len(err.Error()) > 500 {
			t.Errorf("of %s bytes: %v", said, err)
		}
	}
}

// TestAttackNestedPointer: an object that is a pointer itself is not followed.
func TestAttackNestedPointer(t *testing.T) {
	store := newStorage()
	inner := pointing("secrets", "key", 6)
	store.objects["secrets/key"] = "secret"
	store.objects["payloads/orders/1"] = inner.Body
	p := newPayloads(t, watched{store, t})
	var got *reprise.Message
	if err := p.Fetch(p.Fetch(keep(&got))).Handle(t.Context(), pointing("payloads", "orders/1", len(inner.Body))); err != nil || got.Body != inner.Body {
		t.Errorf("%v, %+v", err, got)
	}
}
