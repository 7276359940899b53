package sending

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// postman passes a sender's requests on and records them, with their times.
type postman struct {
	reprise.SenderClient

	mu      sync.Mutex
	batches [][]string // bodies
	times   []time.Time
	busy    int
	most    int // requests at once
}

func (p *postman) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, opts ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	var bodies []string
	for _, e := range in.Entries {
		bodies = append(bodies, *e.MessageBody)
	}
	p.mu.Lock()
	p.batches = append(p.batches, bodies)
	p.times = append(p.times, time.Now())
	p.busy++
	p.most = max(p.most, p.busy)
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.busy--
		p.mu.Unlock()
	}()
	return p.SenderClient.SendMessageBatch(ctx, in, opts...)
}

func (p *postman) sentAt() []time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.times)
}

func (p *postman) requests() [][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.batches)
}

// newSender returns a sender to q through the real SDK.
func newSender(t *testing.T, q *reprisetest.Queue, cfg reprise.SenderConfig) (*reprise.Sender, *postman) {
	t.Helper()
	p := &postman{SenderClient: q.Client()}
	return senderThrough(t, p, q.URL(), cfg), p
}

func senderThrough(t *testing.T, c reprise.SenderClient, url string, cfg reprise.SenderConfig) *reprise.Sender {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	s, err := reprise.NewSender(c, url, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func outgoing(bodies ...string) []reprise.Outgoing {
	messages := make([]reprise.Outgoing, len(bodies))
	for i, body := range bodies {
		messages[i].Body = body
	}
	return messages
}

// grouped are messages of one group, with deduplication ids.
func grouped(group string, bodies ...string) []reprise.Outgoing {
	messages := outgoing(bodies...)
	for i := range messages {
		messages[i].GroupID = group
		messages[i].DeduplicationID = group + "-" + messages[i].Body
	}
	return messages
}

func queued(q *reprisetest.Queue) []string {
	var bodies []string
	for _, m := range q.Messages() {
		bodies = append(bodies, m.Body)
	}
	return bodies
}

// answers collects the results that the functions of Submit get.
type answers struct {
	mu   sync.Mutex
	sent []reprise.Sent
}

func (a *answers) add(s reprise.Sent) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent = append(a.sent, s)
}

func (a *answers) all() []reprise.Sent {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.sent)
}

// TestSenderFillsItsBatches: a hundred messages are ten requests, at most as many
// at once as permitted, and each message gets its own id.
func TestSenderFillsItsBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultSlowReply})
		s, p := newSender(t, q, reprise.SenderConfig{Requests: 3})
		bodies := kit.Numbered(100)
		sent, err := s.Send(t.Context(), outgoing(bodies...)...)
		if err != nil {
			t.Fatal(err)
		}
		byID := make(map[string]string)
		for _, m := range q.Messages() {
			byID[m.ID] = m.Body
		}
		for i := range sent {
			if got := byID[sent[i].ID]; got != bodies[i] || sent[i].Err != nil || sent[i].SequenceNumber != "" {
				t.Errorf("result %d is %+v, the id of %q; want that of %q", i, sent[i], got, bodies[i])
			}
		}
		if n := len(p.requests()); n != 10 || p.most != 3 {
			t.Errorf("%d requests, %d at once; want 10 and 3", n, p.most)
		}
		kit.CloseSender(t, s)
	})
}

// TestSenderSendsAllFields: every field of a message arrives, each in its place.
func TestSenderSendsAllFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		s, _ := newSender(t, q, reprise.SenderConfig{})
		_, err := s.Send(t.Context(), reprise.Outgoing{
			Body:        "full",
			Attributes:  map[string]types.MessageAttributeValue{"colour": {DataType: aws.String("String"), StringValue: aws.String("blue")}},
			TraceHeader: "Root=1-5759e988-bd862e3fe1be46a994272793",
			GroupID:     "tenant",
			Delay:       1500 * time.Millisecond,
		}, reprise.Outgoing{Body: "bare"})
		if err != nil {
			t.Fatal(err)
		}
		if due := q.Messages()[0].Due; time.Until(due) != 2*time.Second {
			t.Errorf("delayed until %v from now, want 2 s: never early", time.Until(due))
		}
		time.Sleep(2 * time.Second)
		out, err := q.Client().ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: aws.String(q.URL()), MaxNumberOfMessages: 10,
			MessageAttributeNames:       []string{"All"},
			MessageSystemAttributeNames: []types.MessageSystemAttributeName{"MessageGroupId", "AWSTraceHeader"},
		})
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[string]string)
		for _, m := range out.Messages {
			got[*m.Body] = m.Attributes["MessageGroupId"] + " " + m.Attributes["AWSTraceHeader"] + " " + aws.ToString(m.MessageAttributes["colour"].StringValue)
		}
		want := map[string]string{"full": "tenant Root=1-5759e988-bd862e3fe1be46a994272793 blue", "bare": "  "}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		kit.CloseSender(t, s)
	})
}

