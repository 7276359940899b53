package s3payload_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/s3payload"
	"github.com/reprise-sqs/reprise/middleware"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

const uuid = `[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`

// TestNewRefuses: New reports all settings that cannot work in one error.
func TestNewRefuses(t *testing.T) {
	_, err := s3payload.New(nil, s3payload.Config{Prefix: "größer/", Allow: []s3payload.Location{{Prefix: "x"}}, Threshold: 1<<20 + 1, MaxSize: -1, Timeout: -1})
	for _, want := range []string{
		"the S3 client is nil",
		"Config.Bucket is empty: name the bucket",
		`Config.Prefix is "größer/": use letters, digits and ./_- only`,
		"Config.Allow[0].Bucket is empty",
		"Config.Threshold is 1048577: set 1 to 1048576 bytes, 0 for 262144, or a negative number",
		"Config.MaxSize is -1",
		"Config.Timeout is -1ns",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

// TestPrefixes: prefixes are checked by the rules of AWS's library for Java.
func TestPrefixes(t *testing.T) {
	for prefix, want := range map[string]string{
		"":                        "",
		"orders/2026_a-b.c/":      "",
		strings.Repeat("p", 988):  "",
		strings.Repeat("p", 989):  "use at most 988",
		"/orders":                 "begin it with",
		".orders":                 "begin it with",
		"orders/../":              "no two dots in a row",
		"orders and invoices/":    "use letters, digits",
		"orders\x00":              "use letters, digits",
		"orders\\":                "use letters, digits",
		"Bestellungen-für-heute/": "use letters, digits",
	} {
		_, err := s3payload.New(newStorage(), s3payload.Config{Bucket: "payloads", Prefix: prefix})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%.50q: %v, want %q", prefix, err, want)
		}
	}
}

// TestOffload: a message that is too large becomes exactly the message that AWS's library for Java
// writes.
func TestOffload(t *testing.T) {
	store := newStorage()
	p := newPayloads(t, store)
	body := strings.Repeat("größer ", 20)
	m := reprise.Outgoing{Body: body, Attributes: map[string]types.MessageAttributeValue{"tenant": text("acme")}, GroupID: "g", DeduplicationID: "d", Delay: time.Minute, TraceHeader: "t"}
	got, err := p.Offload(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	golden := regexp.MustCompile(`^\["software\.amazon\.payloadoffloading\.PayloadS3Pointer",\{"s3BucketName":"payloads","s3Key":"(orders/` + uuid + `)"\}\]$`)
	match := golden.FindStringSubmatch(got.Body)
	if match == nil {
		t.Fatalf("the body is %s", got.Body)
	}
	if store.objects["payloads/"+match[1]] != body || len(store.objects) != 1 {
		t.Errorf("S3 has %v", store.keys())
	}
	if size := got.Attributes["ExtendedPayloadSize"]; len(got.Attributes) != 2 || *size.DataType != "Number" || *size.StringValue != strconv.Itoa(len(body)) || *got.Attributes["tenant"].StringValue != "acme" {
		t.Errorf("the attributes are %v", got.Attributes)
	}
	if got.GroupID != "g" || got.DeduplicationID != "d" || got.Delay != time.Minute || got.TraceHeader != "t" {
		t.Errorf("the rest is %+v", got)
	}
	if len(m.Attributes) != 1 {
		t.Error("the caller's map was changed")
	}
	again, err := p.Offload(t.Context(), got)
	if err != nil || again.Body != got.Body || len(again.Attributes) != 2 || store.count("put") != 1 {
		t.Errorf("a pointer became %+v, %v", again, err)
	}
}

// TestThreshold: the size is that of the body and of the attributes, as SQS counts them.
func TestThreshold(t *testing.T) {
	attributes := map[string]types.MessageAttributeValue{
		"tenant": text("größer"),                                          // 6+6+8
		"digest": {DataType: new("Binary"), BinaryValue: make([]byte, 8)}, // 6+6+8
	}
	for _, tt := range []struct {
		name       string
		threshold  int
		body       int
		attributes map[string]types.MessageAttributeValue
		want       bool
	}{
		{"the default", 0, 256 << 10, nil, false},
		{"more than the default", 0, 256<<10 + 1, nil, true},
		{"with attributes", 140, 100, attributes, false},
		{"more with attributes", 140, 101, attributes, true},
		{"SQS's limit", 1 << 20, 1 << 20, nil, false},
		{"more than SQS's limit", 1 << 20, 1<<20 + 1, nil, true},
		{"everything", -1, 1, nil, true},
		{"everything, a pointer's length", -1, 120, attributes, true},
		{"an empty body, which SQS does not take", -1, 0, nil, false},
	} {
		store := newStorage()
		p := newPayloads(t, store, func(c *s3payload.Config) { c.Threshold = tt.threshold })
		got, err := p.Offload(t.Context(), reprise.Outgoing{Body: strings.Repeat("b", tt.body), Attributes: tt.attributes})
		if _, pointer := got.Attributes[s3payload.SizeAttribute]; err != nil || pointer != tt.want || len(store.keys()) == 1 != tt.want || (p.Stats().Offloaded == 1) != tt.want {
			t.Errorf("%s: %v, %v, %+v; want offloaded %v", tt.name, got.Attributes, err, p.Stats(), tt.want)
		}
	}
}

// TestOffloadRefuses: a message that a consumer could not read or that SQS would refuse is refused
// before anything is written.
func TestOffloadRefuses(t *testing.T) {
	body := strings.Repeat("order ", 100)
	many := make(map[string]types.MessageAttributeValue)
	for i := range 10 {
		many["a"+strconv.Itoa(i)] = text("v")
	}
	for want, m := range map[string]reprise.Outgoing{
		"it has 10 attributes, and with ExtendedPayloadSize that would be more than SQS's limit of 10: put the rest into the body": {Body: body, Attributes: many},
		"its attributes alone are 206 bytes long, more than 100: put them into the body":                                           {Body: body, Attributes: map[string]types.MessageAttributeValue{"a": text(strings.Repeat("v", 199))}},
		"give the attribute another name":                             {Body: body, Attributes: map[string]types.MessageAttributeValue{s3payload.LegacySizeAttribute: number("600")}},
		"its body is 1001 bytes long, more than Config.MaxSize, 1000": {Body: strings.Repeat("b", 1001)},
	} {
		store := newStorage()
		p := newPayloads(t, store, func(c *s3payload.Config) { c.MaxSize = 1000 })
		got, err := p.Offload(t.Context(), m)
		if err == nil || !strings.Contains(err.Error(), want) || got.Body != m.Body || store.count("put") > 0 {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

// TestSend: large and small messages arrive unchanged; the limits of SQS do not apply.
func TestSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		store := newStorage()
		p := newPayloads(t, store, func(c *s3payload.Config) { c.Threshold = 1000 })
		var messages []reprise.Outgoing
		var want []string
		for i := range 30 {
			body := strconv.Itoa(i) + strings.Repeat("größer ", i*i*200)
			messages = append(messages, reprise.Outgoing{Body: body, Attributes: map[string]types.MessageAttributeValue{"length": number(strconv.Itoa(len(body)))}})
			want = append(want, body)
		}
		sent, err := p.Send(t.Context(), newSender(t, q), messages...)
		if err != nil || len(sent) != len(messages) || slices.ContainsFunc(sent, func(s reprise.Sent) bool { return s.ID == "" || s.Err != nil }) {
			t.Fatalf("%v, %v", sent, err)
		}
		if n := len(store.keys()); n != 29 {
			t.Errorf("%d objects, want 29", n)
		}
		var mu sync.Mutex
		var got []string
		q.Consume(p.Fetch(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, m.Body)
			if *m.Attributes["length"].StringValue != strconv.Itoa(len(m.Body)) || len(m.Attributes) != 1 {
				t.Errorf("%d bytes arrived with %v", len(m.Body), m.Attributes)
			}
			return nil
		})), reprise.Config{AfterDelete: p.Remove})
		q.WaitEmpty(time.Minute)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) || len(store.keys()) > 0 {
			t.Errorf("%d messages arrived; %d objects are left", len(got), len(store.keys()))
		}
		if diff := cmp.Diff(s3payload.Stats{Fetched: 29, Offloaded: 29, Removed: 29}, p.Stats()); diff != "" {
			t.Errorf("stats (-want +got):\n%s", diff)
		}
	})
}

