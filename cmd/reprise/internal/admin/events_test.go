package admin_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/retry"
)

// streamOf reads a stream. Each event's data has to be what the description says.
type streamOf struct {
	*served
	body  io.ReadCloser
	lines *bufio.Scanner
}

func (s *served) stream(query string) *streamOf {
	s.t.Helper()
	r := s.open("events" + query)
	if !r.lines.Scan() || r.lines.Text() != "retry: 2000" {
		s.t.Fatalf("the stream begins with %q", r.lines.Text())
	}
	return r
}

// open opens the stream at a path below that of the API.
func (s *served) open(path string) *streamOf {
	s.t.Helper()
	response, err := http.Get(s.URL + admin.Path + path)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { response.Body.Close() })
	if response.StatusCode != 200 || response.Header.Get("Content-Type") != "text/event-stream" || response.Header.Get("Cache-Control") != "no-store" {
		s.t.Fatalf("%d %v", response.StatusCode, response.Header)
	}
	return &streamOf{s, response.Body, bufio.NewScanner(response.Body)}
}

// next returns the next event; an empty name at the end.
func (r *streamOf) next() (name, data string) {
	r.t.Helper()
	for r.lines.Scan() {
		line := r.lines.Text()
		if text, ok := strings.CutPrefix(line, "event: "); ok {
			name = text
		}
		if text, ok := strings.CutPrefix(line, "data: "); ok {
			schema := "/components/schemas/" + strings.ToUpper(name[:1]) + name[1:]
			if name != admin.EventJob {
				schema += "Event"
			}
			if err := r.validate(schema, text); err != nil {
				r.t.Errorf("%s %s: %v", name, text, err)
			}
			return name, text
		}
	}
	return "", ""
}

func message(id string) *reprise.Message {
	return &reprise.Message{ID: id, OriginID: "o-1", Attempt: 3, GroupID: "g"}
}

// TestEvents: a stream has what consumers do, of the queues and types that it asks for, as the
// description says.
func TestEvents(t *testing.T) {
	events := new(admin.Events)
	s := serve(t, func(cfg *admin.Config) { cfg.Events = events })
	orders, mail := events.Observer(queueURL+"orders"), events.Observer(queueURL+"mail")
	tell := func(o reprise.Observer, id string) {
		now := time.Now()
		o.Attempt(t.Context(), reprise.Attempt{
			Message: message(id), Started: now, Duration: 1500 * time.Microsecond, Err: errors.New("line\nbreak \xff"),
			Outcome: reprise.OutcomeRetry, Reason: retry.ReasonPolicy, Due: now.Add(time.Hour),
		})
		o.Settled(t.Context(), reprise.Settled{Message: message(id), Outcome: reprise.OutcomeDelete})
		o.Outage(t.Context(), reprise.OutageEvent{State: reprise.BreakerOpen, Previous: reprise.BreakerClosed, At: now, Since: now, NextProbe: now, Held: 2, Err: errors.New("down")})
	}
	tell(orders, "nobody watches")
	all, some, none := s.stream(""), s.stream("?queue=orders&type=settled&type=breaker"), s.stream("?queue=other")
	tell(mail, "m-1")
	tell(orders, "m-2")
	for _, want := range []string{"attempt m-1", "settled m-1", "breaker mail", "attempt m-2", "settled m-2", "breaker orders"} {
		name, data := all.next()
		_, what, _ := strings.Cut(want, " ")
		if !strings.HasPrefix(want, name+" ") || !strings.Contains(data, `"`+what+`"`) {
			t.Errorf("%s %s, want %s", name, data, want)
		}
	}
	for _, want := range []string{"settled", "breaker"} {
		if name, data := some.next(); name != want || !strings.Contains(data, `"queue":"orders"`) {
			t.Errorf("%s %s, want %s of orders", name, data, want)
		}
	}
	if err := events.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, stream := range []*streamOf{all, some, none} {
		if name, data := stream.next(); name != "" {
			t.Errorf("after the stop: %s %s", name, data)
		}
	}
	if status, text := s.call("GET", admin.Path+"events", ""); status != 503 || decode[admin.Error](t, text).Code != "too-many" {
		t.Errorf("a stream after the stop: %d %s", status, text)
	}
	if status, text := s.call("GET", admin.Path+"events?type=x", ""); status != 400 || !strings.Contains(text, "breaker") {
		t.Errorf("a type that does not exist: %d %s", status, text)
	}
}

// TestQuietStream: a stream outlives the time limits of the server, over both versions of HTTP.
func TestQuietStream(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("HTTP/2=%t", http2), func(t *testing.T) {
			t.Parallel()
			const limit = time.Second // of the handshake too
			events := new(admin.Events)
			cfg := admin.Config{Events: events, Logger: slog.New(slog.DiscardHandler)}
			cfg.Pages = pages(t, cfg.Logger)
			server := httptest.NewUnstartedServer(admin.New(cfg))
			server.Config.ReadTimeout, server.Config.WriteTimeout, server.EnableHTTP2 = limit, limit, http2
			server.StartTLS()
			defer server.Close()
			response, err := server.Client().Get(server.URL + admin.Path + "events")
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			if (response.ProtoMajor == 2) != http2 {
				t.Fatalf("the protocol is %s", response.Proto)
			}
			time.Sleep(limit + limit/5)
			events.Observer(queueURL+"orders").Settled(t.Context(), reprise.Settled{Message: message("m")})
			lines := bufio.NewScanner(response.Body)
			for lines.Scan() && lines.Text() != "event: settled" {
			}
			if lines.Text() != "event: settled" {
				t.Errorf("the stream has ended: %v", lines.Err())
			}
			if err := events.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// BenchmarkWatched is what an attempt costs a consumer by the number of its viewers.
func BenchmarkWatched(b *testing.B) {
	for _, viewers := range []int{0, 1, 50} {
		b.Run(fmt.Sprint(viewers), func(b *testing.B) {
			events := new(admin.Events)
			stop := admin.Watch(events, viewers)
			defer stop()
			observer := events.Observer(queueURL + "orders")
			attempt := reprise.Attempt{Message: message("m"), Outcome: reprise.OutcomeDelete}
			for b.Loop() {
				observer.Attempt(context.Background(), attempt)
			}
		})
	}
}
