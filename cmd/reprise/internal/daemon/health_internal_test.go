package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestProbesThroughALife looks at /health and /readyz at each step of a worker's life, and not only before and
// after it: new, at work, degraded, failing, stopping with a handler at work. A load balancer must send nothing
// to a process that has not begun, or that stops.
func TestProbesThroughALife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		w, err := NewWorker(WorkerConfig{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		running, finish := make(chan struct{}), make(chan struct{})
		err = w.Consume([]Consume{{
			Client: q.Client(), QueueURL: q.URL(), Config: reprise.Config{Logger: slog.New(slog.DiscardHandler)},
			Handler: reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
				running <- struct{}{}
				<-finish
				return nil
			}),
		}})
		if err != nil {
			t.Fatal(err)
		}
		expect := func(when, status string, health, ready int) {
			t.Helper()
			code, text := answerOf(w.serveHealth)
			if code != health || !strings.Contains(text, `"status":"`+status+`"`) {
				t.Errorf("%s: /health answers %d %s, want %d and %s", when, code, text, health, status)
			}
			if code, text := answerOf(w.serveReady); code != ready || !strings.Contains(text, fmt.Sprintf(`"ready":%t`, ready == http.StatusOK)) {
				t.Errorf("%s: /readyz answers %d %s, want %d", when, code, text, ready)
			}
		}
		expect("before Run", "new", http.StatusOK, http.StatusServiceUnavailable)
		drain, ended := make(chan struct{}), make(chan error)
		go func() { ended <- w.Run(t.Context(), drain) }()
		q.Send("work")
		<-running
		synctest.Wait()
		expect("at work", "ok", http.StatusOK, http.StatusOK)
		close(drain)
		synctest.Wait()
		expect("stopping, with a handler at work", "stopping", http.StatusServiceUnavailable, http.StatusServiceUnavailable)
		close(finish)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		expect("stopped", "stopped", http.StatusServiceUnavailable, http.StatusServiceUnavailable)
	})
}

// answerOf returns the answer of a page.
func answerOf(page http.HandlerFunc, query ...string) (code int, text string) {
	w := httptest.NewRecorder()
	page(w, httptest.NewRequest(http.MethodGet, "/?"+strings.Join(query, "&"), http.NoBody))
	return w.Code, w.Body.String()
}