// TestSendKeepsOrder: a group keeps its order, though ten uploads are under way at once and take
// different times.
func TestSendKeepsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, map[string]string{"FifoQueue": "true"})
		client := &slow{storage: newStorage()}
		p := newPayloads(t, client)
		var messages []reprise.Outgoing
		for i := range 40 {
			messages = append(messages, reprise.Outgoing{Body: fmt.Sprintf("%02d%s", i, strings.Repeat(" order", i%3*100)), GroupID: "g", DeduplicationID: strconv.Itoa(i)})
		}
		if _, err := p.Send(t.Context(), newSender(t, q), messages...); err != nil {
			t.Fatal(err)
		}
		if n := client.most.Load(); n != 10 {
			t.Errorf("%d bodies were written at once, want 10", n)
		}
		next := 0
		q.Consume(p.Fetch(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			if m.Body != messages[next].Body {
				t.Errorf("%.10s came, want message %d", m.Body, next)
			}
			next++
			return nil
		})), reprise.Config{})
		q.WaitEmpty(time.Minute)
	})
}

// slow is a storage whose earlier writes take longer than later ones.
type slow struct {
	*storage
	now, most atomic.Int64 // writes at once
}

func (s *slow) PutObject(ctx context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	n := s.now.Add(1)
	defer s.now.Add(-1)
	for old := s.most.Load(); n > old && !s.most.CompareAndSwap(old, n); old = s.most.Load() {
	}
	time.Sleep(time.Duration(28-s.count("put")) * time.Second)
	return s.storage.PutObject(ctx, in, opts...)
}

