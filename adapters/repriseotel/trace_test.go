package repriseotel_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/repriseotel"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// attributeOf returns a span's attribute as text; empty if it has none.
func attributeOf(s sdktrace.ReadOnlySpan, key string) string {
	for _, kv := range s.Attributes() {
		if string(kv.Key) == key {
			return kv.Value.String()
		}
	}
	return ""
}

// runs are the spans of runs, in order.
func runs(p *process) (all []sdktrace.ReadOnlySpan) {
	for _, s := range p.spans.Ended() {
		if s.SpanKind() == trace.SpanKindConsumer {
			all = append(all, s)
		}
	}
	return all
}

// TestRunsOfAMessageWithoutAContext: the runs share the trace that the first run began, each as a
// child of the run before. None belongs to the span in which the consumer was started.
func TestRunsOfAMessageWithoutAContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		p := startProcess("worker")
		ctx, main := p.provider.Tracer("shop").Start(t.Context(), "main")
		consumer, err := reprise.New(q.Client(), q.URL(), worker(p, 3), reprise.Config{Logger: slog.New(slog.DiscardHandler), Retry: every, Observer: p.telemetry(t, q, repriseotel.Config{}).Observer()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(ctx)
		done := make(chan error)
		go func() { done <- consumer.Run(ctx) }()
		q.Send("order")
		q.WaitEmpty(time.Hour)
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		main.End()
		all := runs(p)
		if len(all) != 3 {
			t.Fatalf("%d runs have spans, want 3", len(all))
		}
		if all[0].Parent().IsValid() || len(all[0].Links()) > 0 || all[0].SpanContext().TraceID() == main.SpanContext().TraceID() {
			t.Errorf("the first run has parent %v, %d links, in trace %v", all[0].Parent().SpanID(), len(all[0].Links()), all[0].SpanContext().TraceID())
		}
		for i, s := range all[1:] {
			if before := all[i].SpanContext(); s.Parent().SpanID() != before.SpanID() || s.SpanContext().TraceID() != before.TraceID() || len(s.Links()) != 1 {
				t.Errorf("run %d has parent %v, %d links", i+2, s.Parent().SpanID(), len(s.Links()))
			}
		}
	})
}

// TestSpanOfEachOutcome: the span of a run for each way in which the run can end.
func TestSpanOfEachOutcome(t *testing.T) {
	for _, tt := range []struct {
		name    string
		handler func(ctx context.Context, m *reprise.Message) error
		cfg     reprise.Config
		fifo    bool
		want    string
	}{
		{name: "success", handler: func(context.Context, *reprise.Message) error { return nil },
			want: "delete   Unset [] | DeleteMessage Unset"},
		{name: "error", handler: func(context.Context, *reprise.Message) error { return errWarehouse },
			want: "retry policy _OTHER Error [reprise.retry 60] | ChangeMessageVisibility Unset"},
		{name: "asks to wait", handler: func(context.Context, *reprise.Message) error { return reprise.RetryAfter(time.Hour, errWarehouse) },
			want: "retry retry-after _OTHER Error [reprise.retry 3600] | ChangeMessageVisibility Unset"},
		{name: "released", handler: func(context.Context, *reprise.Message) error { return reprise.Release(time.Minute, errWarehouse) },
			want: "release release  Unset [reprise.release 60] | ChangeMessageVisibility Unset"},
		{name: "permanent", handler: func(context.Context, *reprise.Message) error { return reprise.Permanent(errWarehouse) },
			want: "dead-letter permanent permanent Error [] | SendMessage Unset"},
		{name: "panic", handler: func(context.Context, *reprise.Message) error { panic("no") },
			want: "retry policy panic Error [reprise.retry 60] | ChangeMessageVisibility Unset"},
		{name: "timeout", handler: func(ctx context.Context, _ *reprise.Message) error { <-ctx.Done(); return ctx.Err() }, cfg: reprise.Config{HandlerTimeout: time.Second},
			want: "retry policy timeout Error [reprise.retry 60] | ChangeMessageVisibility Unset"},
		{name: "unavailable", handler: func(context.Context, *reprise.Message) error { return reprise.Unavailable(errWarehouse) },
			want: "retry policy unavailable Error [reprise.retry 60] | ChangeMessageVisibility Unset"},
		{name: "requeued", handler: func(context.Context, *reprise.Message) error { return errWarehouse }, cfg: reprise.Config{Via: reprise.ViaRequeue},
			want: "retry policy _OTHER Error [reprise.retry 60] | SendMessage Unset"},
		{name: "held", fifo: true, handler: func(context.Context, *reprise.Message) error { return errWarehouse },
			want: "hold policy _OTHER Error [reprise.hold 60] | "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				if tt.fifo {
					q = reprisetest.NewQueue(t, map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"})
				}
				q.NewDeadLetterQueue(20)
				p := startProcess("worker")
				tt.cfg.Retry, tt.cfg.Observer = every, p.telemetry(t, q, repriseotel.Config{}).Observer()
				q.ConsumeWith(q.Client(), reprise.HandlerFunc(tt.handler), tt.cfg)
				if tt.fifo {
					q.SendMessage(sqsserver.SendMessageEntry{MessageBody: "order", MessageGroupId: "g"})
				} else {
					q.Send("order")
				}
				time.Sleep(30 * time.Second)
				var settled string
				for _, s := range p.spans.Ended() {
					if s.SpanKind() == trace.SpanKindClient {
						settled += fmt.Sprintf("%s %v", strings.TrimSuffix(s.Name(), " "+q.Name()), s.Status().Code)
					}
				}
				run := runs(p)[0]
				var events []string
				for _, e := range run.Events() {
					events = append(events, e.Name+" "+e.Attributes[0].Value.String())
				}
				got := fmt.Sprintf("%s %s %s %v %v | %s", attributeOf(run, "reprise.outcome"), attributeOf(run, "reprise.reason"), attributeOf(run, "error.type"), run.Status().Code, events, settled)
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestLostLeaseIsSeen: spans show a run whose lease ends, and a settlement that SQS never
// acknowledges.
func TestLostLeaseIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		p := startProcess("worker")
		q.Fault(
			sqsserver.Fault{Kind: sqsserver.FaultServerError, Action: "ChangeMessageVisibilityBatch", Limit: 200},
			sqsserver.Fault{Kind: sqsserver.FaultServerError, Action: "DeleteMessageBatch", Limit: 200},
		)
		c := q.Consume(reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
			if m.Body == "slow" {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}), reprise.Config{Retry: every, Lease: 10 * time.Second, Observer: p.telemetry(t, q, repriseotel.Config{}).Observer()})
		q.Send("slow", "fast")
		time.Sleep(12 * time.Second)
		c.Crash()
		var got []string
		for _, s := range p.spans.Ended() {
			if s.Status().Code == codes.Error && s.StartTime().Sub(p.began) < 9*time.Second {
				got = append(got, fmt.Sprintf("%s, %s, %s", strings.TrimSuffix(s.Name(), " "+q.Name()), attributeOf(s, "reprise.outcome"), attributeOf(s, "error.type")))
			}
		}
		slices.Sort(got)
		want := []string{"process, lost, lease_lost", "settle, lost, lease_lost"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("spans in error (-want +got):\n%s", diff)
		}
	})
}

