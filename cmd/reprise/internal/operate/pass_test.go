package operate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/internal/race"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// never does not stop a pass.
var never = make(chan struct{})

// inQueue is what q holds, and how many of these are hidden.
func inQueue(q *reprisetest.Queue) (bodies []string, hidden int) {
	for _, m := range q.Messages() {
		bodies = append(bodies, m.Body)
		if m.Due.After(time.Now()) {
			hidden++
		}
	}
	slices.Sort(bodies)
	return bodies, hidden
}

func pass(q *reprisetest.Queue, options ...func(*sqs.Options)) operate.Pass {
	return operate.Pass{Client: q.Client(options...), QueueURL: q.URL(), Polls: 3, Lease: 15 * time.Minute}
}

// TestPass: every message is seen once, what is not deleted is visible again at the end, and
// whatever fails, nothing is lost.
func TestPass(t *testing.T) {
	boom := errors.New("boom")
	for _, test := range []struct {
		name    string
		set     func(*operate.Pass)
		faults  []sqsserver.Fault
		visit   func(m operate.Message) (operate.Verdict, error)
		looked  int
		deleted int
		left    int // not confirmed
		partial string
		err     string
	}{
		{name: "look", looked: 25},
		{name: "some", set: func(p *operate.Pass) { p.Most = 12 }, looked: 12},
		{name: "some, and those that are skipped", set: func(p *operate.Pass) { p.Most = 12 }, visit: func(m operate.Message) (operate.Verdict, error) {
			if m.Body < "10" {
				return operate.Skip, nil
			}
			return operate.Keep, nil
		}, looked: 22},
		{name: "delete", visit: func(m operate.Message) (operate.Verdict, error) {
			if m.Body < "10" {
				return operate.Delete, nil
			}
			return operate.Keep, nil
		}, looked: 25, deleted: 10},
		{name: "delete, and some requests fail", faults: []sqsserver.Fault{{Kind: sqsserver.FaultFailEntry, Action: "DeleteMessageBatch", Every: 2, Limit: 8}},
			visit: func(operate.Message) (operate.Verdict, error) { return operate.Delete, nil }, looked: 25, deleted: 25},
		{name: "deletes fail", faults: []sqsserver.Fault{{Kind: sqsserver.FaultFailEntry, Action: "DeleteMessageBatch"}},
			visit: func(operate.Message) (operate.Verdict, error) { return operate.Delete, nil }, looked: 25, left: 25},
		{name: "delete, and some are delivered twice", faults: []sqsserver.Fault{{Kind: sqsserver.FaultDuplicate, Every: 3}},
			visit: func(operate.Message) (operate.Verdict, error) { return operate.Delete, nil }, looked: 25, deleted: 25},
		{name: "a release is throttled", faults: []sqsserver.Fault{{Kind: sqsserver.FaultThrottle, Action: "ChangeMessageVisibilityBatch", Limit: 1}}, looked: 25},
		{name: "releases fail in part", faults: []sqsserver.Fault{{Kind: sqsserver.FaultFailEntry, Action: "ChangeMessageVisibilityBatch", Every: 2, Limit: 8}}, looked: 25},
		{name: "error", visit: func(m operate.Message) (operate.Verdict, error) { return operate.Keep, boom }, looked: 10, err: "boom"},
		{name: "receives fail", faults: []sqsserver.Fault{{Kind: sqsserver.FaultThrottle, Action: "ReceiveMessage", Skip: 1}}, looked: 10, err: "ReceiveMessage"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				var sent []string
				for i := range 25 {
					sent = append(sent, fmt.Sprintf("%02d", i))
					q.Send(sent[i])
				}
				q.Fault(test.faults...)
				p := pass(q, func(o *sqs.Options) { o.RetryMaxAttempts = 1 })
				if test.set != nil {
					test.set(&p)
				}
				deleted := make(map[string]bool)
				seen := make(map[string]bool)
				o, err := p.Run(t.Context(), never, func(batch []operate.Message, _ time.Time) (verdicts []operate.Verdict, err error) {
					for _, m := range batch {
						if seen[m.ID] {
							t.Errorf("%q is seen twice", m.Body)
						}
						seen[m.ID] = true
						v := operate.Keep
						if test.visit != nil {
							if v, err = test.visit(m); err != nil {
								return nil, err
							}
						}
						deleted[m.Body] = v == operate.Delete
						verdicts = append(verdicts, v)
					}
					return verdicts, nil
				})
				if o.Looked != test.looked || o.Deleted != test.deleted || o.NotDeleted != test.left || !strings.Contains(o.Partial, test.partial) || (o.Partial == "") != (test.partial == "") {
					t.Errorf("%+v", o)
				}
				if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want %q", err, test.err)
				}
				left, hidden := inQueue(q)
				want := slices.DeleteFunc(slices.Clone(sent), func(body string) bool { return deleted[body] && test.left == 0 })
				if !slices.Equal(left, want) || hidden != test.left {
					t.Errorf("the queue holds %q, %d of them hidden; want %q", left, hidden, want)
				}
			})
		})
	}
}