// TestSendFails: a message that cannot be offloaded is not sent. If SQS has certainly not accepted
// a message, its object is deleted; if SQS may have accepted it, the object stays.
func TestSendFails(t *testing.T) {
	body := strings.Repeat("order ", 100)
	for _, tt := range []struct {
		name        string
		prepare     func(*storage, *reprisetest.Queue)
		message     reprise.Outgoing
		objects     int
		inQueue     int
		want        string
		unconfirmed bool
	}{
		{name: "the upload fails", prepare: func(s *storage, _ *reprisetest.Queue) { s.fail("put", reply("AccessDenied", smithy.FaultClient)) },
			message: reprise.Outgoing{Body: body}, want: "keeping a message's body in S3: writing \"s3://payloads/orders/"},
		{name: "it cannot be offloaded", message: reprise.Outgoing{Body: body, Attributes: map[string]types.MessageAttributeValue{s3payload.SizeAttribute: number("1")}}, want: "give the attribute another name"},
		{name: "the sender refuses it", message: reprise.Outgoing{Body: body, Delay: time.Hour}, want: "the delay is 1h0m0s"},
		{name: "SQS refuses it", message: reprise.Outgoing{Body: body, Attributes: map[string]types.MessageAttributeValue{"AWS.x": text("v")}}, want: "InvalidParameterValue"},
		{name: "SQS refuses it until time runs out", prepare: func(_ *storage, q *reprisetest.Queue) {
			q.Fault(sqsserver.Fault{Kind: sqsserver.FaultThrottle, Action: "SendMessageBatch"})
		}, message: reprise.Outgoing{Body: body}, want: "context deadline exceeded"},
		{name: "SQS may have it", prepare: func(_ *storage, q *reprisetest.Queue) {
			q.Fault(sqsserver.Fault{Kind: sqsserver.FaultLoseReply, Action: "SendMessageBatch"})
		}, message: reprise.Outgoing{Body: body}, objects: 1, inQueue: 1, want: "SQS may have the message", unconfirmed: true},
		{name: "and is not deleted", prepare: func(s *storage, _ *reprisetest.Queue) { s.fail("delete", errBroken) },
			message: reprise.Outgoing{Body: body, Delay: time.Hour}, objects: 1, want: "the delay is 1h0m0s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				store := newStorage()
				if tt.prepare != nil {
					tt.prepare(store, q)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
				defer cancel()
				p := newPayloads(t, store)
				sent, err := p.Send(ctx, newSender(t, q), tt.message)
				if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.Is(sent[0].Err, err) || errors.Is(err, reprise.ErrUnconfirmed) != tt.unconfirmed {
					t.Errorf("%v, %v; want %s", sent, err, tt.want)
				}
				if len(store.keys()) != tt.objects || len(q.Messages()) < tt.inQueue || (len(q.Messages()) > 0) != tt.unconfirmed {
					t.Errorf("%d objects, %d messages in the queue", len(store.keys()), len(q.Messages()))
				}
				if n := p.Stats().NotRemoved; (n == 1) != (tt.name == "and is not deleted") {
					t.Errorf("%d not removed", n)
				}
				q.Fault()
			})
		})
	}
}

// hanging is a client whose deletes hang, or panic.
type hanging struct {
	*storage
	panics bool
}

