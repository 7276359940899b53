package admin_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// timeline asks for the timeline, which has to be what the description says.
func (s *served) timeline(query string) admin.Timeline {
	s.t.Helper()
	status, text := s.call("GET", admin.Path+"timeline"+query, "")
	if status != 200 {
		s.t.Fatalf("%s: %d %s", query, status, text)
	}
	return decode[admin.Timeline](s.t, text)
}

// texts are entries as queue, kind and text.
func texts(entries []admin.TimelineEntry) (all []string) {
	for _, e := range entries {
		all = append(all, e.Queue+" "+e.Kind+": "+port.ReplaceAllString(e.Text, "127.0.0.1:1"))
	}
	return all
}

// expect compares the texts of entries with the beginnings of those that are wanted.
func expect(t *testing.T, what string, entries []admin.TimelineEntry, want ...string) {
	t.Helper()
	got := texts(entries)
	same := len(got) == len(want)
	for i := 0; same && i < len(want); i++ {
		same = strings.HasPrefix(got[i], want[i])
	}
	if !same {
		t.Errorf("%s:\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestTimeline: what consumers, operators and jobs do is told in sentences, the newest first, with who did it; of a
// queue, of the last time, and as many as are wanted.
func TestTimeline(t *testing.T) {
	events := new(admin.Events)
	s := serve(t, func(cfg *admin.Config) { cfg.Events = events })
	s.api.Start()
	t.Cleanup(func() { _ = s.api.Stop(context.Background()) })
	now := time.Now()
	orders := events.Observer(queueURL + "1/orders")
	down := errors.New("unavailable: 503")
	breaker := func(state, previous reprise.BreakerState, at time.Duration) {
		orders.Outage(t.Context(), reprise.OutageEvent{State: state, Previous: previous, At: now.Add(at), Since: now.Add(-5 * time.Minute), Err: down})
	}
	breaker(reprise.BreakerOpen, reprise.BreakerClosed, -300*time.Second)
	breaker(reprise.BreakerHalfOpen, reprise.BreakerOpen, -200*time.Second)
	breaker(reprise.BreakerOpen, reprise.BreakerHalfOpen, -199*time.Second)
	breaker(reprise.BreakerHalfOpen, reprise.BreakerOpen, -100*time.Second)
	breaker(reprise.BreakerRamping, reprise.BreakerHalfOpen, -99*time.Second)
	breaker(reprise.BreakerClosed, reprise.BreakerRamping, 0)
	events.Observer(queueURL+"1/mail").Outage(t.Context(), reprise.OutageEvent{Key: "acme", State: reprise.BreakerOpen, Previous: reprise.BreakerClosed, At: now, Err: down})
	for _, request := range []struct{ path, body string }{
		{"consumers/mail/pause", `{}`}, {"consumers/orders/pause", `{"keys":["acme"]}`}, {"consumers/mail/concurrency", `{"concurrency":7}`}, {"consumers/mail/resume", `{}`},
	} {
		if status, text := s.call("POST", admin.Path+request.path, request.body); status != 200 {
			t.Fatalf("%s: %d %s", request.path, status, text)
		}
	}
	if status, _ := s.call("POST", admin.Path+"consumers/mail/concurrency", `{"concurrency":-7}`); status != 400 {
		t.Errorf("a negative concurrency: %d", status)
	}
	orders.GivingUp(t.Context(), reprise.GivingUp{Over: true, Since: now, At: now.Add(12 * time.Minute), Total: 50})
	orders.Finding(t.Context(), plan.Finding{Severity: plan.Info, Problem: "nothing to worry about."})
	orders.Finding(t.Context(), plan.Finding{Severity: plan.Warning, Problem: "the retention is short."})
	events.Reloaded(3, 2, nil)
	events.Reloaded(0, 0, errors.New("line 3: no such key"))

	all := s.timeline("?limit=1000")
	expect(t, "all", all.Entries,
		"orders finding: Messages are no longer given up in large numbers: 50 messages in 12m",
		" reload: The configuration was not read again, or not as a whole: line 3: no such key",
		" reload: The configuration was read again: 3 queues, of which 2 unchanged",
		"orders finding: The consumer found a problem: the retention is short.",
		"mail limits: An operator at 127.0.0.1:1 asked for concurrency, which failed, with concurrency -7: ",
		"mail pause: An operator at 127.0.0.1:1 resumed the consumer",
		"mail limits: An operator at 127.0.0.1:1 changed the concurrency, with concurrency 7",
		"orders pause: An operator at 127.0.0.1:1 paused the consumer, with keys acme",
		"mail pause: An operator at 127.0.0.1:1 paused the consumer",
		"mail breaker: The circuit breaker of key acme opened: unavailable: 503",
		"orders breaker: The circuit breaker closed after 5m; last error: unavailable: 503",
		" start: The process started, version v1",
		"orders breaker: The circuit breaker opened: unavailable: 503",
	)
	if all.Since.After(all.At) || all.Since.Before(now.Add(-time.Minute)) || all.More != 0 || all.Forgotten != 0 || strings.Join(all.Queues, " ") != "mail orders" {
		t.Errorf("%+v", all)
	}
	expect(t, "of a queue", s.timeline("?queue=mail&limit=2").Entries, "mail limits: ", "mail pause: ")
	if of := s.timeline("?queue=mail&limit=2"); of.More != 3 {
		t.Errorf("%d more", of.More)
	}
	if byURL, byName := s.timeline("?queue="+url.QueryEscape(queueURL+"1/orders")), s.timeline("?queue=orders"); len(byURL.Entries) != 5 || len(byName.Entries) != 5 {
		t.Errorf("of a URL: %v, of a name: %v", texts(byURL.Entries), texts(byName.Entries))
	}
	for _, since := range []string{"1m", url.QueryEscape(now.Add(-time.Minute).Format(time.RFC3339))} {
		if got := s.timeline("?since=" + since); len(got.Entries) != len(all.Entries)-1 {
			t.Errorf("since %s: %v", since, texts(got.Entries))
		}
	}
	if got := s.timeline("?queue=absent"); len(got.Entries) != 0 || len(got.Queues) != 2 {
		t.Errorf("of another queue: %+v", got)
	}
	for _, query := range []string{"?limit=0", "?limit=1001", "?limit=x", "?since=yesterday", "?since=-5m"} {
		if status, text := s.call("GET", admin.Path+"timeline"+query, ""); status != 400 || decode[admin.Error](t, text).Code != "bad-request" {
			t.Errorf("%s: %d %s", query, status, text)
		}
	}
}

// port is that of an operator.
var port = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// TestTimelineOfJobs: a job is told at its beginning and its end, with its counts, and no content of its edit; an
// action on a message, with its id.
func TestTimelineOfJobs(t *testing.T) {
	s, server := withMessages(t)
	dead := bodies(t, server, "dead")
	s.run(`{"action":"delete","queue":"dead","all":true,"dry_run":true,"rate":1000}`)
	entries := s.timeline("?queue=dead").Entries
	expect(t, "a count", entries,
		"dead job: The count of what it would delete ended: 5 looked at, 5 matched",
		"dead job: An operator at 127.0.0.1:1 began a job: count what it would delete; all messages; at most 1000 a second",
	)
	job := s.run(`{"action":"delete","queue":"dead","selection":{"error":"ending in 400[0-2]"},"limit":2}`)
	if status, text := s.call("POST", admin.Path+"queues/dead/messages/"+dead[4]+"/delete", `{}`); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	entries = s.timeline("?queue=dead").Entries[:3]
	expect(t, "jobs", entries,
		"dead action: An operator at 127.0.0.1:1 deleted a message",
		"dead job: The job delete ended: 2 looked at, 2 matched, 2 done",
		`dead job: An operator at 127.0.0.1:1 began a job: delete; error matches ending in 400[0-2]; at most 2`,
	)
	if len(entries) == 3 && (entries[0].Message != dead[4] || entries[1].Job != job.ID || entries[2].Job != job.ID) {
		t.Errorf("the ids of %+v", entries)
	}
}

// TestTimelineHasNoContent: what an edit writes into messages, and the body of a message that is sent, may be secret.
func TestTimelineHasNoContent(t *testing.T) {
	s := serve(t, func(cfg *admin.Config) {
		cfg.JobQueue = func(_ context.Context, queue string) (admin.JobQueue, error) {
			return admin.JobQueue{URL: queueURL + queue, Client: awsclient.Local("http://127.0.0.1:1", "us-east-1", func(o *sqs.Options) { o.RetryMaxAttempts = 1 })}, nil
		}
	})
	if status, text := s.call("POST", admin.Path+"jobs", `{"action":"redrive","queue":"dead","any_queue":true,"all":true,"edit":{"find":"a","replace":"secret-7","set":{"tenant":"secret-8"}}}`); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	s.call("POST", admin.Path+"queues/orders/messages", `{"body":"secret-9","attributes":{"a":{"type":"String","value":"secret-9"}}}`)
	if err := s.api.Stop(t.Context()); err != nil { // the job fails, since there is no SQS
		t.Fatal(err)
	}
	_, text := s.call("GET", admin.Path+"timeline", "")
	if strings.Contains(text, "secret-") || !strings.Contains(text, "began a job: redrive") || !strings.Contains(text, "asked for send") {
		t.Errorf("the timeline %s", text)
	}
}

// TestTimelineOfDeadLetters: the first one is told, with its reason and error, and then the first after ten minutes
// without any, and the first whose error is another, however many there are in between.
func TestTimelineOfDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events := new(admin.Events)
		orders := events.Observer(queueURL + "orders")
		giveUp := func(id string, outcome reprise.Outcome, err error) {
			if err != nil {
				orders.Attempt(t.Context(), reprise.Attempt{Message: message(id), Outcome: outcome, Err: err})
			}
			orders.Settled(t.Context(), reprise.Settled{Message: message(id), Outcome: outcome, Reason: retry.ReasonPermanent})
		}
		orders.Settled(t.Context(), reprise.Settled{Message: message("m"), Outcome: reprise.OutcomeDelete})
		for i := range 1000 {
			giveUp(fmt.Sprint(i), reprise.OutcomeDeadLetter, fmt.Errorf("no such order %d", i))
			time.Sleep(time.Second)
		}
		time.Sleep(9*time.Minute + 58*time.Second)
		giveUp("not yet", reprise.OutcomeDeadLetter, nil)
		time.Sleep(20 * time.Minute)
		giveUp("again", reprise.OutcomeKeep, nil)
		for i := range 1000 {
			giveUp(fmt.Sprint("currency ", i), reprise.OutcomeDeadLetter, fmt.Errorf("no currency SEK: order %d", i))
		}
		for i := range 1000 { // errors that have nothing in common do not fill the timeline
			giveUp(fmt.Sprint("odd ", i), reprise.OutcomeDeadLetter, errors.New(strings.Repeat("x", 1+i)))
		}
		all := admin.Remembered(events)
		if n := len(all); n != 21 { // 19 kinds of the last minutes, and two after a time without any
			t.Errorf("%d entries, want 21", n)
		}
		all = slices.DeleteFunc(all, func(e admin.TimelineEntry) bool { return strings.HasSuffix(e.Text, "x") })
		expect(t, "dead letters", all,
			"orders dead-letters: A message was dead-lettered, the first of its kind: reason permanent; last error: no currency SEK: order 0",
			"orders dead-letters: A message was given up, and there is no dead-letter queue for it, the first for 20m: reason permanent",
			"orders dead-letters: A message was dead-lettered, the first since the process began: reason permanent; last error: no such order 0",
		)
		if got := all[1].Text; strings.Contains(got, "no such order") {
			t.Errorf("it has the error of another message: %s", got)
		}
	})
}

