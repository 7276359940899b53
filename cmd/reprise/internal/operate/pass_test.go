package operate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
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
		{name: "some", set: func(p *operate.Pass) { p.Most = 12 }, looked: 12, partial: "12 messages, as many as asked for"},
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
