package operating

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestStanding: a consumer tells of each message that it knows where it stands, and until when. The
// handler obeys the body: "slow" runs until it is cancelled, "fail" fails, anything else ends well.
func TestStanding(t *testing.T) {
	obey := func(ctx context.Context, m *reprise.Message) error {
		switch _, what, _ := strings.Cut(m.Body, ":"); what {
		case "slow":
			<-ctx.Done()
			return ctx.Err()
		case "fail":
			return errors.New("no such account: " + strings.Repeat("x", 1000))
		case "down":
			return reprise.Unavailable(kit.ErrUnavailable)
		}
		return nil
	}
	hourly := retry.Policy{Backoff: retry.Constant(time.Hour), Jitter: retry.None, MaxAttempts: 5}
	soon := retry.Policy{Backoff: retry.Constant(20 * time.Second), Jitter: retry.None, MaxAttempts: 5}
	type want struct {
		stage   reprise.Stage
		attempt int
		head    bool
		problem string
		until   time.Duration // from the time of the test's look; 0: not known
	}
	for _, test := range []struct {
		name   string
		fifo   bool
		cfg    reprise.Config
		act    func(*testing.T, *reprisetest.Consumer)
		bodies []string // the last one is asked about
		want   want
	}{
		{name: "running", bodies: []string{"a:slow"}, want: want{stage: reprise.StageRunning, attempt: 1}},
		{name: "place", cfg: reprise.Config{Concurrency: 1}, bodies: []string{"a:slow", "a:x"}, want: want{stage: reprise.StagePlace, attempt: 1}},
		{
			name: "backoff", cfg: reprise.Config{Retry: hourly}, bodies: []string{"a:fail"},
			want: want{stage: reprise.StageBackoff, attempt: 2, problem: "no such account", until: time.Hour - 10*time.Second},
		},
		{name: "done", bodies: []string{"a:x"}, want: want{stage: 255}},
		{
			name: "paused", bodies: []string{"a:x"}, want: want{stage: reprise.StagePaused, attempt: 1},
			act: func(_ *testing.T, c *reprisetest.Consumer) { c.Pause() },
		},
		{
			name: "key", cfg: reprise.Config{Outage: reprise.Outage{Key: kit.Tenant}}, bodies: []string{"acme:x"}, want: want{stage: reprise.StageKey, attempt: 1},
			act: func(t *testing.T, c *reprisetest.Consumer) {
				if err := c.PauseKey("acme"); err != nil {
					t.Error(err)
				}
			},
		},
		{
			name: "breaker", cfg: reprise.Config{Outage: reprise.Outage{Threshold: 2}, Concurrency: 2}, bodies: []string{"a:down", "b:down", "c:down", "d:down"},
			want: want{stage: reprise.StageBreaker, attempt: 1, problem: kit.ErrUnavailable.Error(), until: -1},
		},
		{name: "rate", cfg: reprise.Config{Rate: 0.01}, bodies: []string{"a:x", "a:x"}, want: want{stage: reprise.StageRate, attempt: 1, until: 90 * time.Second}},
		{name: "group", fifo: true, bodies: []string{"a:slow", "a:x"}, want: want{stage: reprise.StageGroup, attempt: 1, head: true}},
		{
			name: "due", fifo: true, cfg: reprise.Config{Retry: soon}, bodies: []string{"a:fail"},
			want: want{stage: reprise.StageDue, attempt: 2, problem: "no such account", until: 10 * time.Second},
		},
		{
			name: "given up", cfg: reprise.Config{Retry: retry.Policy{MaxAttempts: 1}}, bodies: []string{"a:fail"},
			want: want{stage: reprise.StageGivenUp, attempt: 1, problem: "no such account"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attributes := map[string]string{}
				if test.fifo {
					attributes["FifoQueue"] = "true"
				}
				q := reprisetest.NewQueue(t, attributes)
				var c *reprisetest.Consumer
				if test.act != nil {
					c = q.Consume(reprise.HandlerFunc(obey), test.cfg)
					time.Sleep(time.Second)
					test.act(t, c)
				}
				var first, last string
				for _, body := range test.bodies {
					e := sqsserver.SendMessageEntry{MessageBody: body}
					if test.fifo {
						e.MessageGroupId, e.MessageDeduplicationId = "g", body
					}
					last = q.SendMessage(e)
					if first == "" {
						first = last
					}
				}
				if c == nil {
					c = q.Consume(reprise.HandlerFunc(obey), test.cfg)
				}
				time.Sleep(10 * time.Second)
				if test.want.stage == reprise.StageBreaker { // a canary may run at just this moment: no time is known then
					kit.WaitFor(t, "the breaker is open", time.Minute, kit.StateIs(c, "", reprise.BreakerOpen))
				}
				got, known := c.Standing(last)
				if test.want.stage == 255 {
					if known {
						t.Errorf("a message that is done is known: %+v", got)
					}
					return
				}
				if !known || got.Stage != test.want.stage || got.Attempt != test.want.attempt || got.ID != last || !strings.Contains(got.Problem, test.want.problem) || (got.Problem == "") != (test.want.problem == "") {
					t.Errorf("known %t: %+v, want %+v", known, got, test.want)
				}
				if len(got.Problem) > 200 {
					t.Errorf("the problem has %d bytes", len(got.Problem))
				}
				if test.want.head != (got.Head == first) {
					t.Errorf("it waits behind %q, and %q was sent first", got.Head, first)
				}
				switch in := time.Until(got.Until).Round(time.Second); {
				case test.want.until == 0 && !got.Until.IsZero(), test.want.until < 0 && !got.Until.After(time.Now()), test.want.until > 0 && in != test.want.until:
					t.Errorf("until %v, in %v; want %v", got.Until, in, test.want.until)
				}
				held := got.Stage != reprise.StageBackoff && got.Stage != reprise.StageGivenUp
				if held != got.LeaseEnd.After(time.Now()) {
					t.Errorf("the lease of a message in %v ends at %v", got.Stage, got.LeaseEnd)
				}
				if _, known := c.Standing("no such id"); known {
					t.Error("an unknown message is known")
				}
			})
		})
	}
}