// TestPassStops: what is closed stops it, and what it holds is given back; the end of the context
// leaves that to the lease.
func TestPassStops(t *testing.T) {
	for _, gracefully := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			q := reprisetest.NewQueue(t, nil)
			for i := range 25 {
				q.Send(fmt.Sprint(i))
			}
			stop := make(chan struct{})
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			o, err := pass(q).Run(ctx, stop, func([]operate.Message, time.Time) ([]operate.Verdict, error) {
				if gracefully {
					close(stop)
				} else {
					cancel(errors.New("killed"))
				}
				return nil, nil
			})
			_, hidden := inQueue(q)
			if gracefully && (err != nil || hidden != 0 || o.Partial != "stopped") || !gracefully && (err == nil || hidden != 10) {
				t.Errorf("gracefully %t: %+v, %v, %d hidden", gracefully, o, err, hidden)
			}
		})
	}
}

// TestPassEnds: messages that are sent during a pass do not prolong it, and an older one that becomes
// visible among them does.
func TestPassEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		for i := range 25 {
			q.Send(fmt.Sprint(i))
		}
		sendDelayed(t, q, "retry", 5*time.Second)
		var seen []string
		o, err := pass(q).Run(t.Context(), never, func(batch []operate.Message, _ time.Time) ([]operate.Verdict, error) {
			for _, m := range batch {
				seen = append(seen, m.Body)
			}
			time.Sleep(1500 * time.Millisecond)
			q.Send("new")
			return nil, nil
		})
		if _, hidden := inQueue(q); err != nil || hidden != 0 || o.Partial != "" {
			t.Errorf("%+v, %v, %d hidden", o, err, hidden)
		}
		if n := len(seen); !slices.Contains(seen, "retry") || n < 26 || n > 34 {
			t.Errorf("saw %d messages: %q", n, seen)
		}
	})
}

// sendDelayed sends a message that becomes visible only after delay.
func sendDelayed(t *testing.T, q *reprisetest.Queue, body string, delay time.Duration) {
	t.Helper()
	url := q.URL()
	_, err := q.Client().SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body, DelaySeconds: int32(delay / time.Second)})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPassIsBounded: it ends before its leases do, though older messages become visible all the time.
func TestPassIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		for i := range 60 {
			sendDelayed(t, q, "retry", time.Duration(i)*time.Second)
		}
		p := pass(q)
		p.Lease = time.Minute
		o, err := p.Run(t.Context(), never, func([]operate.Message, time.Time) ([]operate.Verdict, error) {
			return nil, nil
		})
		if _, hidden := inQueue(q); err != nil || hidden > 29 || o.Looked > 32 || !strings.Contains(o.Partial, "30s") {
			t.Errorf("%+v, %v, %d hidden", o, err, hidden)
		}
	})
}

// TestPassGivesAllBack: what SQS does not give back for good is told, and everything else is given back.
func TestPassGivesAllBack(t *testing.T) {
	for _, fault := range []sqsserver.Fault{
		{Kind: sqsserver.FaultFailEntry, Action: "ChangeMessageVisibilityBatch", Every: 2},
		{Kind: sqsserver.FaultThrottle, Action: "ChangeMessageVisibilityBatch"},
	} {
		synctest.Test(t, func(t *testing.T) {
			const all = 600
			q := reprisetest.NewQueue(t, nil)
			for i := range all {
				q.Send(fmt.Sprint(i))
			}
			p := pass(q, func(o *sqs.Options) { o.RetryMaxAttempts = 1 })
			counted := &countedReleases{Client: p.Client}
			p.Client = counted
			q.Fault(fault)
			o, err := p.Run(t.Context(), never, func([]operate.Message, time.Time) ([]operate.Verdict, error) { return nil, nil })
			_, hidden := inQueue(q)
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%d messages that were looked at stay hidden for up to 15m0s: ", hidden)) || o.Looked != all {
				t.Errorf("%s: %+v, %v; %d are hidden", fault.Kind, o, err, hidden)
			}
			switch {
			case fault.Kind == sqsserver.FaultFailEntry && hidden > all/8: // half fail in each of five rounds
				t.Errorf("%d of %d are hidden", hidden, all)
			case fault.Kind == sqsserver.FaultThrottle && (hidden != all || counted.n.Load() > 200): // not all 60 in each of five rounds
				t.Errorf("%d are hidden after %d requests", hidden, counted.n.Load())
			}
		})
	}
}

