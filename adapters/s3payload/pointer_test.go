package s3payload_test

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/s3payload"
	"github.com/reprise-sqs/reprise/retry"
)

const (
	class       = "software.amazon.payloadoffloading.PayloadS3Pointer"
	legacyClass = "com.amazon.sqs.javamessaging.MessageS3Pointer"
)

// TestPointersOfTheExtendedClients: every form in which AWS's libraries write a pointer
// is read; the handler gets the body, and neither the attribute nor the pointer.
func TestPointersOfTheExtendedClients(t *testing.T) {
	const payload = "größer"
	at := `{"s3BucketName":"payloads","s3Key":"orders/1"}`
	for _, tt := range []struct {
		name, body string
		attributes []string
	}{
		{"Java", `["` + class + `",` + at + `]`, []string{s3payload.SizeAttribute}},
		{"Java, with its default attribute", `["` + class + `",` + at + `]`, []string{s3payload.LegacySizeAttribute}},
		{"Java, version 1", `["` + legacyClass + `",` + at + `]`, []string{s3payload.LegacySizeAttribute}},
		{"Python", `["` + class + `", {"s3BucketName": "payloads", "s3Key": "orders/1"}]`, []string{s3payload.SizeAttribute}},
		{"Python, legacy", `["` + legacyClass + `", {"s3BucketName": "payloads", "s3Key": "orders/1"}]`, []string{s3payload.LegacySizeAttribute}},
		{"both attributes", `["` + class + `",` + at + `]`, []string{s3payload.SizeAttribute, s3payload.LegacySizeAttribute}},
		{"members that do not exist yet", "[\n\"" + class + `",{"s3Key":"orders/1","s3Region":"eu-west-1","s3BucketName":"payloads"}]`, []string{s3payload.SizeAttribute}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := newStorage()
			store.objects["payloads/orders/1"] = payload
			m := &reprise.Message{ID: "m-1", Attempt: 3, Body: tt.body, Attributes: map[string]types.MessageAttributeValue{"tenant": text("acme")}}
			for _, name := range tt.attributes {
				m.Attributes[name] = number("8")
			}
			var got *reprise.Message
			var from s3payload.Pointer
			h := reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
				from, _ = s3payload.From(ctx)
				return keep(&got).Handle(ctx, m)
			})
			if err := newPayloads(t, store).Fetch(h).Handle(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			if got.Body != payload || got.ID != "m-1" || got.Attempt != 3 || len(got.Attributes) != 1 || *got.Attributes["tenant"].StringValue != "acme" {
				t.Errorf("the handler got %+v", got)
			}
			if want := (s3payload.Pointer{Bucket: "payloads", Key: "orders/1", Size: 8}); from != want {
				t.Errorf("From says %v, want %v", from, want)
			}
			if m.Body != tt.body || len(m.Attributes) != 1+len(tt.attributes) {
				t.Error("the message outside was changed")
			}
		})
	}
}