// TestTimelineIsBounded: what happens all the time is forgotten before what happens once; how much was is told; and
// no text is longer than it may be.
func TestTimelineIsBounded(t *testing.T) {
	events := new(admin.Events)
	s := serve(t, func(cfg *admin.Config) { cfg.Events = events })
	if status, text := s.call("POST", admin.Path+"consumers/mail/pause", `{}`); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	long := errors.New(strings.Repeat("\u202e\x1b<b>", 1<<20))
	flap := func(queue string, n int) {
		o := events.Observer(queueURL + queue)
		for range n {
			o.Outage(t.Context(), reprise.OutageEvent{Key: long.Error(), State: reprise.BreakerOpen, Previous: reprise.BreakerClosed, Err: long})
		}
	}
	flap("orders", 5000)
	if got := s.timeline("?queue=orders&limit=1000"); len(got.Entries) != 50 || got.Forgotten != 4950 {
		t.Errorf("%d entries of a breaker that flaps, and %d forgotten, want 50 and 4950", len(got.Entries), got.Forgotten)
	}
	if got := s.timeline("?queue=mail"); len(got.Entries) != 1 || got.Forgotten != 0 {
		t.Errorf("of the other queue: %+v", got)
	}
	for i := range 3000 { // many queues, of which each has a little
		flap(fmt.Sprintf("queue-%d", i%1500), 1)
	}
	status, text := s.call("GET", admin.Path+"timeline?limit=1000", "")
	got := decode[admin.Timeline](t, text)
	if status != 200 || len(got.Entries) != 1000 || got.Forgotten != 5000+1+3000-1000 || len(text) > 2<<20 || len(got.Queues) > 1000 {
		t.Errorf("%d: %d entries, %d forgotten, %d bytes, %d queues", status, len(got.Entries), got.Forgotten, len(text), len(got.Queues))
	}
	for _, e := range got.Entries {
		if len(e.Text) > 1500 || strings.ContainsAny(e.Text, "\u202e\x1b") {
			t.Fatalf("%d bytes: %.100q", len(e.Text), e.Text)
		}
	}
}