// TestPassLeavesWhatIsGone: what others have deleted during a pass is not given back, and nothing is wrong with that.
func TestPassLeavesWhatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		for i := range 25 {
			q.Send(fmt.Sprint(i))
		}
		p := pass(q)
		counted := &countedReleases{Client: p.Client}
		p.Client = counted
		o, err := p.Run(t.Context(), never, func(batch []operate.Message, _ time.Time) ([]operate.Verdict, error) {
			return nil, q.Server().Delete(q.Name(), batch[0].ID)
		})
		if left, hidden := inQueue(q); err != nil || o.Looked != 25 || len(left) != 22 || hidden != 0 || counted.n.Load() != 3 {
			t.Errorf("%+v, %v: %d are left, %d of them hidden, after %d requests to give back; want 22, none and 3", o, err, len(left), hidden, counted.n.Load())
		}
	})
}

// countedReleases counts the requests that make messages visible.
type countedReleases struct {
	operate.Client
	n atomic.Int32
}

func (c *countedReleases) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, options ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	c.n.Add(1)
	return c.Client.ChangeMessageVisibilityBatch(ctx, in, options...)
}

// TestPassQuota: a pass says that it may have missed messages when it holds as many as it may, and when the messages
// that others have in flight use up the quota, with which a queue looks empty.
func TestPassQuota(t *testing.T) {
	for inFlight, partial := range map[string]string{"117000": "", "119990": "its quota is 120000"} {
		synctest.Test(t, func(t *testing.T) {
			q := reprisetest.NewQueue(t, nil)
			q.Send("m")
			p := pass(q)
			p.Client = busy{p.Client, inFlight}
			o, err := p.Run(t.Context(), never, func([]operate.Message, time.Time) ([]operate.Verdict, error) { return nil, nil })
			if err != nil || o.Looked != 1 || !strings.Contains(o.Partial, partial) || (o.Partial == "") != (partial == "") {
				t.Errorf("%s in flight: %+v, %v", inFlight, o, err)
			}
		})
	}
	if race.Enabled {
		t.Skip("100,000 receives take long with the race detector, which has seen them in other tests")
	}
	synctest.Test(t, func(t *testing.T) {
		const all = 100_400
		q := reprisetest.NewQueue(t, nil)
		for i := range all {
			q.Send(fmt.Sprint(i))
		}
		p := pass(q)
		p.AtOnce = 16
		o, err := p.Run(t.Context(), never, func([]operate.Message, time.Time) ([]operate.Verdict, error) { return nil, nil })
		_, hidden := inQueue(q)
		if err != nil || hidden != 0 || o.Looked < 100_000 || o.Looked > 100_200 || !strings.Contains(o.Partial, "use up the queue's quota") {
			t.Errorf("%+v, %v; %d are hidden", o, err, hidden)
		}
	})
}

// busy is a queue of which so many messages are in flight.
type busy struct {
	operate.Client
	inFlight string
}

func (b busy) GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{"ApproximateNumberOfMessagesNotVisible": b.inFlight}}, nil
}

// TestPassLongerThanItsLease: a pass that may take longer holds anew what is visible again, visits nothing twice, and
// ends when only that comes, however soon it does.
func TestPassLongerThanItsLease(t *testing.T) {
	for _, slow := range []time.Duration{0, 10 * time.Second} { // in 10 s a receive of ten does not keep up with 90 of a minute
		synctest.Test(t, func(t *testing.T) {
			q := reprisetest.NewQueue(t, nil)
			for i := range 90 {
				q.Send(fmt.Sprint(i))
			}
			sendDelayed(t, q, "late", 100*time.Second)
			p := pass(q)
			p.Lease, p.LongerThanLease, p.Before = time.Minute, true, func() { time.Sleep(slow) }
			if slow == 0 {
				p.Polls = 120
			}
			seen := make(map[string]bool)
			began := time.Now()
			o, err := p.Run(t.Context(), never, func(batch []operate.Message, _ time.Time) ([]operate.Verdict, error) {
				for _, m := range batch {
					if seen[m.ID] {
						t.Errorf("%q is visited twice", m.Body)
					}
					seen[m.ID] = true
				}
				return nil, nil
			})
			_, hidden := inQueue(q)
			if took := time.Since(began); err != nil || hidden != 0 || o.Partial != "" || o.Looked != 91 || took > 10*time.Minute {
				t.Errorf("%+v, %v after %v; %d are hidden", o, err, took, hidden)
			}
		})
	}
}