// TestSenderLingers: a batch that is not full is sent when its first message has waited, together
// with the messages that have arrived by then; a full batch is sent at once.
func TestSenderLingers(t *testing.T) {
	for name, test := range map[string]struct {
		linger int   // all in milliseconds
		at     []int // when messages come
		want   []int // when requests go
	}{
		"default":     {0, []int{0, 5, 19, 30, 45}, []int{20, 50}},
		"set":         {100, []int{0, 40, 99, 101}, []int{100, 201}},
		"none":        {-1, []int{0, 1, 2}, []int{0, 1, 2}},
		"full":        {100, []int{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 7}, []int{1, 107}},
		"two batches": {100, slices.Repeat([]int{3}, 20), []int{3, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				s, p := newSender(t, q, reprise.SenderConfig{Linger: milliseconds(test.linger)})
				start := time.Now()
				var a answers
				for i, at := range test.at {
					time.Sleep(time.Until(start.Add(milliseconds(at))))
					if err := s.Submit(t.Context(), reprise.Outgoing{Body: fmt.Sprint(i)}, a.add); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Second)
				var got []int
				for _, at := range p.sentAt() {
					got = append(got, int(at.Sub(start)/time.Millisecond))
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Error("requests at (ms):", diff)
				}
				if n := len(a.all()); n != len(test.at) {
					t.Errorf("%d answers to %d messages", n, len(test.at))
				}
				kit.CloseSender(t, s)
			})
		})
	}
}

func milliseconds(n int) time.Duration { return time.Duration(n) * time.Millisecond }

// TestSenderKeepsToSQSsSizes: a request is never larger than SQS permits, with
// attributes counted, and no smaller than it needs to be.
func TestSenderKeepsToSQSsSizes(t *testing.T) {
	const limit = 1 << 20
	attributes := map[string]types.MessageAttributeValue{"name": {DataType: aws.String("Binary"), BinaryValue: make([]byte, 90)}} // 100 bytes
	for name, test := range map[string]struct {
		sizes []int
		want  []int // messages in each request
	}{
		"one message of the limit":   {[]int{limit}, []int{1}},
		"two that fill a request":    {[]int{limit / 2, limit / 2}, []int{2}},
		"two a byte beyond it":       {[]int{limit / 2, limit/2 + 1}, []int{1, 1}},
		"large and small":            {[]int{limit - 300, 200, 200, 200}, []int{2, 2}},
		"ten of a tenth of it, less": {[]int{104857, 104857, 104857, 104857, 104857, 104857, 104857, 104857, 104857, 104857}, []int{10}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				s, p := newSender(t, q, reprise.SenderConfig{Requests: 1})
				var messages []reprise.Outgoing
				for _, size := range test.sizes {
					messages = append(messages, reprise.Outgoing{Body: strings.Repeat("x", size-100), Attributes: attributes})
				}
				if _, err := s.Send(t.Context(), messages...); err != nil {
					t.Fatal(err)
				}
				var got []int
				for _, batch := range p.requests() {
					got = append(got, len(batch))
				}
				if diff := cmp.Diff(test.want, got); diff != "" {
					t.Error("messages in each request:", diff)
				}
				kit.CloseSender(t, s)
			})
		})
	}
}

// TestSenderHoldsBack: the Sender accepts no more messages than permitted, by number and by size;
// further callers wait for room, in turn, or give up.
func TestSenderHoldsBack(t *testing.T) {
	large := strings.Repeat("x", 512<<10)
	for name, test := range map[string]struct {
		cfg  reprise.SenderConfig
		body string
		fit  int
	}{
		"messages":  {reprise.SenderConfig{MaxWaiting: 20}, "x", 20},
		"bytes":     {reprise.SenderConfig{MaxBytes: 3 << 20}, large, 6},
		"one":       {reprise.SenderConfig{MaxWaiting: 1}, "x", 1},
		"unlimited": {reprise.SenderConfig{MaxWaiting: -1, MaxBytes: -1}, "x", 2000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				q.Fault(sqsserver.Fault{Kind: sqsserver.FaultSlowReply, Delay: 10 * time.Second})
				s, _ := newSender(t, q, test.cfg)
				var a answers
				start := time.Now()
				for range test.fit {
					if err := s.Submit(t.Context(), reprise.Outgoing{Body: test.body}, a.add); err != nil {
						t.Fatal(err)
					}
				}
				if time.Since(start) != 0 {
					t.Errorf("blocked for %v, with room", time.Since(start))
				}
				if test.cfg.MaxWaiting < 0 {
					kit.CloseSender(t, s)
					return
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				err := s.Submit(ctx, reprise.Outgoing{Body: "impatient"}, func(reprise.Sent) { t.Error("told of a message that was not taken") })
				if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
					t.Errorf("%v after %v, want the end of the context after 1 s", err, time.Since(start))
				}
				if err := s.Submit(t.Context(), reprise.Outgoing{Body: "patient"}, a.add); err != nil || time.Since(start) < 10*time.Second {
					t.Errorf("%v after %v, want room when the first reply comes", err, time.Since(start))
				}
				kit.CloseSender(t, s)
				if n := len(a.all()); n != test.fit+1 || slices.Contains(queued(q), "impatient") {
					t.Errorf("%d answers to %d messages", n, test.fit+1)
				}
			})
		})
	}
}
