package receiving

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// smallQuota makes a queue with the given quota of messages in flight.
func smallQuota(t *testing.T, quota int, attributes map[string]string) *reprisetest.Queue {
	server := sqsserver.New(sqsserver.Config{Seed: 1, NoCooldown: true, InFlightLimit: quota, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
	t.Cleanup(func() { _ = server.Close() })
	return reprisetest.NewQueueOn(t, server, attributes)
}

// inFlight returns how many of q's messages are in flight.
func inFlight(q *reprisetest.Queue) (n int) {
	for _, m := range q.Messages() {
		if m.State == sqsserver.InFlight {
			n++
		}
	}
	return n
}

// countReads counts the requests for nothing but the counts: the readings of all attributes, about
// every ten minutes, have the counts too.
type countReads struct {
	reprise.Client
	n atomic.Int64
}

func (c *countReads) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, opts ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	if !slices.Contains(in.AttributeNames, types.QueueAttributeNameAll) {
		c.n.Add(1)
	}
	return c.Client.GetQueueAttributes(ctx, in, opts...)
}

// TestInFlightCountIsReadOnlyWhereItMatters: an idle consumer, and one with some hundreds in
// backoff, never read the count. One with a notable part of the quota reads it, once a minute at
// most.
func TestInFlightCountIsReadOnlyWhereItMatters(t *testing.T) {
	for _, test := range []struct {
		failing     int
		least, most int64
	}{{0, 0, 0}, {600, 0, 0}, {1500, 1, 60}} {
		t.Run(fmt.Sprint(test.failing, " in backoff"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				reads := &countReads{Client: q.Direct()}
				q.ConsumeWith(reads, reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
					return reprise.RetryAfter(6*time.Hour, kit.ErrUnavailable)
				}), reprise.Config{Via: reprise.ViaVisibility})
				for i := range test.failing {
					q.Send(fmt.Sprint(i))
				}
				time.Sleep(time.Hour)
				if n := reads.n.Load(); n < test.least || n > test.most {
					t.Errorf("the counts were read %d times in an hour, want %d to %d", n, test.least, test.most)
				}
			})
		})
	}
}

// TestRetriesSpillToCopiesNearTheQuota: all messages fail and wait for 14 minutes, far more than
// may be in flight. Before the quota is used up retries become delayed copies, so that every
// message is tried.
func TestRetriesSpillToCopiesNearTheQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const quota, messages = 100, 400
		q := smallQuota(t, quota, nil)
		for i := range messages {
			q.Send(fmt.Sprint(i))
		}
		var j kit.Journal
		var found kit.Findings
		c := q.Consume(j.Handler(func(_ context.Context, m *reprise.Message) error {
			time.Sleep(2 * time.Second)
			if m.Attempt == 1 {
				return reprise.RetryAfter(14*time.Minute, kit.ErrUnavailable)
			}
			return nil
		}), reprise.Config{Concurrency: 2, Prefetch: 2, InFlightQuota: quota, Observer: reprise.Observer{Finding: found.Observe}})
		most := 0
		for range 420 {
			time.Sleep(time.Second)
			most = max(most, inFlight(q))
		}
		if most < quota/2 || most >= quota {
			t.Errorf("at most %d were in flight, want less than %d, and waits hidden at first", most, quota)
		}
		if runs := len(j.All()); runs < messages {
			t.Errorf("%d first attempts in 7 minutes, want %d: the quota stopped them", runs, messages)
		}
		s := c.Status()
		if s.Counts.Requeued == 0 || s.Counts.Requeued == s.Counts.Retried || s.Health != reprise.HealthOK {
			t.Errorf("status %+v, want some retries requeued, in good health", s)
		}
		if f := s.InFlight; f.Quota != quota || f.Queue == 0 || time.Since(f.AsOf) > 2*time.Minute {
			t.Errorf("in flight %+v", f)
		}
		if n := found.Count(plan.CodeInFlight); n != 1 {
			t.Errorf("%d findings, want it said once", n)
		}
		q.WaitEmpty(2 * time.Hour)
		byBody := make(map[string]int)
		for _, r := range j.All() {
			byBody[r.Body]++
		}
		if len(byBody) != messages || len(j.All()) != 2*messages {
			t.Errorf("%d runs of %d messages, want two of each", len(j.All()), len(byBody))
		}
	})
}

// TestFIFONearTheQuotaHidesOnlyHeads: no copies on a FIFO queue. A finding reports it; groups are
// not held, and the messages behind a hidden head are not in flight.
func TestFIFONearTheQuotaHidesOnlyHeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const quota = 40
		q := smallQuota(t, quota, kit.FIFOQueue)
		direct := q.Direct()
		var others strings.Builder
		for r := 'A'; r < 'A'+36; r++ {
			others.WriteRune(r)
		}
		kit.Groups(q, strings.ReplaceAll(others.String(), "a", "z"), 1)
		for range 4 { // another process has nearly all of the quota
			out, err := direct.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(q.URL()), MaxNumberOfMessages: 10, VisibilityTimeout: 3600})
			if err != nil || len(out.Messages) == 0 {
				t.Fatal(len(out.Messages), err)
			}
		}
		kit.Groups(q, "a", 3)
		var j kit.Journal
		var found kit.Findings
		c := q.Consume(j.Handler(kit.FailFirst("a01", 1)), reprise.Config{
			InFlightQuota: quota,
			Observer:      reprise.Observer{Finding: found.Observe},
			Retry:         retry.Policy{Backoff: retry.Constant(30 * time.Second), Jitter: retry.None},
		})
		time.Sleep(5 * time.Second)
		if n := c.Status().Counts; n.Held != 0 || n.Retried != 1 {
			t.Errorf("counts %+v, want nothing held", n)
		}
		if n := inFlight(q); n != 37 {
			t.Errorf("%d in flight, want the others' 36 and the head", n)
		}
		if found.Count(plan.CodeInFlight) != 1 {
			t.Errorf("findings %v", found.Codes())
		}
		time.Sleep(time.Minute)
		if got := j.Bodies(); !slices.Equal(got, []string{"a01", "a01", "a02", "a03"}) {
			t.Errorf("runs %v", got)
		}
	})
}

