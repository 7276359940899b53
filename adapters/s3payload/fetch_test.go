package s3payload_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/s3payload"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// watched fails the test if any object outside of orders/ in payloads is requested.
type watched struct {
	*storage
	t *testing.T
}

func (w watched) GetObject(ctx context.Context, in *s3.GetObjectInput, opts ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	w.check(*in.Bucket, *in.Key)
	return w.storage.GetObject(ctx, in, opts...)
}

func (w watched) DeleteObject(ctx context.Context, in *s3.DeleteObjectInput, opts ...func(*s3.Options)) (*s3.DeleteObjectOutput, error) {
	w.check(*in.Bucket, *in.Key)
	return w.storage.DeleteObject(ctx, in, opts...)
}

func (w watched) check(bucket, key string) {
	if bucket != "payloads" || !strings.HasPrefix(key, "orders/") || strings.Contains("/"+key+"/", "/../") {
		w.t.Fatalf("S3 was asked for %q in %q", key, bucket)
	}
}

// TestFetchFails: if S3 refuses the object itself, or the object differs from what the message
// says, the message is dead-lettered. An answer that every object would get is an outage.
// TestAttackPointersThatLookLikeAnOutage has the answers of S3 between the two.
func TestFetchFails(t *testing.T) {
	const body = "this order has just 27 byte"
	for _, tt := range []struct {
		name      string
		storage   func(*storage)
		permanent bool
		want      string
	}{
		{"no such object", func(s *storage) { clear(s.objects) }, true, `fetching "s3://payloads/orders/1": NoSuchKey`},
		{"an archived object", func(s *storage) { s.fail("get", reply("InvalidObjectState", smithy.FaultClient)) }, true, "InvalidObjectState"},
		{"a larger object", func(s *storage) { s.objects["payloads/orders/1"] += "+" }, true, "declares 27 bytes, and the object has 28:"},
		{"a smaller object", func(s *storage) { s.objects["payloads/orders/1"] = body[1:] }, true, "declares 27 bytes, and the object has 26:"},
		{"a larger object of unsaid size", func(s *storage) { s.objects["payloads/orders/1"] += "+"; s.unsized = true }, true, "and the object has more:"},
		{"a body larger than the reply says", func(s *storage) { s.reader = func(b string) io.Reader { return strings.NewReader(b + b) } }, true, "and the object has more:"},
		{"a body that ends early", func(s *storage) { s.reader = func(b string) io.Reader { return strings.NewReader(b[:9]) } }, false, "after 9 of 27 bytes: unexpected EOF"},
		{"a connection that breaks", func(s *storage) {
			s.reader = func(b string) io.Reader {
				return io.MultiReader(strings.NewReader(b[:9]), iotest.ErrReader(errBroken))
			}
		}, false, "after 9 of 27 bytes: the connection broke"},
		{"a service that is down", func(s *storage) { s.fail("get", reply("ServiceUnavailable", smithy.FaultServer)) }, false, "ServiceUnavailable"},
		{"a throttle", func(s *storage) { s.fail("get", reply("SlowDown", smithy.FaultServer)) }, false, "SlowDown"},
		{"no such bucket", func(s *storage) { s.fail("get", reply("NoSuchBucket", smithy.FaultClient)) }, false, "NoSuchBucket"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store := newStorage()
			store.objects["payloads/orders/1"] = body
			tt.storage(store)
			p := newPayloads(t, store)
			var got *reprise.Message
			err := p.Fetch(keep(&got)).Handle(t.Context(), pointing("payloads", "orders/1", len(body)))
			if got != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("error %v, want %s", err, tt.want)
			}
			if permanent := reasonOf(err) == retry.ReasonPermanent; permanent != tt.permanent || reprise.IsUnavailable(err) == permanent {
				t.Errorf("%v: permanent %v, unavailable %v", err, permanent, reprise.IsUnavailable(err))
			}
			if p.Stats() != (s3payload.Stats{}) {
				t.Errorf("stats %+v", p.Stats())
			}
		})
	}
}

