package sending

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/reprisetest"
)

// TestSenderRefusesWhatSQSWould: a message that SQS cannot accept gets an error with the remedy,
// without a request, and the others are sent.
func TestSenderRefusesWhatSQSWould(t *testing.T) {
	many := make(map[string]types.MessageAttributeValue)
	for i := range 11 {
		many[fmt.Sprint("a", i)] = types.MessageAttributeValue{DataType: aws.String("Number"), StringValue: aws.String("1")}
	}
	for name, test := range map[string]struct {
		message reprise.Outgoing
		want    string
		fifo    bool
	}{
		"empty body":     {reprise.Outgoing{}, "the body is empty", false},
		"too large":      {reprise.Outgoing{Body: strings.Repeat("x", 1<<20+1)}, "1048577 bytes long, more than SQS's limit of 1048576", false},
		"attributes":     {reprise.Outgoing{Body: "x", Attributes: many}, "11 attributes, more than SQS's limit of 10", false},
		"long delay":     {reprise.Outgoing{Body: "x", Delay: 901 * time.Second}, "the delay is 15m1s: set one up to SQS's limit of 15m0s", false},
		"negative delay": {reprise.Outgoing{Body: "x", Delay: -1}, "the delay is -1ns", false},
		"dedup id":       {reprise.Outgoing{Body: "x", DeduplicationID: "d"}, `the deduplication id is "d", but only FIFO queues`, false},
		"FIFO delay":     {reprise.Outgoing{Body: "x", GroupID: "g", DeduplicationID: "d", Delay: 1}, "set the queue's DelaySeconds", true},
		"no group":       {reprise.Outgoing{Body: "x", DeduplicationID: "d"}, "the group id is empty", true},
		"no dedup id":    {reprise.Outgoing{Body: "x", GroupID: "g"}, "SenderConfig.ContentDeduplication", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				attributes, good := map[string]string(nil), reprise.Outgoing{Body: "good"}
				if test.fifo {
					attributes, good = map[string]string{"FifoQueue": "true"}, grouped("g", "good")[0]
				}
				q := reprisetest.NewQueue(t, attributes)
				s, _ := newSender(t, q, reprise.SenderConfig{})
				sent, err := s.Send(t.Context(), test.message, good)
				if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), q.Name()) {
					t.Errorf("error %v, want one that says %q and names the queue", err, test.want)
				}
				if !errors.Is(err, sent[0].Err) || sent[1].Err != nil {
					t.Errorf("results %v", sent)
				}
				if err := s.Submit(t.Context(), test.message, func(reprise.Sent) { t.Error("told of a message that was refused") }); err == nil || err.Error() != sent[0].Err.Error() {
					t.Errorf("submitted: %v, want %v", err, sent[0].Err)
				}
				if diff := cmp.Diff([]string{"good"}, queued(q)); diff != "" {
					t.Error(diff)
				}
				kit.CloseSender(t, s)
			})
		})
	}
}

// TestSenderConfigProblems: one error has all problems, with remedies.
func TestSenderConfigProblems(t *testing.T) {
	_, err := reprise.NewSender(nil, "orders", reprise.SenderConfig{Requests: -1, MaxBytes: 1000, Tries: -1, ContentDeduplication: true})
	for _, want := range []string{
		"the SQS client is nil: pass sqs.NewFromConfig(cfg)",
		`queue URL "orders" is not an http or https URL`,
		"SenderConfig.Requests is -1: set 1 or more, or 0 for 10",
		"SenderConfig.MaxBytes is 1000, less than the largest message: set 1048576 or more",
		"SenderConfig.Tries is -1: set 1 or more, or 0 for no limit",
		"SenderConfig.ContentDeduplication is set, but",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
}

// TestSenderDoesNotRepeatWhatIsRefused: an entry that SQS refuses because of its content gets its
// error, and the others of its batch are sent.
func TestSenderDoesNotRepeatWhatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, map[string]string{"MaximumMessageSize": "1024"})
		s, p := newSender(t, q, reprise.SenderConfig{})
		sent, err := s.Send(t.Context(), outgoing("first", strings.Repeat("x", 1025), "third")...)
		if err == nil || !strings.Contains(err.Error(), "1 of 3 messages were not sent") || !strings.Contains(err.Error(), "Message must be shorter than 1024 bytes") {
			t.Errorf("error %v, want SQS's reason", err)
		}
		if sent[0].Err != nil || sent[1].Err == nil || sent[2].Err != nil || errors.Is(sent[1].Err, reprise.ErrUnconfirmed) {
			t.Errorf("results %v", sent)
		}
		if n := len(p.requests()); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
		kit.CloseSender(t, s)
	})
}

