package s3payload_test

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
)

// TestCostOfMessagesWithTheirBody: for a message that contains its body, Fetch and Remove make no
// call and allocate nothing.
func TestCostOfMessagesWithTheirBody(t *testing.T) {
	p := newPayloads(t, newStorage())
	h := p.Fetch(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return nil }))
	for _, m := range []*reprise.Message{
		{Body: "order"},
		{Body: "order", Attributes: map[string]types.MessageAttributeValue{"tenant": text("acme")}},
	} {
		if n := testing.AllocsPerRun(1000, func() {
			if err := h.Handle(context.Background(), m); err != nil {
				t.Fatal(err)
			}
			p.Remove(context.Background(), m)
		}); n != 0 {
			t.Errorf("%v allocations for a message with %d attributes, want none", n, len(m.Attributes))
		}
	}
}

// TestCostOfSmallMessages: sending a message that is not offloaded costs nothing more.
func TestCostOfSmallMessages(t *testing.T) {
	p := newPayloads(t, newStorage())
	m := reprise.Outgoing{Body: "order", Attributes: map[string]types.MessageAttributeValue{"tenant": text("acme")}}
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := p.Offload(context.Background(), m); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func BenchmarkFetch(b *testing.B) {
	store := newStorage()
	store.objects["payloads/orders/1"] = "order"
	h := newPayloads(b, store).Fetch(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return nil }))
	for name, m := range map[string]*reprise.Message{"body": {Body: "order"}, "pointer": pointing("payloads", "orders/1", 5)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := h.Handle(context.Background(), m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