// TestFetchOfUnsaidSize: a reply need not name the length of the object.
func TestFetchOfUnsaidSize(t *testing.T) {
	store := newStorage()
	store.unsized = true
	store.objects["payloads/orders/1"], store.objects["payloads/orders/2"] = "order", ""
	for key, want := range map[string]string{"orders/1": "order", "orders/2": ""} {
		var got *reprise.Message
		if err := newPayloads(t, store).Fetch(keep(&got)).Handle(t.Context(), pointing("payloads", key, len(want))); err != nil || got.Body != want {
			t.Errorf("%s: %v", key, err)
		}
	}
}

// TestFetchEnds: Fetch ends with the handler's context, with an error that the consumer
// understands, and after Config.Timeout, which counts as an outage.
func TestFetchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStorage()
		store.objects["payloads/orders/1"] = "order"
		store.delay = time.Hour
		h := newPayloads(t, store).Fetch(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			t.Error("the handler ran")
			return nil
		}))
		began := time.Now()
		err := h.Handle(t.Context(), pointing("payloads", "orders/1", 5))
		if !reprise.IsUnavailable(err) || time.Since(began) != 30*time.Second {
			t.Errorf("after %v: %v; want an outage after 30 s", time.Since(began), err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(reprise.ErrStopping) })
		if err := h.Handle(ctx, pointing("payloads", "orders/1", 5)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the context's error", err)
		}
	})
}

// TestStopInTheMiddleOfAFetch: a stop gives the message back, and counts no attempt.
func TestStopInTheMiddleOfAFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		store := newStorage()
		p := newPayloads(t, store, func(c *s3payload.Config) { c.Timeout = time.Hour })
		if _, err := p.Send(t.Context(), newSender(t, q), reprise.Outgoing{Body: strings.Repeat("order ", 100)}); err != nil {
			t.Fatal(err)
		}
		store.delay = time.Minute
		c := q.Consume(p.Fetch(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return nil })), reprise.Config{})
		time.Sleep(10 * time.Second)
		if report := c.Stop(); !report.Drained() || c.Status().Counts.Released != 1 || c.Status().Counts.Retried != 0 {
			t.Errorf("%v, %+v", report, c.Status().Counts)
		}
		store.delay = 0
		q.Consume(p.Fetch(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return nil })), reprise.Config{})
		q.WaitEmpty(time.Hour)
	})
}

// TestOutageOfS3: while S3 is down the breaker opens, and no message uses up its
// attempts.
func TestOutageOfS3(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		dead := q.NewDeadLetterQueue(100)
		store := newStorage()
		p := newPayloads(t, store)
		orders := make([]reprise.Outgoing, 60)
		for i := range orders {
			orders[i].Body = strings.Repeat("order ", 100)
		}
		if _, err := p.Send(t.Context(), newSender(t, q), orders...); err != nil {
			t.Fatal(err)
		}
		store.mu.Lock()
		for range 10_000 {
			store.failures["get"] = append(store.failures["get"], reply("ServiceUnavailable", smithy.FaultServer))
		}
		store.mu.Unlock()
		c := q.Consume(p.Fetch(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return nil })), reprise.Config{
			Retry:       retry.Policy{Backoff: retry.Constant(time.Minute), MaxAttempts: 3},
			AfterDelete: p.Remove,
		})
		time.Sleep(6 * time.Hour)
		if n := store.count("get"); n > 2000 {
			t.Errorf("%d requests to a service that is down", n)
		}
		store.mu.Lock()
		store.failures["get"] = nil
		store.mu.Unlock()
		q.WaitEmpty(2 * time.Hour)
		synctest.Wait()
		if n := len(dead.Messages()); n > 0 || c.Status().Counts.Deleted != 60 || len(store.keys()) > 0 {
			t.Errorf("%d dead-lettered, %d deleted, %d objects left; want 0, 60 and 0", n, c.Status().Counts.Deleted, len(store.keys()))
		}
	})
}
