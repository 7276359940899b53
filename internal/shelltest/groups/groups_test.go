package groups

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/retry"
)

// TestFIFOHeldGroupUsesUpNoReceives: the head of a group fails seven times, more often than the
// queue permits receives. The group waits here, and each message is received once; attempts are
// numbered exactly, and none is early.
func TestFIFOHeldGroupUsesUpNoReceives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, kit.FIFOQueue)
		q.NewDeadLetterQueue(3)
		kit.Groups(q, "a", 5)
		var j kit.Journal
		c := q.Consume(j.Handler(kit.FailFirst("a01", 7)), reprise.Config{
			Lease: 10 * time.Second,
			Retry: retry.Policy{Backoff: retry.Constant(20 * time.Second), Jitter: retry.None, MaxAttempts: 9},
		})
		q.WaitEmpty(time.Hour)
		runs := j.All()
		for i, r := range runs {
			if r.Receives != 1 {
				t.Errorf("run %d: %+v, want the first receive", i, r)
			}
			if i > 0 && i < 8 && (r.Body != "a01" || r.Attempt != i+1 || r.Started.Sub(runs[i-1].Started) != 20*time.Second) {
				t.Errorf("run %d: %+v, want attempt %d at a01, 20 s after the one before", i, r, i+1)
			}
		}
		if got := slices.Compact(j.Bodies()); !slices.Equal(got, []string{"a01", "a02", "a03", "a04", "a05"}) {
			t.Errorf("order %v", got)
		}
		if n := c.Status().Counts; n.Held != 7 || n.Retried+n.Released+n.Lost != 0 {
			t.Errorf("counts %+v, want 7 holds and nothing given back", n)
		}
	})
}

// TestFIFOHeldHeadIsDeadLetteredAfterItsRuns: a held head is given up after as many runs as
// permitted, which are counted exactly, and the group goes on.
func TestFIFOHeldHeadIsDeadLetteredAfterItsRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, kit.FIFOQueue)
		dead := q.NewDeadLetterQueue(100)
		kit.Groups(q, "a", 3)
		var j kit.Journal
		q.Consume(j.Handler(kit.FailFirst("a01", 100)), reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(time.Second), MaxAttempts: 4}})
		q.WaitEmpty(time.Hour)
		if got := j.Bodies(); !slices.Equal(got, []string{"a01", "a01", "a01", "a01", "a02", "a03"}) {
			t.Errorf("runs %v", got)
		}
		letters := dead.Messages()
		if len(letters) != 1 {
			t.Fatalf("%d dead letters, want 1", len(letters))
		}
		if s := kit.StoryOf(t, letters[0]); s.Reason != "attempts" || s.Attempts != 4 || s.Receives != 1 {
			t.Errorf("story %+v, want 4 attempts at one receive", s)
		}
	})
}

// TestFIFOReleaseIsHeldWithoutAnAttempt: a head that its handler releases waits here too, and its
// run counts as no attempt.
func TestFIFOReleaseIsHeldWithoutAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, kit.FIFOQueue)
		kit.Groups(q, "a", 2)
		var j kit.Journal
		q.Consume(j.Handler(func(_ context.Context, m *reprise.Message) error {
			if m.Body == "a01" && len(j.Of("a01")) < 3 {
				return reprise.Release(10*time.Second, kit.ErrUnavailable)
			}
			return nil
		}), reprise.Config{})
		q.WaitEmpty(time.Hour)
		for _, r := range j.All() {
			if r.Attempt != 1 || r.Receives != 1 {
				t.Errorf("run %+v, want attempt 1 at receive 1", r)
			}
		}
		if got := j.Bodies(); !slices.Equal(got, []string{"a01", "a01", "a01", "a02"}) {
			t.Errorf("runs %v", got)
		}
	})
}

// TestFIFOLongWaitsBlock: a head that is not due within a minute is given back with the messages
// behind it, and they are received again in order.
func TestFIFOLongWaitsBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, kit.FIFOQueue)
		kit.Groups(q, "a", 3)
		var j kit.Journal
		c := q.Consume(j.Handler(kit.FailFirst("a01", 1)), reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(61 * time.Second), Jitter: retry.None}})
		time.Sleep(30 * time.Second)
		if s := c.Status(); s.Waiting != 0 || s.Counts.Retried != 1 || s.Counts.Released != 2 {
			t.Errorf("status %+v, want nothing in hand", s)
		}
		q.WaitEmpty(time.Hour)
		if got := j.Bodies(); !slices.Equal(got, []string{"a01", "a01", "a02", "a03"}) {
			t.Errorf("runs %v", got)
		}
	})
}