// TestTimelineOfFindings: what nobody reports is looked for without a viewer: what is wrong with the process's own
// queues, when it began, and how long it lasted. Queues of others are not asked about.
func TestTimelineOfFindings(t *testing.T) {
	for _, own := range []bool{true, false} {
		t.Run(fmt.Sprintf("own=%t", own), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var letters, asked, received, waiting atomic.Int64
				since := time.Now()
				events := new(admin.Events)
				cfg := admin.Config{
					Version: "v1", Events: events, Logger: slog.New(slog.DiscardHandler), Consumers: func() []admin.Running { return nil },
					Queues: func(context.Context) ([]operate.Described, bool, error) {
						asked.Add(1)
						return []operate.Described{
							{URL: queueURL + "orders", Attributes: map[string]string{
								"QueueArn": "arn:aws:sqs:us-east-1:000000000000:orders", "VisibilityTimeout": "30", "MessageRetentionPeriod": "345600",
								"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":100}`,
							}},
							{URL: queueURL + "dead", Attributes: map[string]string{"QueueArn": "arn:aws:sqs:us-east-1:000000000000:dead", "MessageRetentionPeriod": "1209600", "ApproximateNumberOfMessages": fmt.Sprint(letters.Load())}},
							{URL: queueURL + "alone", Oldest: since, Attributes: map[string]string{
								"QueueArn": "arn:aws:sqs:us-east-1:000000000000:alone", "VisibilityTimeout": "30", "MessageRetentionPeriod": "345600", "ApproximateNumberOfMessages": fmt.Sprint(waiting.Load()),
								"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":100}`,
							}},
							{URL: queueURL + "deleted", Problem: "there is no such queue"},
						}, true, nil
					},
				}
				if own {
					cfg.Traffic = func() map[string]admin.Traffic {
						return map[string]admin.Traffic{"arn:aws:sqs:us-east-1:000000000000:alone": {Received: received.Load()}}
					}
					server := sqsserver.New(sqsserver.Config{})
					defer server.Close()
					cfg.Server = server
				}
				api := admin.New(cfg)
				api.Start()
				step := func(n int64) {
					synctest.Wait()
					letters.Store(n)
					time.Sleep(time.Minute)
				}
				step(0)
				step(1)
				step(12)
				step(0)
				waiting.Store(3)
				for range 10 { // it is received from once in a while
					received.Add(1)
					time.Sleep(50 * time.Second)
				}
				time.Sleep(time.Minute)
				received.Add(1)
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if err := api.Stop(t.Context()); err != nil {
					t.Fatal(err)
				}
				before := asked.Load()
				time.Sleep(time.Minute)
				if asked.Load() != before {
					t.Error("it looks after its stop")
				}
				if !own {
					expect(t, "findings", admin.Remembered(events), " start: ")
					if asked.Load() != 0 {
						t.Errorf("queues of others were asked about %d times", asked.Load())
					}
					return
				}
				expect(t, "findings", admin.Remembered(events),
					"alone finding: A problem ended after ",
					"alone finding: A problem began: no consumer receives from it: the oldest of 3 messages has waited for 1",
					"dead finding: A problem ended after 2m. It was: it has 12 dead letters.",
					"dead finding: A problem began: it has 1 dead letter.",
					" start: The process started, version v1",
				)
				if n := asked.Load(); n < 150 || n > 170 {
					t.Errorf("the queues were looked at %d times in 13 minutes", n)
				}
			})
		})
	}
}

