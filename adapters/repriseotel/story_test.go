package repriseotel_test

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/repriseotel"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

var update = flag.Bool("update", false, "write the golden files")

var errWarehouse = errors.New("the warehouse is closed")

// process is a process with an SDK of its own.
type process struct {
	name     string
	began    time.Time
	spans    *tracetest.SpanRecorder
	provider *sdktrace.TracerProvider
}

func startProcess(name string) *process {
	recorder := tracetest.NewSpanRecorder()
	return &process{name, time.Now(), recorder, sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder), sdktrace.WithIDGenerator(&counted{process: name}))}
}

func (p *process) telemetry(t *testing.T, q *reprisetest.Queue, cfg repriseotel.Config) *repriseotel.Telemetry {
	t.Helper()
	cfg.TracerProvider = p.provider
	telemetry, err := repriseotel.New(q.URL(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return telemetry
}

// counted makes ids that name their process, so that the story is the same in each run.
type counted struct {
	process string

	mu     sync.Mutex
	traces uint64
	spans  uint64
}

func (c *counted) NewIDs(ctx context.Context) (id trace.TraceID, _ trace.SpanID) {
	c.mu.Lock()
	c.traces++
	copy(id[:8], c.process)
	binary.BigEndian.PutUint64(id[8:], c.traces)
	c.mu.Unlock()
	return id, c.NewSpanID(ctx, id)
}

func (c *counted) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spans++
	copy(id[:], c.process)
	binary.BigEndian.PutUint16(id[6:], uint16(c.spans))
	return id
}

// story writes the spans of processes as trees, in the order of their start.
func story(processes ...*process) string {
	type told struct {
		process *process
		span    sdktrace.ReadOnlySpan
	}
	var all []told
	label := make(map[trace.SpanID]string)
	for _, p := range processes {
		for _, s := range p.spans.Ended() {
			all = append(all, told{p, s})
			label[s.SpanContext().SpanID()] = fmt.Sprintf("%s %s [%s]", p.name, s.Name(), s.SpanContext().SpanID().String()[12:])
		}
	}
	slices.SortStableFunc(all, func(a, b told) int { return a.span.StartTime().Compare(b.span.StartTime()) })
	var b strings.Builder
	var tell func(parent trace.SpanID, known bool, indent string)
	tell = func(parent trace.SpanID, known bool, indent string) {
		for _, s := range all {
			if _, told := label[s.span.Parent().SpanID()]; told != known || known && s.span.Parent().SpanID() != parent {
				continue
			}
			describe(&b, indent, label, s.span, s.process.began)
			tell(s.span.SpanContext().SpanID(), true, indent+"    ")
		}
	}
	tell(trace.SpanID{}, false, "")
	return b.String()
}

func describe(b *strings.Builder, indent string, label map[trace.SpanID]string, s sdktrace.ReadOnlySpan, began time.Time) {
	id := s.SpanContext().TraceID()
	fmt.Fprintf(b, "%s%s, %v, trace %s-%d, at %v for %v", indent, label[s.SpanContext().SpanID()], s.SpanKind(),
		strings.TrimRight(string(id[:8]), "\x00"), binary.BigEndian.Uint64(id[8:]), s.StartTime().Sub(began).Round(time.Millisecond), s.EndTime().Sub(s.StartTime()).Round(time.Millisecond))
	if s.Status().Code == codes.Error {
		fmt.Fprintf(b, ", error: %s", s.Status().Description)
	}
	fmt.Fprintln(b)
	for _, l := range s.Links() {
		to := label[l.SpanContext.SpanID()]
		if to == "" {
			to = "a span of another story"
		}
		fmt.Fprintf(b, "%s  > %s: %s\n", indent, values(l.Attributes), to)
	}
	for _, e := range s.Events() {
		fmt.Fprintf(b, "%s  * %s: %s\n", indent, e.Name, values(e.Attributes))
	}
	for _, kv := range s.Attributes() {
		fmt.Fprintf(b, "%s  - %s\n", indent, values([]attribute.KeyValue{kv}))
	}
}

// values writes attributes, without those that differ from run to run.
func values(all []attribute.KeyValue) string {
	var parts []string
	for _, kv := range all {
		value := kv.Value.String()
		if strings.HasSuffix(string(kv.Key), ".id") {
			value = "(an id)"
		}
		parts = append(parts, fmt.Sprintf("%s=%s", kv.Key, value))
	}
	return strings.Join(parts, " ")
}

// golden compares got with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
		t.Errorf("%s (-want +got; go test -update writes it):\n%s", path, diff)
	}
}

// every is a backoff of exactly one minute.
var every = retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None, MaxAttempts: 9}

// worker is a handler that works for a second and starts a span of its own. It fails before attempt
// n.
func worker(p *process, n int) reprise.Handler {
	return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		_, span := p.provider.Tracer("shop").Start(ctx, "ship")
		time.Sleep(time.Second)
		span.End()
		if m.Attempt < n {
			return errWarehouse
		}
		return nil
	})
}

// produce sends one order from a process that handles a request.
func produce(t *testing.T, q *reprisetest.Queue, web *process, cfg repriseotel.Config) {
	t.Helper()
	sender, err := reprise.NewSender(q.Client(), q.URL(), reprise.SenderConfig{Linger: -1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, span := web.provider.Tracer("shop").Start(t.Context(), "POST /orders", trace.WithSpanKind(trace.SpanKindServer))
	if _, err := web.telemetry(t, q, cfg).Send(ctx, sender, reprise.Outgoing{Body: `{"order":1}`}); err != nil {
		t.Fatal(err)
	}
	span.End()
	if _, err := sender.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// fiveAttempts has one message fail four times: twice by visibility in process a, which then sends
// a copy because the queue permits three receives, and once more in process b.
func fiveAttempts(t *testing.T, q *reprisetest.Queue, a, b *process, cfg repriseotel.Config) {
	t.Helper()
	first := q.ConsumeWith(q.Client(), worker(a, 5), reprise.Config{Retry: every, Observer: a.telemetry(t, q, cfg).Observer()})
	time.Sleep(2*time.Minute + 30*time.Second)
	first.Stop()
	q.ConsumeWith(q.Client(), worker(b, 5), reprise.Config{Retry: every, Observer: b.telemetry(t, q, cfg).Observer()})
	q.WaitEmpty(time.Hour)
	synctest.Wait()
}

// TestOneMessageIsOneStory: the names, kinds, parents, links, events and attributes of all spans of
// a message, from the request that sent it, over five attempts and two processes.
func TestOneMessageIsOneStory(t *testing.T) {
	for file, cfg := range map[string]repriseotel.Config{"story.txt": {}, "story-own-traces.txt": {OwnTraces: true}} {
		t.Run(file, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				q.NewDeadLetterQueue(3)
				web, a, b := startProcess("web"), startProcess("a"), startProcess("b")
				produce(t, q, web, cfg)
				fiveAttempts(t, q, a, b, cfg)
				golden(t, file, strings.ReplaceAll(story(web, a, b), q.Name(), "orders"))
			})
		})
	}
}
