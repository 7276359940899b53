package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/middleware"
)

// Order is what the examples' messages hold.
type Order struct {
	ID string `json:"id"`
}

// ship stands for the work.
func ship(_ context.Context, o Order) error {
	fmt.Println("shipping", o.ID)
	return nil
}

// report stands for an error tracker.
func report(_ context.Context, m *reprise.Message, p *reprise.PanicError) {
	fmt.Printf("panic at message %s: %v\n", m.ID, p.Value)
}

// tenant is whose message it is.
func tenant(m *reprise.Message) string { return m.GroupID }

// wellFormed is what the handler may rely on.
func wellFormed(_ context.Context, m *reprise.Message) error {
	if !strings.HasPrefix(m.Body, "{") {
		return errors.New("the body is not a JSON object")
	}
	return nil
}

func ExampleChain() {
	logger := slog.New(slog.DiscardHandler)

	handler := middleware.Chain(
		middleware.Logging(logger),
		middleware.Recover(report),
		middleware.Must(middleware.RateLimit(middleware.RateLimitConfig{Rate: 50, Key: tenant})),
		middleware.Must(middleware.Timeout(30*time.Second)),
		middleware.Must(middleware.Decompress(middleware.DecompressConfig{})),
		middleware.Validate(wellFormed),
	)(reprise.JSON(ship))

	fmt.Println(handler.Handle(context.Background(), &reprise.Message{ID: "m-1", Body: `{"id":"o-1"}`}))
	// Output:
	// shipping o-1
	// <nil>
}

func ExampleMust() {
	defer func() { fmt.Println(recover()) }()
	middleware.Must(middleware.Timeout(-time.Second))
	// Output: middleware: the time limit is -1s: set a positive duration, or leave the middleware out
}

func ExampleLogging() {
	withoutTimes := &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "duration" {
			return slog.Attr{}
		}
		return a
	}}
	logging := middleware.Logging(slog.New(slog.NewTextHandler(os.Stdout, withoutTimes)))
	busy := reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return errors.New("the warehouse is busy") })

	_ = logging(busy).Handle(context.Background(), &reprise.Message{ID: "m-1", Body: "…", Attempt: 2, Receives: 2})
	// Output:
	// level=WARN msg="message handled" asked=retry message.id=m-1 message.attempt=2 message.receives=2 message.bytes=3 error="the warehouse is busy"
}

func ExampleMetrics() {
	runs := make(map[string]int) // with a lock, or counters of a metrics library
	count := middleware.Metrics(func(_ context.Context, _ *reprise.Message, r middleware.Run) {
		runs[r.Asked.String()]++ // and a histogram of r.Duration
	})
	handler := count(reprise.JSON(ship))

	_ = handler.Handle(context.Background(), &reprise.Message{Body: `{"id":"o-1"}`})
	_ = handler.Handle(context.Background(), &reprise.Message{Body: `{"id":`})
	fmt.Println(runs)
	// Output:
	// shipping o-1
	// map[dead-letter:1 delete:1]
}

func ExampleRecover() {
	handler := middleware.Recover(report)(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
		panic("no such warehouse")
	}))
	fmt.Println(handler.Handle(context.Background(), &reprise.Message{ID: "m-1"}))
	// Output:
	// panic at message m-1: no such warehouse
	// handler panicked: no such warehouse
}

func ExampleTimeout() {
	timeout := middleware.Must(middleware.Timeout(time.Millisecond))
	handler := timeout(reprise.HandlerFunc(func(ctx context.Context, _ *reprise.Message) error {
		<-ctx.Done() // as a call that takes ctx does
		fmt.Println(errors.Is(context.Cause(ctx), middleware.ErrTimeout))
		return ctx.Err()
	}))
	fmt.Println(handler.Handle(context.Background(), &reprise.Message{}))
	// Output:
	// true
	// middleware: the handler took too long: context deadline exceeded (limit 1ms): context deadline exceeded
}

func ExampleRateLimit() {
	limit, err := middleware.RateLimit(middleware.RateLimitConfig{
		Rate:     0.5, // a run every two seconds
		Key:      tenant,
		Patience: -1,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := limit(reprise.JSON(ship))
	for _, tenant := range []string{"acme", "acme", "initech"} {
		err := handler.Handle(context.Background(), &reprise.Message{GroupID: tenant, Body: `{"id":"` + tenant + `'s"}`})
		fmt.Println(errors.Is(err, middleware.ErrRateLimited)) // it comes back in its turn
	}
	// Output:
	// shipping acme's
	// false
	// true
	// shipping initech's
	// false
}

func ExampleDecompress() {
	// Where it is sent:
	order := reprise.Outgoing{Body: `{"id":"` + strings.Repeat("o", 200) + `"}`}
	compressed := middleware.Compress(order)
	fmt.Println(len(compressed.Body) < len(order.Body), *compressed.Attributes[middleware.EncodingAttribute].StringValue)

	// Where it is handled:
	decompress := middleware.Must(middleware.Decompress(middleware.DecompressConfig{MaxSize: 1 << 20}))
	handler := decompress(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
		fmt.Println(m.Body == order.Body)
		return nil
	}))
	fmt.Println(handler.Handle(context.Background(), &reprise.Message{Body: compressed.Body, Attributes: compressed.Attributes}))
	// Output:
	// true gzip
	// true
	// <nil>
}

func ExampleValidate() {
	handler := middleware.Validate(wellFormed)(reprise.JSON(ship))
	fmt.Println(handler.Handle(context.Background(), &reprise.Message{Body: "o-1"}))
	// Output: permanent: the message is not valid: the body is not a JSON object
}

// tracing is a middleware of one's own: it works before and after the handler, and
// hands it what it needs in the context.
func tracing(next reprise.Handler) reprise.Handler {
	return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		ctx = context.WithValue(ctx, traceKey{}, m.OriginID)
		err := next.Handle(ctx, m)
		fmt.Println("traced", m.OriginID, err)
		return err // the verdict: pass it on, or wrap it with %w
	})
}

type traceKey struct{}

// A middleware is a function; nothing has to be registered.
func Example() {
	handler := middleware.Chain(tracing, middleware.Validate(wellFormed))(reprise.JSON(ship))
	_ = handler.Handle(context.Background(), &reprise.Message{OriginID: "m-1", Body: `{"id":"o-1"}`})
	// Output:
	// shipping o-1
	// traced m-1 <nil>
}