// TestTimelineThrottledAttributes: a queue whose attributes could not be read in one look has neither a new problem nor
// an old one less, and so have its dead-letter queue and the queues whose dead-letter queue it is.
func TestTimelineThrottledAttributes(t *testing.T) {
	for _, throttled := range []string{"orders", "dead"} {
		t.Run(throttled, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var look atomic.Int64
				arn := "arn:aws:sqs:us-east-1:000000000000:"
				all := map[string]map[string]string{
					"orders": {"QueueArn": arn + "orders", "VisibilityTimeout": "30", "MessageRetentionPeriod": "1209600", "RedrivePolicy": `{"deadLetterTargetArn":"` + arn + `dead","maxReceiveCount":100}`},
					"dead":   {"QueueArn": arn + "dead", "VisibilityTimeout": "30", "MessageRetentionPeriod": "345600", "ApproximateNumberOfMessages": "7"},
				}
				server := sqsserver.New(sqsserver.Config{})
				defer server.Close()
				events := new(admin.Events)
				api := admin.New(admin.Config{Version: "v1", Events: events, Logger: slog.New(slog.DiscardHandler), Server: server,
					Consumers: func() []admin.Running { return nil },
					Queues: func(context.Context) (described []operate.Described, complete bool, err error) {
						every := look.Add(1)%3 == 0
						for _, name := range []string{"orders", "dead"} {
							one := operate.Described{URL: queueURL + name, Attributes: all[name]}
							if every && name == throttled {
								one.Attributes, one.Problem = nil, "RequestThrottled: slow down"
							}
							described = append(described, one)
						}
						return described, true, nil
					}})
				api.Start()
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				if err := api.Stop(t.Context()); err != nil {
					t.Fatal(err)
				}
				expect(t, "findings", admin.Remembered(events),
					"orders finding: A problem began: the dead-letter queue keeps messages 4d",
					"dead finding: A problem began: it has 7 dead letters.",
					" start: The process started, version v1",
				)
			})
		})
	}
}