// TestSenderSinglesOutWhatSpoilsABatch: SQS refuses a whole batch because of one message; only that
// one fails.
func TestSenderSinglesOutWhatSpoilsABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, map[string]string{"FifoQueue": "true"})
		s, p := newSender(t, q, reprise.SenderConfig{ContentDeduplication: true}) // which the queue has not
		messages := []reprise.Outgoing{
			grouped("a", "1")[0],
			{Body: "without an id", GroupID: "b"},
			grouped("c", "1")[0],
			grouped("b", "2")[0],
		}
		sent, err := s.Send(t.Context(), messages...)
		if err == nil || !strings.Contains(err.Error(), "ContentBasedDeduplication") || errors.Is(err, reprise.ErrUnconfirmed) {
			t.Errorf("error %v, want SQS's reason", err)
		}
		for i := range sent {
			if failed := sent[i].Err != nil; failed != (i == 1) {
				t.Errorf("result %d is %v", i, sent[i])
			}
		}
		if n := len(p.requests()); n != 5 {
			t.Errorf("%d requests, want 5: together, each alone, and the one behind", n)
		}
		kit.CloseSender(t, s)
	})
}

// TestSenderGivesUpOnAMissingQueue: after a lasting failure the messages get their error after a
// few requests.
func TestSenderGivesUpOnAMissingQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		p := &postman{SenderClient: q.Client()}
		s := senderThrough(t, p, q.URL()+"-missing", reprise.SenderConfig{})
		_, err := s.Send(context.Background(), outgoing("1", "2")...)
		if _, ok := errors.AsType[*types.QueueDoesNotExist](err); !ok || errors.Is(err, reprise.ErrUnconfirmed) {
			t.Errorf("error %v, want QueueDoesNotExist", err)
		}
		if n := len(p.requests()); n != 3 {
			t.Errorf("%d requests, want 3", n)
		}
		kit.CloseSender(t, s)
	})
}

// TestRefusedTogetherSentAlone: a request is refused as a whole because of one of its messages.
// Each of them is sent again in a request of its own, also if others wait by then: none of those is
// refused because of it.
func TestRefusedTogetherSentAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		var mu sync.Mutex
		refused := make(map[string]bool)
		choosy := &kit.Spy{Client: q.Direct()}
		choosy.Send = func(ctx context.Context, in *sqs.SendMessageBatchInput) (*sqs.SendMessageBatchOutput, error) {
			time.Sleep(time.Second)
			mu.Lock()
			defer mu.Unlock()
			bad := false
			for _, e := range in.Entries {
				bad = bad || *e.MessageBody == "bad"
				if refused[*e.MessageBody] && len(in.Entries) > 1 {
					t.Errorf("message %q, which was refused with others, is sent again with others", *e.MessageBody)
				}
			}
			if !bad {
				return choosy.Client.SendMessageBatch(ctx, in)
			}
			for _, e := range in.Entries {
				refused[*e.MessageBody] = true
			}
			return nil, &smithy.GenericAPIError{Code: "InvalidMessageContents", Message: "not these", Fault: smithy.FaultClient}
		}
		s := senderThrough(t, choosy, q.URL(), reprise.SenderConfig{Requests: 1})
		var got answers
		go func() {
			time.Sleep(500 * time.Millisecond) // while the first request is under way
			for _, m := range outgoing("fresh 1", "fresh 2") {
				if err := s.Submit(t.Context(), m, got.add); err != nil {
					t.Error(err)
				}
			}
		}()
		sent, err := s.Send(t.Context(), outgoing("good 1", "bad", "good 2")...)
		if err == nil || sent[0].Err != nil || sent[1].Err == nil || sent[2].Err != nil {
			t.Errorf("sent %+v, %v; want all but the bad one", sent, err)
		}
		kit.CloseSender(t, s)
		for _, a := range got.all() {
			if a.Err != nil {
				t.Errorf("a fresh message: %v", a.Err)
			}
		}
	})
}
