package cli

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
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

func toSend(bodies ...string) iter.Seq2[message, error] { return arguments(bodies, message{}) }

func numbers(n int) []string {
	var bodies []string
	for i := range n {
		bodies = append(bodies, fmt.Sprint(i))
	}
	return bodies
}

func queued(q *reprisetest.Queue) []string {
	var found []string
	for _, m := range q.Messages() {
		found = append(found, m.Body)
	}
	return found
}

// TestSendAllBatches: messages go in their order, ten at a time, and no batch passes
// 1 MiB.
func TestSendAllBatches(t *testing.T) {
	large := strings.Repeat("x", 300<<10)
	for _, test := range []struct {
		name     string
		bodies   []string
		requests int64
	}{
		{"none", nil, 0},
		{"one", numbers(1), 1},
		{"ten", numbers(10), 1},
		{"eleven", numbers(11), 2},
		{"many", numbers(95), 10},
		{"more than wait at once", numbers(2500), 250},
		{"large", []string{large, large, large, large, "small", large}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, nil)
				report, err := sendAll(t.Context(), q.Client(), q.URL(), toSend(test.bodies...))
				if err != nil || report.Sent != int64(len(test.bodies)) || report.Requests != test.requests || report.refused != nil {
					t.Errorf("sendAll = %+v, %v; want %d sent in %d requests", report, err, len(test.bodies), test.requests)
				}
				if got := queued(q); !slices.Equal(got, test.bodies) {
					t.Errorf("the queue holds %.60q", got)
				}
			})
		})
	}
}

// TestSendAllRepeatsPartialFailures: entries that the service failed to take are sent
// again alone, until they are taken; nothing is sent twice.
func TestSendAllRepeatsPartialFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Action: "SendMessageBatch", Every: 3, Limit: 9})
		report, err := sendAll(t.Context(), q.Client(), q.URL(), toSend(numbers(20)...))
		if err != nil || report.Sent != 20 || report.refused != nil {
			t.Errorf("sendAll = %+v, %v; want 20 sent", report, err)
		}
		got, want := queued(q), numbers(20)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("the queue holds %q", got)
		}
	})
}

// TestSendAllNamesFailures: messages that are refused, or keep failing, are reported in
// their order with their places, and the rest is sent.
func TestSendAllNamesFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Action: "SendMessageBatch", Skip: 2})
		report, err := sendAll(t.Context(), q.Client(), q.URL(), toSend("taken", "", "taken too", "failing", strings.Repeat("x", 1<<20+1)))
		if err != nil || report.Sent != 2 || report.Requests != 6 {
			t.Errorf("sendAll = %+v, %v; want 2 sent after 6 requests", report, err)
		}
		var got []string
		for _, r := range report.refused {
			got = append(got, r.String())
		}
		for i, want := range []string{
			"argument 2 was not sent: sending to the queue QUEUE: the body is empty",
			"argument 4 was not sent: sending to the queue QUEUE: InternalError",
			"argument 5 was not sent: sending to the queue QUEUE: the body and the attributes are 1048577 bytes long",
		} {
			want = strings.ReplaceAll(want, "QUEUE", q.Name())
			if len(got) != 3 || !strings.HasPrefix(got[i], want) {
				t.Errorf("refused %.300q, want %q", got, want)
			}
		}
	})
}

// recorder keeps the entries of requests, and takes everything or fails.
type recorder struct {
	entries []types.SendMessageBatchRequestEntry
	err     error
	called  func()
}

func (r *recorder) SendMessageBatch(_ context.Context, in *sqs.SendMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	r.entries = append(r.entries, in.Entries...)
	out := &sqs.SendMessageBatchOutput{}
	for _, e := range in.Entries {
		out.Successful = append(out.Successful, types.SendMessageBatchResultEntry{Id: e.Id})
	}
	if r.called != nil {
		r.called()
	}
	return out, r.err
}