// failingReceives is SQS, whose receives fail as long as err is not nil.
type failingReceives struct {
	reprise.Client
	err atomic.Pointer[error]
}

func (f *failingReceives) ReceiveMessage(ctx context.Context, _ *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	if err := f.err.Load(); err != nil {
		return nil, *err
	}
	select {
	case <-time.After(20 * time.Second):
	case <-ctx.Done():
	}
	return &sqs.ReceiveMessageOutput{}, ctx.Err()
}

func (f *failingReceives) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{"QueueArn": "arn:aws:sqs:us-east-1:000000000000:orders", "VisibilityTimeout": "30", "MessageRetentionPeriod": "345600"}}, nil
}

// TestTimelineOfConsumers: a consumer that cannot receive is a problem that begins and ends, on AWS too.
func TestTimelineOfConsumers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := new(failingReceives)
		denied := errors.New("AccessDenied: not authorized to perform sqs:ReceiveMessage")
		client.err.Store(&denied)
		events := new(admin.Events)
		handler := reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return nil })
		consumer, err := reprise.New(client, queueURL+"orders", handler, reprise.Config{Logger: slog.New(slog.DiscardHandler), Observer: events.Observer(queueURL + "orders")})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- consumer.Run(ctx) }()
		api := admin.New(admin.Config{Version: "v1", Events: events, Logger: slog.New(slog.DiscardHandler), Consumers: func() []admin.Running {
			return []admin.Running{{URL: queueURL + "orders", Consumer: consumer}}
		}})
		time.Sleep(time.Second)
		api.Start()
		time.Sleep(10 * time.Minute)
		client.err.Store(nil)
		time.Sleep(10 * time.Minute)
		if err := api.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		var problems []admin.TimelineEntry
		for _, e := range admin.Remembered(events) {
			if strings.Contains(e.Text, "A problem ") {
				problems = append(problems, e)
			}
		}
		expect(t, "problems", problems, "orders finding: A problem ended after 1", "orders finding: A problem began: ")
		for _, e := range problems {
			if !strings.Contains(e.Text, "AccessDenied") {
				t.Errorf("no error in %s", e.Text)
			}
		}
	})
}
