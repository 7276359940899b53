package sender_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/sender"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

func all(bodies ...string) iter.Seq2[sender.Message, error] {
	return func(yield func(sender.Message, error) bool) {
		for i, body := range bodies {
			if !yield(sender.Message{Body: body, Source: fmt.Sprintf("message %d", i)}, nil) {
				return
			}
		}
	}
}

func numbers(n int) []string {
	var bodies []string
	for i := range n {
		bodies = append(bodies, fmt.Sprint(i))
	}
	return bodies
}

func bodies(q *reprisetest.Queue) []string {
	var found []string
	for _, m := range q.Messages() {
		found = append(found, m.Body)
	}
	return found
}

// TestBatches: messages go in their order, ten at a time, and no batch passes 1 MiB.
func TestBatches(t *testing.T) {
	large := strings.Repeat("x", 300<<10)
	for _, test := range []struct {
		name     string
		bodies   []string
		requests int
	}{
		{"none", nil, 0},
		{"one", numbers(1), 1},
		{"ten", numbers(10), 1},
		{"eleven", numbers(11), 2},
		{"many", numbers(95), 10},
		{"large", []string{large, large, large, large, "small", large}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			q := reprisetest.NewQueue(t, nil)
			s := sender.Sender{Client: q.Client(), QueueURL: q.URL()}
			report, err := s.Send(t.Context(), all(test.bodies...))
			if err != nil || report.Sent != len(test.bodies) || report.Requests != test.requests || report.Refused != nil {
				t.Errorf("Send = %+v, %v; want %d sent in %d requests", report, err, len(test.bodies), test.requests)
			}
			if got := bodies(q); !slices.Equal(got, test.bodies) {
				t.Errorf("the queue holds %.60q", got)
			}
		})
	}
}

// TestPartialFailures: entries that the service failed to take are sent again
// alone, until they are taken; nothing is sent twice.
func TestPartialFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Action: "SendMessageBatch", Every: 3, Limit: 9})
		s := sender.Sender{Client: q.Client(), QueueURL: q.URL()}
		report, err := s.Send(t.Context(), all(numbers(20)...))
		if err != nil || report.Sent != 20 || report.Refused != nil {
			t.Errorf("Send = %+v, %v; want 20 sent", report, err)
		}
		got := bodies(q)
		slices.Sort(got)
		want := numbers(20)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("the queue holds %q", got)
		}
	})
}

// TestGivesUp: a failure that stays is reported with its place, after as many
// attempts as the policy allows.
func TestGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Action: "SendMessageBatch", Skip: 1})
		s := sender.Sender{Client: q.Client(), QueueURL: q.URL()}
		report, err := s.Send(t.Context(), all("taken", "failing"))
		if err != nil || report.Sent != 1 || report.Requests != 6 || len(report.Refused) != 1 || report.Refused[0].Source != "message 1" {
			t.Errorf("Send = %+v, %v; want message 1 refused after 6 requests", report, err)
		}
	})
}

// recorder keeps the requests that it gets, and takes everything.
type recorder struct {
	requests [][]types.SendMessageBatchRequestEntry
	err      error
}

func (r *recorder) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	r.requests = append(r.requests, in.Entries)
	out := &sqs.SendMessageBatchOutput{}
	for _, e := range in.Entries {
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id})
	}
	return out, r.err
}

// TestEntry: what a message says is what is sent; every message of a FIFO queue has
// a deduplication id of its own.
func TestEntry(t *testing.T) {
	var r recorder
	s := sender.Sender{Client: &r, QueueURL: "http://localhost/0/q.fifo", FIFO: true}
	m := sender.Message{Body: "b", Group: "g", Delay: 90 * time.Second, Attributes: map[string]string{"a": "x"}}
	_, err := s.Send(t.Context(), func(yield func(sender.Message, error) bool) {
		for range 2 {
			if !yield(m, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	first, second := r.requests[0][0], r.requests[0][1]
	if *first.MessageDeduplicationId == *second.MessageDeduplicationId {
		t.Error("two messages have one deduplication id")
	}
	first.MessageDeduplicationId = nil
	want := types.SendMessageBatchRequestEntry{
		Id: aws.String("0"), MessageBody: aws.String("b"), MessageGroupId: aws.String("g"), DelaySeconds: 90,
		MessageAttributes: map[string]types.MessageAttributeValue{"a": {DataType: aws.String("String"), StringValue: aws.String("x")}},
	}
	if diff := cmp.Diff(want, first, cmpopts.IgnoreUnexported(want, types.MessageAttributeValue{})); diff != "" {
		t.Errorf("entry (-want +got):\n%s", diff)
	}
}

// TestErrors: a broken input does not keep back what came before it, and a request
// that fails as a whole ends the sending.
func TestErrors(t *testing.T) {
	var r recorder
	s := sender.Sender{Client: &r}
	torn := errors.New("the file is torn")
	report, err := s.Send(t.Context(), func(yield func(sender.Message, error) bool) {
		_ = yield(sender.Message{Body: "whole"}, nil) && yield(sender.Message{}, torn)
	})
	if !errors.Is(err, torn) || report.Sent != 1 {
		t.Errorf("Send = %+v, %v; want 1 sent and the input's error", report, err)
	}

	r = recorder{err: errors.New("no route")}
	report, err = s.Send(t.Context(), all(numbers(30)...))
	if !errors.Is(err, r.err) || report.Sent != 0 || report.Requests != 1 {
		t.Errorf("Send = %+v, %v; want the first request's error", report, err)
	}
}