// TestFIFOBlockGivesTheGroupBack: with FIFOBlock messages go back to the queue even for short
// waits.
func TestFIFOBlockGivesTheGroupBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, kit.FIFOQueue)
		kit.Groups(q, "a", 3)
		var j kit.Journal
		c := q.Consume(j.Handler(kit.FailFirst("a01", 2)), reprise.Config{FIFO: reprise.FIFOBlock, Retry: retry.Policy{Backoff: retry.Constant(10 * time.Second)}})
		q.WaitEmpty(time.Hour)
		if got := j.Bodies(); !slices.Equal(got, []string{"a01", "a01", "a01", "a02", "a03"}) {
			t.Errorf("runs %v", got)
		}
		if runs := j.Of("a03"); runs[0].Receives != 3 || runs[0].Attempt != 1 {
			t.Errorf("a03 ran as %+v, want its first attempt at the third receive", runs)
		}
		if n := c.Status().Counts; n.Held != 0 || n.Retried != 2 {
			t.Errorf("counts %+v", n)
		}
	})
}

// TestFIFOSkipDeadLettersAtTheFirstFailure: the dead letter has its story, and the group goes on at
// once.
func TestFIFOSkipDeadLettersAtTheFirstFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, kit.FIFOQueue)
		dead := q.NewDeadLetterQueue(100)
		kit.Groups(q, "a", 3)
		began := time.Now()
		var j kit.Journal
		q.Consume(j.Handler(kit.FailFirst("a01", 1)), reprise.Config{FIFO: reprise.FIFOSkip})
		q.WaitEmpty(time.Hour)
		if got := j.Bodies(); !slices.Equal(got, []string{"a01", "a02", "a03"}) || time.Since(began) > time.Second {
			t.Errorf("runs %v in %v", got, time.Since(began))
		}
		letters := dead.Messages()
		if len(letters) != 1 || letters[0].Body != "a01" || letters[0].Group != "a" {
			t.Fatalf("dead letters %+v, want a01", letters)
		}
		if s := kit.StoryOf(t, letters[0]); s.Reason != retry.ReasonSkip.String() || s.Attempts != 1 || s.Error != kit.ErrUnavailable.Error() {
			t.Errorf("story %+v", s)
		}
	})
}

// TestFIFOSkipWithNowhereToSkipTo: without a dead-letter queue FIFOSkip is a finding, and the group
// is held.
func TestFIFOSkipWithNowhereToSkipTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, kit.FIFOQueue)
		kit.Groups(q, "a", 2)
		var mu sync.Mutex
		var codes []string
		var j kit.Journal
		c := q.Consume(j.Handler(kit.FailFirst("a01", 2)), reprise.Config{FIFO: reprise.FIFOSkip, Observer: reprise.Observer{
			Finding: func(_ context.Context, f plan.Finding) {
				mu.Lock()
				defer mu.Unlock()
				codes = append(codes, f.Code)
			},
		}})
		q.WaitEmpty(time.Hour)
		if n := c.Status().Counts; n.Held != 2 || n.Deleted != 2 {
			t.Errorf("counts %+v, want both handled after 2 holds", n)
		}
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(codes, "fifo-skip-without-dead-letter-queue") {
			t.Errorf("findings %v", codes)
		}
	})
}

// TestFIFOHeldGroupsLeaveRoomForOthers: far more groups fail than there are places. They are held
// up to a limit, and given back beyond it; a healthy group goes on as without them.
func TestFIFOHeldGroupsLeaveRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, kit.FIFOQueue)
		var failing strings.Builder
		for r := 'A'; r < 'A'+40; r++ {
			failing.WriteRune(r)
		}
		kit.Groups(q, failing.String(), 2)
		var j kit.Journal
		c := q.Consume(j.Handler(func(_ context.Context, m *reprise.Message) error {
			if m.GroupID != "z" {
				return kit.ErrUnavailable
			}
			return nil
		}), reprise.Config{Concurrency: 4, Prefetch: 8, Outage: reprise.Outage{Off: true}, Retry: retry.Policy{Backoff: retry.Constant(50 * time.Second), MaxAttempts: -1}})
		time.Sleep(5 * time.Second) // all have failed once
		synctest.Wait()
		s := c.Status()
		if s.Waiting == 0 || s.Waiting > 12 {
			t.Errorf("%d are held, want some, and no more than the 12 places", s.Waiting)
		}
		if n := s.Counts; n.Held == 0 || n.Retried == 0 || n.Held+n.Retried < 40 {
			t.Errorf("counts %+v, want every head held or hidden", n)
		}
		began := time.Now()
		kit.Groups(q, "z", 20)
		for len(j.Bodies()) > 0 && !slices.Contains(j.Bodies(), "z20") && time.Since(began) < time.Minute {
			time.Sleep(100 * time.Millisecond)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the healthy group took %v", took)
		}
	})
}