func (s hanging) DeleteObject(ctx context.Context, _ *s3.DeleteObjectInput, _ ...func(*s3.Options)) (*s3.DeleteObjectOutput, error) {
	if s.panics {
		panic("burst")
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestSendDoesNotWaitForEachObject: the objects of messages that were not sent are deleted side by side, within the time
// of one call: a stop must not wait for S3 once for each of them.
func TestSendDoesNotWaitForEachObject(t *testing.T) {
	for name, tt := range map[string]struct {
		client func(*storage) s3payload.Client
		most   time.Duration
		left   int
	}{
		"S3 takes a second": {func(s *storage) s3payload.Client { return s }, 8 * time.Second, 0},
		"S3 hangs":          {func(s *storage) s3payload.Client { return hanging{s, false} }, 34 * time.Second, 30},
		"the client panics": {func(s *storage) s3payload.Client { return hanging{s, true} }, 4 * time.Second, 30},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, store := reprisetest.NewQueue(t, nil), newStorage()
				store.delay = time.Second
				p := newPayloads(t, tt.client(store))
				messages := make([]reprise.Outgoing, 30)
				for i := range messages {
					messages[i] = reprise.Outgoing{Body: strings.Repeat("order ", 100), Delay: time.Hour} // refused
				}
				began := time.Now()
				if _, err := p.Send(t.Context(), newSender(t, q), messages...); err == nil {
					t.Error("no error")
				}
				if took := time.Since(began); took > tt.most || len(store.keys()) != tt.left || p.Stats().NotRemoved != int64(tt.left) {
					t.Errorf("after %v %d objects are left, %d not removed; want at most %v, and %d", took, len(store.keys()), p.Stats().NotRemoved, tt.most, tt.left)
				}
			})
		})
	}
}

// TestSendOfSeveral: each message has its own result, at its own index.
func TestSendOfSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		store := newStorage()
		p := newPayloads(t, panicking{store})
		body := strings.Repeat("order ", 100)
		sent, err := p.Send(t.Context(), newSender(t, q),
			reprise.Outgoing{Body: "panic " + body},
			reprise.Outgoing{Body: "small"},
			reprise.Outgoing{Body: body, Delay: time.Hour},
			reprise.Outgoing{Body: ""},
			reprise.Outgoing{Body: "small too"})
		for i, want := range []string{"the client panicked: burst", "", "the delay is", "the body is empty", ""} {
			if got := sent[i].Err; (want == "") != (got == nil) || got != nil && !strings.Contains(got.Error(), want) {
				t.Errorf("message %d: %v, want %q", i, got, want)
			}
		}
		if err == nil || !strings.HasPrefix(err.Error(), "3 of 5 messages were not sent, the first: keeping a message's body in S3: the client panicked: burst") {
			t.Errorf("the error is %v", err)
		}
		if n := len(q.Messages()); n != 2 || len(store.keys()) > 0 {
			t.Errorf("%d messages in the queue, %d objects; want 2 and 0", n, len(store.keys()))
		}
		if sent, err := p.Send(t.Context(), newSender(t, q)); len(sent) != 0 || err != nil {
			t.Errorf("of none: %v, %v", sent, err)
		}
	})
}

// panicking is a client that panics for some objects.
type panicking struct{ *storage }

func (s panicking) PutObject(ctx context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	start := make([]byte, 5)
	if _, err := in.Body.Read(start); err == nil && string(start) == "panic" {
		panic("burst")
	}
	return s.storage.PutObject(ctx, in, opts...)
}

// TestCompressThenOffload: a compressed body may be small enough for its message, or is a smaller
// object. The consumer fetches the payload, then decompresses it.
func TestCompressThenOffload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		store := newStorage()
		p := newPayloads(t, store, func(c *s3payload.Config) { c.Threshold = 10_000 })
		var numbers strings.Builder
		for i := range 20_000 {
			fmt.Fprint(&numbers, i*i, " ")
		}
		bodies := []string{numbers.String(), strings.Repeat("größer ", 100_000), "small"}
		for _, body := range bodies {
			if _, err := p.Send(t.Context(), newSender(t, q), middleware.Compress(reprise.Outgoing{Body: body})); err != nil {
				t.Fatal(err)
			}
		}
		if keys := store.keys(); len(keys) != 1 || len(store.objects[keys[0]]) > len(bodies[0])*3/4 {
			t.Errorf("%d objects; want one, which is compressed", len(keys))
		}
		var mu sync.Mutex
		var got []string
		chain := middleware.Chain(p.Fetch, middleware.Must(middleware.Decompress(middleware.DecompressConfig{})))
		q.Consume(chain(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, m.Body)
			return nil
		})), reprise.Config{AfterDelete: p.Remove})
		q.WaitEmpty(time.Minute)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		slices.Sort(got)
		slices.Sort(bodies)
		if !slices.Equal(got, bodies) || len(store.keys()) > 0 {
			t.Errorf("%d messages arrived, %d objects are left", len(got), len(store.keys()))
		}
	})
}