// TestSpansThatAreNotSampled: for a span that is not sampled no settlement span is made, and the
// next attempt still continues its trace.
func TestSpansThatAreNotSampled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		never := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
		telemetry, err := repriseotel.New(q.URL(), repriseotel.Config{TracerProvider: never})
		if err != nil {
			t.Fatal(err)
		}
		var trails []string
		q.Consume(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
			if trails = append(trails, m.Trail); m.Attempt == 1 {
				return errWarehouse
			}
			return nil
		}), reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(time.Second)}, Observer: telemetry.Observer()})
		q.Send("order")
		q.WaitEmpty(time.Minute)
		if len(trails) != 2 || !strings.HasSuffix(trails[1], "-00") {
			t.Errorf("trails %q, want that the second attempt sees an unsampled context", trails)
		}
	})
}

// TestEachMessageOfABatchHasItsRun: each message of a batch has a span with its own context and its
// own end.
func TestEachMessageOfABatchHasItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		p := startProcess("worker")
		seen := make(map[string]int) // how many messages were handled in a span
		q.ConsumeBatch(reprise.BatchHandlerFunc(func(ctx context.Context, ms []*reprise.Message) []error {
			errs := make([]error, len(ms))
			for i, m := range ms {
				seen[trace.SpanContextFromContext(reprise.MessageContext(ctx, m)).SpanID().String()]++
				if m.Body == "bad" && m.Attempt == 1 {
					errs[i] = errWarehouse
				}
			}
			return errs
		}), reprise.BatchConfig{Config: reprise.Config{Retry: every, Observer: p.telemetry(t, q, repriseotel.Config{}).Observer()}})
		q.Send("good", "bad", "fine")
		q.WaitEmpty(time.Hour)
		synctest.Wait()
		outcomes := make(map[string]int)
		for _, s := range runs(p) {
			outcomes[attributeOf(s, "reprise.outcome")]++
			if n := seen[s.SpanContext().SpanID().String()]; n != 1 {
				t.Errorf("%d messages were handled in a span of a run, want 1", n)
			}
		}
		if diff := cmp.Diff(map[string]int{"delete": 3, "retry": 1}, outcomes); diff != "" {
			t.Errorf("runs (-want +got):\n%s", diff)
		}
	})
}