// inEachHealth returns a consumer in each health, the best first: a program with several is as well as the worst.
// It is called in a bubble of synctest; end ends the consumers.
func inEachHealth(t *testing.T) (all []*consumer, end func()) {
	q := reprisetest.NewQueue(t, nil)
	block := make(chan struct{})
	ends := []func(){func() { close(block) }}
	makeOne := func(name string, h reprise.HandlerFunc) *consumer {
		of := q.NewQueue(nil)
		c, err := newConsumer(Consume{
			Client: of.Client(), QueueURL: of.URL(), Handler: h, Config: reprise.Config{Logger: slog.New(slog.DiscardHandler), Name: name},
		}, false, Watching{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	run := func(c *consumer) (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = c.Run(ctx) }()
		synctest.Wait()
		ends = append(ends, func() { cancel(); <-ended })
		return cancel
	}
	is := func(c *consumer, want reprise.Health) {
		t.Helper()
		for range 600 {
			if synctest.Wait(); c.Status().Health == want {
				all = append(all, c)
				return
			}
			time.Sleep(time.Second)
		}
		t.Fatalf("a consumer is %v, want %v", c.Status().Health, want)
	}
	done := func(context.Context, *reprise.Message) error { return nil }
	ok := makeOne("ok", done)
	run(ok)
	is(ok, reprise.HealthOK)
	is(makeOne("new", done), reprise.HealthNew)
	degraded := makeOne("degraded", func(context.Context, *reprise.Message) error {
		return reprise.Unavailable(fmt.Errorf("connection refused"))
	})
	to := q.Server()
	for range 40 {
		send(t, to, degraded.of.QueueURL)
	}
	run(degraded)
	is(degraded, reprise.HealthDegraded)
	stopped := makeOne("stopped", done)
	run(stopped)()
	is(stopped, reprise.HealthStopped)
	stopping := makeOne("stopping", func(context.Context, *reprise.Message) error { <-block; return nil })
	send(t, to, stopping.of.QueueURL)
	stop := run(stopping)
	time.Sleep(time.Second)
	stop()
	is(stopping, reprise.HealthStopping)
	failing := makeOne("failing", done)
	if err := to.DeleteQueue(t.Context(), &sqsserver.DeleteQueueInput{QueueUrl: failing.of.QueueURL}); err != nil {
		t.Fatal(err)
	}
	run(failing)
	is(failing, reprise.HealthFailing)
	return all, func() {
		for _, end := range ends {
			end()
		}
	}
}

func send(t *testing.T, to *sqsserver.Server, url string) { t.Helper(); sendBody(t, to, url, "b") }

func sendBody(t *testing.T, to *sqsserver.Server, url, body string) {
	t.Helper()
	if _, err := to.SendMessage(t.Context(), &sqsserver.SendMessageInput{QueueUrl: url, SendMessageEntry: sqsserver.SendMessageEntry{MessageBody: body}}); err != nil {
		t.Fatal(err)
	}
}

// TestHealthIsTheWorst: of two queues, in either order, the health is the worse one's, with its problem and its
// name, and no name where there is no problem. A disk that is nearly full makes ok degraded, and hides nothing.
func TestHealthIsTheWorst(t *testing.T) {
	fs := vfs.NewMem()
	fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 1, TotalBytes: 1 << 40})
	d, err := New(Config{Addr: "127.0.0.1:0", Region: "us-east-1", Logger: slog.New(slog.DiscardHandler), Journal: journal.Options{Dir: "journal", FS: fs}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	synctest.Test(t, func(t *testing.T) {
		all, end := inEachHealth(t)
		defer end()
		bad := map[reprise.Health]bool{reprise.HealthFailing: true, reprise.HealthStopping: true, reprise.HealthStopped: true}
		for i := range all {
			for j := range all {
				var h health
				code := h.consumed([]*consumer{all[i], all[j]})
				worst := all[max(i, j)]
				s := worst.Status()
				want, problem := http.StatusOK, ""
				if bad[s.Health] {
					want = http.StatusServiceUnavailable
				}
				if s.Problem != "" {
					problem = path.Base(worst.of.QueueURL) + ": " + s.Problem
				}
				if h.Status != s.Health.String() || h.Problem != problem || code != want {
					t.Errorf("%v and %v: %d, %s, problem %q; want %d, %v, problem %q",
						all[i].Status().Health, all[j].Status().Health, code, h.Status, h.Problem, want, s.Health, problem)
				}
			}
			d.current = []*consumer{all[i]}
			s := all[i].Status()
			want, code := s.Health.String(), http.StatusOK
			if s.Health == reprise.HealthOK {
				want = "degraded"
			}
			if bad[s.Health] {
				code = http.StatusServiceUnavailable
			}
			if got, text := answerOf(d.serveHealth); got != code || !strings.Contains(text, `"status":"`+want+`"`) {
				t.Errorf("a consumer that is %v, on a disk that is nearly full: %d %s, want %d and %s", s.Health, got, text, code, want)
			}
		}
		d.current = nil
	})
}

// TestHealthCountsEachKind: each number of /health is that of its name, of each queue and of all together. Every one is
// another: of the first queue 2 messages run, 3 wait for a place, 4 for a retry, 5 were deleted and 6 dead-lettered, of
// the second twice as many.
func TestHealthCountsEachKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		w, err := NewWorker(WorkerConfig{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		block := make(chan struct{})
		var all []Consume
		for times := 1; times <= 2; times++ {
			of := q.NewQueue(nil)
			all = append(all, Consume{
				Client: of.Client(), QueueURL: of.URL(),
				Config: reprise.Config{Concurrency: 2 * times, DeadLetterURL: q.NewQueue(nil).URL(), Logger: slog.New(slog.DiscardHandler)},
				Handler: reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
					switch m.Body {
					case "later":
						return reprise.RetryAfter(time.Hour, fmt.Errorf("not yet"))
					case "bad":
						return reprise.Permanent(fmt.Errorf("bad"))
					case "long":
						<-block
					}
					return nil
				}),
			})
		}
		if err := w.Consume(all); err != nil {
			t.Fatal(err)
		}
		drain, ended := make(chan struct{}), make(chan error)
		go func() { ended <- w.Run(t.Context(), drain) }()
		for _, messages := range []struct {
			body string
			n    int
		}{{"later", 4}, {"good", 5}, {"bad", 6}, {"long", 5}} {
			for i := range all {
				for range messages.n * (i + 1) {
					sendBody(t, q.Server(), all[i].QueueURL, messages.body)
				}
			}
			time.Sleep(10 * time.Second)
		}
		var h health
		h.consumed(w.all())
		one := consumerHealth{Running: 2, Waiting: 3, InBackoff: 4, Deleted: 5, Retried: 4, DeadLettered: 6}
		two := consumerHealth{Running: 4, Waiting: 6, InBackoff: 8, Deleted: 10, Retried: 8, DeadLettered: 12}
		three := consumerHealth{Running: 6, Waiting: 9, InBackoff: 12, Deleted: 15, Retried: 12, DeadLettered: 18}
		if *h.Queues[0].Consumer != one || *h.Queues[1].Consumer != two || *h.Consumer != three {
			t.Errorf("the queues %+v and %+v, together %+v; want %+v, %+v and %+v", *h.Queues[0].Consumer, *h.Queues[1].Consumer, *h.Consumer, one, two, three)
		}
		sum := consumerHealth{1, 2, 3, 4, 5, 6, 7}
		if sum.add(&consumerHealth{10, 20, 30, 40, 50, 60, 70}); sum != (consumerHealth{11, 22, 33, 44, 55, 66, 77}) {
			t.Errorf("the sum is %+v", sum)
		}
		close(block)
		close(drain)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