// TestFIFOStopWhileHolding: the stop begins while a group is held. It ends at once; the head stays
// hidden until it is due and no message overtakes it; the next consumer goes on in order.
func TestFIFOStopWhileHolding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, kit.FIFOQueue)
		kit.Groups(q, "ab", 4)
		var j kit.Journal
		cfg := reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(40 * time.Second), Jitter: retry.None}}
		h := j.Handler(func(_ context.Context, m *reprise.Message) error {
			if m.Body == "a02" && len(j.Of("a02")) == 1 {
				return kit.ErrUnavailable
			}
			return nil
		})
		c := q.Consume(h, cfg)
		time.Sleep(10 * time.Second)
		if s := c.Status(); s.Counts.Held != 1 || s.Waiting != 3 {
			t.Fatalf("status %+v, want a02 held with a03 and a04", s)
		}
		report := c.Stop()
		if !report.Drained() || report.Took > 21*time.Second || report.Counts.Retried != 1 || report.Counts.Released != 2 {
			t.Errorf("report %v", report)
		}
		q.Consume(h, cfg)
		q.WaitEmpty(time.Hour)
		var a []kit.Run
		for _, r := range j.All() {
			if r.Body[0] == 'a' {
				a = append(a, r)
			}
		}
		var bodies []string
		for _, r := range a {
			bodies = append(bodies, r.Body)
		}
		if !slices.Equal(bodies, []string{"a01", "a02", "a02", "a03", "a04"}) {
			t.Fatalf("runs %v", bodies)
		}
		if wait := a[2].Started.Sub(a[1].Started); wait < 40*time.Second {
			t.Errorf("a02 ran again after %v, 40 s are wanted", wait)
		}
	})
}

// TestFIFOLeaseLostWhileHolding: the server takes the held head back and another consumer processes
// it. The first consumer learns it at its next renewal, gives the rest back, and no message runs
// out of order.
func TestFIFOLeaseLostWhileHolding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, kit.FIFOQueue)
		kit.Groups(q, "a", 3)
		var first, second kit.Journal
		cfg := reprise.Config{Lease: 10 * time.Second, Retry: retry.Policy{Backoff: retry.Constant(50 * time.Second), Jitter: retry.None}}
		watch := &kit.Spy{Client: q.Direct()}
		receives := 0 // it has one poller
		watch.Receive = func(ctx context.Context, in *sqs.ReceiveMessageInput) (*sqs.ReceiveMessageOutput, error) {
			if receives++; receives > 1 { // or it would receive a01 again itself
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return watch.Client.ReceiveMessage(ctx, in)
		}
		c := q.ConsumeWith(watch, first.Handler(kit.FailFirst("a01", 1)), cfg)
		time.Sleep(time.Second)
		if n := c.Status().Counts.Held; n != 1 {
			t.Fatalf("%d holds, want a01 held", n)
		}
		q.Release(idOf(q, "a01"))
		q.Consume(second.Handler(kit.FailFirst("", 0)), cfg)
		q.WaitEmpty(10 * time.Minute)
		if got := second.Bodies(); !slices.Equal(got, []string{"a01", "a02", "a03"}) {
			t.Errorf("the second consumer ran %v", got)
		}
		if n := c.Status().Counts; n.Lost != 1 || n.Released != 2 {
			t.Errorf("counts %+v, want a01 lost and what is behind it given back", n)
		}
	})
}

// TestFIFOHeldForTwelveHours: a head that fails every minute for days is given back with its group
// before SQS's twelve hours end, and no message overtakes it.
func TestFIFOHeldForTwelveHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, kit.FIFOQueue)
		kit.Groups(q, "a", 3)
		var j kit.Journal
		began := time.Now()
		c := q.Consume(j.Handler(func(_ context.Context, m *reprise.Message) error {
			if m.Body == "a01" && time.Since(began) < 30*time.Hour {
				return kit.ErrUnavailable
			}
			return nil
		}), reprise.Config{Retry: retry.Policy{Backoff: retry.Constant(time.Minute), Jitter: retry.None, MaxAttempts: -1}})
		q.WaitEmpty(48 * time.Hour)
		bodies := slices.Compact(j.Bodies())
		if !slices.Equal(bodies, []string{"a01", "a02", "a03"}) {
			t.Errorf("order %v", bodies)
		}
		runs := j.Of("a01")
		if last := runs[len(runs)-1]; last.Attempt != len(runs) || last.Receives < 3 || last.Receives > 4 {
			t.Errorf("%d runs, the last %+v: want exact attempts and a receive every twelve hours", len(runs), last)
		}
		if n := c.Status().Counts; n.Lost != 0 {
			t.Errorf("counts %+v", n)
		}
	})
}

// TestFIFOChoiceIsChecked: a choice that does not exist is an error of New.
func TestFIFOChoiceIsChecked(t *testing.T) {
	_, err := reprise.New(&kit.Spy{}, "http://sqs/1/q.fifo", reprise.HandlerFunc(nil), reprise.Config{FIFO: 3})
	if err == nil || !strings.Contains(err.Error(), "Config.FIFO is 3: set FIFOHold, FIFOBlock or FIFOSkip") {
		t.Errorf("error %v", err)
	}
	if got := fmt.Sprint(reprise.FIFOHold, reprise.FIFOBlock, reprise.FIFOSkip, reprise.FIFO(3)); got != "hold block skip FIFO(3)" {
		t.Errorf("names %s", got)
	}
}