// TestSendAllFields: what the flags say is sent; every message of a FIFO queue has a
// deduplication id of its own.
func TestSendAllFields(t *testing.T) {
	attributes := map[string]types.MessageAttributeValue{"a": {DataType: aws.String("String"), StringValue: aws.String("x=y")}}
	ignore := cmpopts.IgnoreUnexported(types.SendMessageBatchRequestEntry{}, types.MessageAttributeValue{})
	var r recorder
	for url, flags := range map[string]sendFlags{
		"http://localhost/0/q":      {delay: 90 * time.Second, attributes: []string{"a=x=y"}},
		"http://localhost/0/q.fifo": {group: "g"},
	} {
		template, err := flags.template()
		if err != nil {
			t.Fatal(err)
		}
		if report, err := sendAll(t.Context(), &r, url, arguments([]string{"b", "b"}, template)); err != nil || report.Sent != 2 {
			t.Errorf("sendAll = %+v, %v", report, err)
		}
	}
	ids := make(map[string]bool)
	for i := range r.entries {
		if id := r.entries[i].MessageDeduplicationId; id != nil {
			ids[*id] = true
			r.entries[i].MessageDeduplicationId = nil
		}
	}
	if len(ids) != 2 {
		t.Errorf("deduplication ids %v, want one for each of the FIFO queue's", ids)
	}
	for _, want := range []types.SendMessageBatchRequestEntry{
		{MessageBody: aws.String("b"), DelaySeconds: 90, MessageAttributes: attributes},
		{MessageBody: aws.String("b"), MessageGroupId: aws.String("g")},
	} {
		if !slices.ContainsFunc(r.entries, func(e types.SendMessageBatchRequestEntry) bool {
			e.Id = nil
			return cmp.Equal(e, want, ignore)
		}) {
			t.Errorf("entries %+v lack one", r.entries)
		}
	}
}

// TestSendAllErrors: messages before an invalid line are sent. Sending ends if the last try of
// a whole request fails, or at an interrupt; the remaining messages are not listed then.
func TestSendAllErrors(t *testing.T) {
	const url = "http://localhost/0/q"
	torn := errors.New("the file is torn")
	report, err := sendAll(t.Context(), new(recorder), url, func(yield func(message, error) bool) {
		_ = yield(message{Outgoing: reprise.Outgoing{Body: "whole"}}, nil) && yield(message{}, torn)
	})
	if !errors.Is(err, torn) || report.Sent != 1 {
		t.Errorf("sendAll = %+v, %v; want 1 sent and the input's error", report, err)
	}

	endless := func(yield func(message, error) bool) {
		for yield(message{Outgoing: reprise.Outgoing{Body: "again"}}, nil) {
		}
	}
	synctest.Test(t, func(t *testing.T) {
		noRoute := errors.New("no route")
		r := recorder{err: &smithy.OperationError{OperationName: "SendMessageBatch", Err: noRoute}}
		report, err := sendAll(t.Context(), &r, url, endless)
		if !errors.Is(err, noRoute) || report.Sent != 0 || report.Requests < sendTries || report.Requests > sendTries+1 || report.refused != nil {
			t.Errorf("sendAll = %+v, %v; want the error of the %dth request; the next may have begun", report, err, sendTries)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		interrupted := errors.New("interrupted")
		ctx, interrupt := context.WithCancelCause(t.Context())
		defer interrupt(nil)
		r := recorder{called: func() { interrupt(interrupted) }}
		report, err := sendAll(ctx, &r, url, endless)
		if !errors.Is(err, interrupted) || report.Sent != 10 || report.Requests != 1 || report.refused != nil {
			t.Errorf("sendAll = %+v, %v; want an interrupt after 10", report, err)
		}
		late, interruptLate := context.WithCancelCause(t.Context())
		r.called = func() { interruptLate(interrupted) }
		report, err = sendAll(late, &r, url, toSend("all there is"))
		if err != nil || report.Sent != 1 {
			t.Errorf("sendAll = %+v, %v; want no error of an interrupt that came too late", report, err)
		}
	})
}
