package envelope_test

import (
	"context"
	"testing"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/envelope"
)

func ignore(context.Context, *reprise.Message) error { return nil }

// TestCostOfNoEnvelope: messages that are none cost no allocation.
func TestCostOfNoEnvelope(t *testing.T) {
	h := envelope.Unwrap(all...)(reprise.HandlerFunc(ignore))
	m := &reprise.Message{Body: `{"id":"o-1","sku":"teapot","quantity":3}`}
	if got := testing.AllocsPerRun(1000, func() {
		if err := h.Handle(context.Background(), m); err != nil {
			t.Fatal(err)
		}
	}); got > 0 {
		t.Errorf("%v allocations, want none", got)
	}
}

func BenchmarkUnwrap(b *testing.B) {
	h := envelope.Unwrap(all...)(reprise.HandlerFunc(ignore))
	for name, body := range map[string]string{
		"none":        `{"id":"o-1","sku":"teapot","quantity":3}`,
		"sns":         sample(b, "sns"),
		"eventbridge": sample(b, "eventbridge"),
		"s3":          sample(b, "s3"),
		"cloudevents": sample(b, "cloudevents-json"),
	} {
		b.Run(name, func(b *testing.B) {
			m := &reprise.Message{Body: body}
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := h.Handle(context.Background(), m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