// TestFullQuotaBehindEmptyReceives: the queue's quota is used up by messages in backoff, and long
// polls return no messages and no error. The consumer detects it, reports it, receives less often,
// and goes on when there is room again.
func TestFullQuotaBehindEmptyReceives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const quota, messages = 20, 50
		q := smallQuota(t, quota, nil)
		for i := range messages {
			q.Send(fmt.Sprint(i))
		}
		broken := true
		c := q.Consume(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			if broken {
				return reprise.RetryAfter(6*time.Hour, kit.ErrUnavailable)
			}
			return nil
		}), reprise.Config{Via: reprise.ViaVisibility, InFlightQuota: quota})
		time.Sleep(3 * time.Minute)
		s := c.Status()
		for _, want := range []string{"20 messages of the queue were in flight", "of the 20 that SQS permits", "30 wait", "20 in backoff", "Shorten the backoff"} {
			if !strings.Contains(s.Problem, want) {
				t.Errorf("problem %q does not say %q", s.Problem, want)
			}
		}
		if s.Health != reprise.HealthDegraded || !s.InFlight.Full || s.InFlight.Visible != 30 || s.InBackoff != 20 || s.Processing != 0 {
			t.Errorf("status %+v", s)
		}
		before := s.Calls
		time.Sleep(time.Hour)
		after := c.Status().Calls
		if n := after.Receives - before.Receives; n > 125 {
			t.Errorf("%d receives in an hour, a poller that does not back off makes 180", n)
		}
		if n := after.Attributes - before.Attributes; n > 61 {
			t.Errorf("the count was read %d times in an hour", n)
		}
		broken = false
		c.Wake()
		q.WaitEmpty(time.Hour)
		time.Sleep(10 * time.Minute)
		if s := c.Status(); s.Health != reprise.HealthOK || s.InFlight.Full {
			t.Errorf("afterwards: %v, %s, %+v", s.Health, s.Problem, s.InFlight)
		}
	})
}

// TestOverLimitIsRecognised: a receive that is refused because of the quota is not a failure to
// receive. It is reported in words, receives become less frequent, and the report ends with the
// state.
func TestOverLimitIsRecognised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultOverLimit, Every: 1})
		c := q.Consume(reprise.HandlerFunc(kit.Succeed), reprise.Config{})
		time.Sleep(10 * time.Minute)
		s := c.Status()
		if s.Health != reprise.HealthDegraded || !strings.Contains(s.Problem, "receives bring no more messages") || !s.InFlight.Full {
			t.Errorf("status %+v", s)
		}
		if s.Calls.Receives > 70 || s.Calls.Attributes > 12 {
			t.Errorf("calls %+v, want one receive in 10 to 20 s, and one reading a minute", s.Calls)
		}
		q.Fault()
		q.Send("order")
		q.WaitEmpty(time.Minute)
		if s := c.Status(); s.Health != reprise.HealthOK || s.InFlight.Full {
			t.Errorf("afterwards %+v", s)
		}
	})
}

// TestInFlightCountsDenied: without the permission to read the counts the consumer reports it,
// once, and goes on.
func TestInFlightCountsDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := smallQuota(t, 20, nil)
		for i := range 30 {
			q.Send(fmt.Sprint(i))
		}
		client := &kit.Spy{Client: q.Direct()}
		client.Attributes = func(context.Context, *sqs.GetQueueAttributesInput) (*sqs.GetQueueAttributesOutput, error) {
			return nil, &smithy.GenericAPIError{Code: "AccessDenied", Message: "not for you"}
		}
		var found kit.Findings
		reads := &countReads{Client: client}
		q.ConsumeWith(reads, reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			return reprise.RetryAfter(30*time.Minute, kit.ErrUnavailable)
		}), reprise.Config{InFlightQuota: 20, Observer: reprise.Observer{Finding: found.Observe}})
		time.Sleep(50 * time.Minute)
		if n := found.Count(plan.CodeInFlight); n != 1 {
			t.Errorf("findings %v, want the denied count said once", found.Codes())
		}
		if n := reads.n.Load(); n > 1 {
			t.Errorf("the counts were asked for %d times within the hour", n)
		}
	})
}

// TestInFlightQuotaNegative: the count is not read, and not shown.
func TestInFlightQuotaNegative(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := smallQuota(t, 20, nil)
		for i := range 30 {
			q.Send(fmt.Sprint(i))
		}
		reads := &countReads{Client: q.Direct()}
		c := q.ConsumeWith(reads, reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
			return reprise.RetryAfter(30*time.Minute, kit.ErrUnavailable)
		}), reprise.Config{InFlightQuota: -1})
		time.Sleep(20 * time.Minute)
		if s := c.Status(); reads.n.Load() != 0 || s.InFlight != (reprise.InFlight{}) || s.Health != reprise.HealthOK {
			t.Errorf("status %+v", s)
		}
	})
}