// TestPointersThatAreRefused: anybody who may send to the queue can have written a pointer. A
// pointer that is malformed or leads elsewhere is dead-lettered with the reason, S3 is not asked,
// and Remove does not follow it.
func TestPointersThatAreRefused(t *testing.T) {
	pointer := func(bucket, key string) string { return pointing(bucket, key, 0).Body }
	for _, tt := range []struct{ name, body, size, want string }{
		{"no JSON", "order", "5", "the body is not a pointer to an object"},
		{"an object", `{"s3BucketName":"payloads","s3Key":"orders/1"}`, "5", "the body is not a pointer"},
		{"an array of one", `["` + class + `"]`, "5", "an array of 1"},
		{"an array of three", `["` + class + `",{"s3BucketName":"payloads","s3Key":"orders/1"},0]`, "5", "an array of 3"},
		{"more behind it", pointer("payloads", "orders/1") + "x", "5", "the body is not a pointer"},
		{"another class", `["java.lang.Runtime",{"s3BucketName":"payloads","s3Key":"orders/1"}]`, "5", `the unknown class "java.lang.Runtime"`},
		{"a number for a key", `["` + class + `",{"s3BucketName":"payloads","s3Key":1}]`, "5", "the body is not a pointer"},
		{"no bucket", `["` + class + `",{"s3Key":"orders/1"}]`, "5", "without s3BucketName or s3Key"},
		{"no key", pointer("payloads", ""), "5", "without s3BucketName or s3Key"},
		{"no number", pointer("payloads", "orders/1"), "five", `is "five": want a number of bytes`},
		{"no size", pointer("payloads", "orders/1"), "", `is "": want a number`},
		{"a negative size", pointer("payloads", "orders/1"), "-5", `is "-5"`},
		{"too large", pointer("payloads", "orders/1"), "67108865", "its 67108865 bytes are more than Config.MaxSize, 67108864"},
		{"another bucket", pointer("secrets", "orders/1"), "5", `names "s3://secrets/orders/1", which Config does not permit: if payloads are kept there, add the place to Config.Allow`},
		{"another prefix", pointer("payloads", "invoices/1"), "5", "which Config does not permit"},
		{"the allowed bucket's other prefix", pointer("archive", "2025/1"), "5", "which Config does not permit"},
		{"out of the prefix", pointer("payloads", "orders/../invoices/1"), "5", "contains . or .. between slashes"},
		{"a key that S3 would not take", pointer("payloads", "orders/"+strings.Repeat("k", 1018)), "5", "has 1025 bytes"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := newStorage()
			p := newPayloads(t, store, func(c *s3payload.Config) { c.Allow = []s3payload.Location{{Bucket: "archive", Prefix: "2026/"}} })
			m := &reprise.Message{ID: "m-1", Body: tt.body, Attributes: map[string]types.MessageAttributeValue{s3payload.SizeAttribute: number(tt.size)}}
			var got *reprise.Message
			err := p.Fetch(keep(&got)).Handle(t.Context(), m)
			if got != nil || err == nil || reasonOf(err) != retry.ReasonPermanent || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %s", err, tt.want)
			}
			if store.count("get") > 0 {
				t.Error("S3 was asked for it")
			}
			if tt.name == "too large" {
				return // a pointer outside of Config may still be well-formed
			}
			p.Remove(t.Context(), m)
			if store.count("delete") > 0 || p.Stats().NotRemoved != 1 {
				t.Errorf("%d deletes, %+v: want none, and that it was noticed", store.count("delete"), p.Stats())
			}
		})
	}
}

// reasonOf returns the reason for which a policy gives a message up whose handler fails with this
// error.
func reasonOf(err error) retry.Reason {
	return (retry.Policy{}).Decide(retry.Failure{N: 1, Err: err}).Reason
}

// TestAllowedLocations: objects in the locations of Config.Allow are read and removed.
func TestAllowedLocations(t *testing.T) {
	store := newStorage()
	p := newPayloads(t, store, func(c *s3payload.Config) {
		c.Allow = []s3payload.Location{{Bucket: "archive", Prefix: "2026/"}, {Bucket: "all"}}
	})
	for _, place := range []string{"payloads/orders/1", "archive/2026/1", "all/123e4567-e89b-42d3-a456-426614174000"} {
		store.objects[place] = "order"
		bucket, key, _ := strings.Cut(place, "/")
		m := pointing(bucket, key, 5)
		var got *reprise.Message
		if err := p.Fetch(keep(&got)).Handle(t.Context(), m); err != nil || got.Body != "order" {
			t.Errorf("%s: %v", place, err)
		}
		if got.Attributes != nil {
			t.Errorf("%s: the handler got the attributes %v, want none", place, got.Attributes)
		}
		p.Remove(t.Context(), m)
	}
	if left := store.keys(); len(left) > 0 {
		t.Errorf("%v are left", left)
	}
	if diff := cmp.Diff(s3payload.Stats{Fetched: 3, Removed: 3}, p.Stats()); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
}

// TestMessagesWithTheirBody: messages that contain their body pass unchanged, whatever it looks
// like.
func TestMessagesWithTheirBody(t *testing.T) {
	store := newStorage()
	p := newPayloads(t, store)
	for _, m := range []*reprise.Message{
		{Body: "order"},
		{Body: pointing("payloads", "orders/1", 5).Body},
		{Body: "order", Attributes: map[string]types.MessageAttributeValue{"tenant": text("acme")}},
	} {
		var got *reprise.Message
		h := reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
			if from, ok := s3payload.From(ctx); ok {
				t.Errorf("From says %v", from)
			}
			return keep(&got).Handle(ctx, m)
		})
		if err := p.Fetch(h).Handle(t.Context(), m); err != nil || got != m {
			t.Errorf("got %+v, %v", got, err)
		}
		p.Remove(t.Context(), m)
	}
	if store.count("get")+store.count("delete") > 0 {
		t.Error("S3 was called")
	}
}

// TestSplitHandle: the handles of the Java and the Python library are taken apart, those
// of SQS are not.
func TestSplitHandle(t *testing.T) {
	at := s3payload.Pointer{Bucket: "payloads", Key: "orders/0b-1"}
	for handle, want := range map[string]struct {
		original string
		pointer  s3payload.Pointer
		ok       bool
	}{
		"-..s3BucketName..-payloads-..s3BucketName..--..s3Key..-orders/0b-1-..s3Key..-AQEBwJ/+=": {"AQEBwJ/+=", at, true},
		"AQEBwJ/+=":          {"AQEBwJ/+=", s3payload.Pointer{}, false},
		"":                   {"", s3payload.Pointer{}, false},
		"-..s3BucketName..-": {"-..s3BucketName..-", s3payload.Pointer{}, false},
		"-..s3BucketName..-payloads-..s3BucketName..-AQEB":                                    {"-..s3BucketName..-payloads-..s3BucketName..-AQEB", s3payload.Pointer{}, false},
		"AQEB-..s3BucketName..-payloads-..s3BucketName..--..s3Key..-orders/0b-1-..s3Key..-AQ": {"AQEB-..s3BucketName..-payloads-..s3BucketName..--..s3Key..-orders/0b-1-..s3Key..-AQ", s3payload.Pointer{}, false},
	} {
		original, pointer, ok := s3payload.SplitHandle(handle)
		if original != want.original || pointer != want.pointer || ok != want.ok {
			t.Errorf("%q: got %q, %v, %v", handle, original, pointer, ok)
		}
	}
}

// FuzzFetch: for no message is an object requested that is not permitted, and nothing panics.
func FuzzFetch(f *testing.F) {
	f.Add(pointing("payloads", "orders/1", 0).Body, "5")
	f.Add(pointing("payloads", "orders/../1", 0).Body, "5")
	f.Add(`["`+legacyClass+`", {"s3BucketName": "payloads", "s3Key": "orders/\u0031"}]`, "-0")
	f.Add(`[null,null]`, "")
	f.Fuzz(func(t *testing.T, body, size string) {
		store := newStorage()
		store.objects["payloads/orders/1"] = "order"
		p := newPayloads(t, watched{store, t})
		m := &reprise.Message{Body: body, Attributes: map[string]types.MessageAttributeValue{s3payload.SizeAttribute: number(size)}}
		var got *reprise.Message
		err := p.Fetch(keep(&got)).Handle(t.Context(), m)
		switch {
		case err != nil && (got != nil || reasonOf(err) != retry.ReasonPermanent):
			t.Fatalf("%v, and the handler ran: %v", err, got != nil)
		case err == nil && got.Body != "order":
			t.Fatalf("the handler got %q", got.Body)
		}
		p.Remove(t.Context(), m)
	})
}
