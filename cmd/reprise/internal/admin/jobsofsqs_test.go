package admin_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// ofSQS returns the API of a process without a server, which acts on queues as on those of SQS, and a client of it.
// It is called in a bubble of synctest: the client makes no connection.
func ofSQS(t *testing.T, queues ...*reprisetest.Queue) (*admin.API, *admin.Client) {
	t.Helper()
	api := admin.New(configOf(t, nil, queues...))
	return api, api.Inside("test")
}

// configOf configures the API of a process that knows queues, and the keys with which their stories are signed.
func configOf(t *testing.T, keys []reprise.SigningKey, queues ...*reprisetest.Queue) admin.Config {
	t.Helper()
	logger := slog.New(slog.DiscardHandler)
	return admin.Config{
		Version: "v1", Events: new(admin.Events), Logger: logger, Pages: pages(t, logger), Consumers: func() []admin.Running { return nil },
		JobQueue: func(_ context.Context, queue string) (admin.JobQueue, error) {
			for _, q := range queues {
				if queue == q.Name() || queue == q.URL() {
					return admin.JobQueue{URL: q.URL(), Client: q.Client(), Keys: keys}, nil
				}
			}
			_, err := admin.OneQueue(queue, nil)
			return admin.JobQueue{}, err
		},
	}
}

// toItsEnd starts a job and waits for its end.
func toItsEnd(t *testing.T, client *admin.Client, request admin.JobRequest) admin.Job {
	t.Helper()
	j, err := client.StartJob(t.Context(), request)
	for err == nil && j.State == admin.JobRunning {
		time.Sleep(time.Second)
		j, err = client.Job(t.Context(), j.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestDeadOnly: SQS moves letters without a story. In a queue that another names as its dead-letter queue they are
// letters all the same; elsewhere nothing says that they are dead, and they are left.
func TestDeadOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := reprisetest.NewQueue(t, nil)
		dead, other := source.NewDeadLetterQueue(3), source.NewQueue(nil)
		dead.Send("1", "2", "3")
		other.Send("1", "2")
		_, client := ofSQS(t, dead, other)
		j := toItsEnd(t, client, admin.JobRequest{Action: admin.JobDelete, Queue: dead.Name(), All: true, DeadOnly: true})
		if j.State != admin.JobDone || j.Done != 3 || j.Failed != 0 || j.Problem != "" || len(dead.Messages()) != 0 {
			t.Errorf("of letters that SQS has moved %d are left, %+v", len(dead.Messages()), j)
		}
		j = toItsEnd(t, client, admin.JobRequest{Action: admin.JobDelete, Queue: other.Name(), All: true, DeadOnly: true})
		if j.Done != 0 || j.Failed != 2 || !strings.Contains(j.Problem, "2 messages left") || len(other.Messages()) != 2 {
			t.Errorf("of a queue that no other names %d messages are left, %+v", len(other.Messages()), j)
		}
		// If SQS does not say which queues name this one, nothing is known of its messages.
		other.Fault(sqsserver.Fault{Kind: sqsserver.FaultServerError, Action: "ListDeadLetterSourceQueues"})
		j, err := client.StartJob(t.Context(), admin.JobRequest{Action: admin.JobDelete, Queue: other.Name(), All: true, DeadOnly: true})
		if time.Sleep(time.Minute); err == nil || len(other.Messages()) != 2 {
			t.Errorf("where SQS does not answer %d messages are left, want 2 and an error: %+v, %v", len(other.Messages()), j, err)
		}
	})
}

// TestUnconfirmedDeletesAreNotDone: what SQS does not confirm may be there still, and is not reported as deleted.
func TestUnconfirmedDeletesAreNotDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Send("1", "2", "3")
		q.Fault(sqsserver.Fault{Kind: sqsserver.FaultFailEntry, Action: "DeleteMessageBatch"})
		_, client := ofSQS(t, q)
		j := toItsEnd(t, client, admin.JobRequest{Action: admin.JobDelete, Queue: q.Name(), All: true})
		if j.Matched != 3 || j.Done != 0 || j.Failed != 3 || len(q.Messages()) != 3 {
			t.Errorf("of 3 messages whose delete fails %d are left: %+v; want that none is done, and 3 failed", len(q.Messages()), j)
		}
	})
}

// TestNoQueueOntoItself: a queue that is given by its name and by its URL is one queue.
func TestNoQueueOntoItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Send("1")
		_, client := ofSQS(t, q)
		for _, to := range []string{q.Name(), q.URL()} {
			for _, from := range []string{q.Name(), q.URL()} {
				j, err := client.StartJob(t.Context(), admin.JobRequest{Action: admin.JobMove, Queue: from, To: to, All: true, Limit: 5})
				if err == nil || !strings.Contains(err.Error(), "another queue") {
					t.Errorf("from %s to %s: %+v, %v; want that it is refused", from, to, j, err)
				}
			}
		}
	})
}

// TestAttachedJobGoesOnWhileAsked: a command that waits asks for its job. As long as it does, however long that is,
// the job goes on; when it is gone, the job ends.
func TestAttachedJobGoesOnWhileAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := reprisetest.NewQueue(t, nil)
		to := from.NewQueue(nil)
		for range 30 {
			from.Send("m")
		}
		_, client := ofSQS(t, from, to)
		j, err := client.StartJob(t.Context(), admin.JobRequest{Action: admin.JobMove, Queue: from.Name(), To: to.Name(), All: true, Rate: 0.1, Attached: true})
		if err != nil {
			t.Fatal(err)
		}
		for range 60 {
			time.Sleep(time.Second)
			if j, err = client.Job(t.Context(), j.ID); err != nil || j.State != admin.JobRunning {
				t.Fatalf("while it is asked for: %+v, %v", j, err)
			}
		}
		time.Sleep(40 * time.Second) // the command is gone; a batch may be under way
		if j, err = client.Job(t.Context(), j.ID); err != nil || j.State != admin.JobCancelled {
			t.Errorf("40 s after its command is gone: %+v, %v", j, err)
		}
		if n := len(from.Messages()) + len(to.Messages()); n != 30 {
			t.Errorf("there are %d messages, want the 30", n)
		}
	})
}

// TestStopFinishesTheBatch: a stop of the process lets a job finish what is under way, for as long as its budget
// permits: cut between the send and the delete, it would leave a message in both queues.
func TestStopFinishesTheBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		from := reprisetest.NewQueue(t, nil)
		to := from.NewQueue(nil)
		for range 25 {
			from.Send("m")
		}
		for _, q := range []*reprisetest.Queue{from, to} {
			q.Fault(sqsserver.Fault{Kind: sqsserver.FaultSlowReply, Action: "SendMessageBatch", Delay: 2 * time.Second},
				sqsserver.Fault{Kind: sqsserver.FaultSlowReply, Action: "SendMessage", Delay: 2 * time.Second})
		}
		api, client := ofSQS(t, from, to)
		j, err := client.StartJob(t.Context(), admin.JobRequest{Action: admin.JobMove, Queue: from.Name(), To: to.Name(), All: true})
		if err != nil {
			t.Fatal(err)
		}
		for len(to.Messages()) == 0 {
			time.Sleep(time.Millisecond)
		}
		if err := api.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if j, err = client.Job(t.Context(), j.ID); err != nil || j.State != admin.JobCancelled || j.Done == 0 || j.Done != len(to.Messages()) {
			t.Errorf("after the stop %d were moved: %+v, %v", len(to.Messages()), j, err)
		}
		if moved, left := len(to.Messages()), len(from.Messages()); moved+left != 25 {
			t.Errorf("%d messages are in the one queue and %d in the other, want 25 in all", moved, left)
		}
	})
}

// TestPartialJobSaysSo: a job that ends before it has seen all messages says why. Without that it looks like one that
// has found no more.
func TestPartialJobSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		for range 100 {
			q.Send("m")
		}
		_, client := ofSQS(t, q)
		// At 20 s a letter the first are visible again before the last is seen.
		j := toItsEnd(t, client, admin.JobRequest{Action: admin.JobExport, Queue: q.Name(), All: true, Rate: 0.05})
		if j.State != admin.JobDone || j.Done >= 100 || !strings.Contains(j.Problem, "visible again") {
			t.Errorf("%d of 100 were exported, with the problem %q: %+v", j.Done, j.Problem, j)
		}
	})
}

// TestPartialJobSaysSoBesideWhatIsLeft: that messages were left for being alive does not hide that others were not seen.
func TestPartialJobSaysSoBesideWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		story := sqsserver.MessageAttribute{Name: reprise.StoryAttribute, DataType: "String", StringValue: `{"reason":"permanent","source":"arn:aws:sqs:us-east-1:000000000000:orders"}`}
		for range 50 {
			q.Send("alive")
			q.SendMessage(sqsserver.SendMessageEntry{MessageBody: "dead", MessageAttributes: []sqsserver.MessageAttribute{story}})
		}
		_, client := ofSQS(t, q)
		j := toItsEnd(t, client, admin.JobRequest{Action: admin.JobDelete, Queue: q.Name(), All: true, DeadOnly: true, Rate: 0.05})
		if !strings.Contains(j.Problem, "nothing says that these are dead letters") || !strings.Contains(j.Problem, "visible again") {
			t.Errorf("the problem is %q: %+v", j.Problem, j)
		}
	})
}

// TestSlowDeleteKeepsItsLeases: at the slowest rates too a job deletes only what it holds. It waits before it receives,
// and not with messages in its hands: the lease of one would end, a consumer would get it, and SQS would delete it while
// that works on it.
func TestSlowDeleteKeepsItsLeases(t *testing.T) {
	for rate, most := range map[float64]int{0.01: 6, 0.001: 1} { // in the half of a lease for which a job looks, one at once
		synctest.Test(t, func(t *testing.T) {
			q := reprisetest.NewQueue(t, nil)
			for range 20 {
				q.Send("m")
			}
			_, client := ofSQS(t, q)
			j := toItsEnd(t, client, admin.JobRequest{Action: admin.JobDelete, Queue: q.Name(), All: true, Rate: rate})
			if j.State != admin.JobDone || j.Done == 0 || j.Done > most || j.Done+len(q.Messages()) != 20 || !strings.Contains(j.Problem, "visible again") {
				t.Errorf("at %v a second %d are left, want that at most %d are deleted: %+v", rate, len(q.Messages()), most, j)
			}
			if took := j.Ended.Sub(j.Created); took > 10*time.Minute {
				t.Errorf("at %v a second the job took %v, with leases of 15 minutes", rate, took)
			}
		})
	}
}

// TestLimitEndsASlowJob: a job ends with the last message that it may delete. It does not wait until its rate permits one
// more.
func TestLimitEndsASlowJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		q.Send("1", "2", "3")
		_, client := ofSQS(t, q)
		j := toItsEnd(t, client, admin.JobRequest{Action: admin.JobDelete, Queue: q.Name(), All: true, Limit: 2, Rate: 0.005})
		if j.State != admin.JobDone || j.Done != 2 || j.Problem != "" || len(q.Messages()) != 1 {
			t.Errorf("of 3 messages %d are left, want 1: %+v", len(q.Messages()), j)
		}
		if took := j.Ended.Sub(j.Created); took > 4*time.Minute {
			t.Errorf("the job took %v, want the 200 s between its two messages", took)
		}
	})
}

// TestLimitWithinABatch: SQS brings ten messages at once. A job acts on as many as it may, and leaves the others of the
// batch.
func TestLimitWithinABatch(t *testing.T) {
	for _, action := range []string{admin.JobDelete, admin.JobExport} {
		synctest.Test(t, func(t *testing.T) {
			q := reprisetest.NewQueue(t, nil)
			q.Send("1", "2", "3", "4", "5", "6", "7", "8")
			_, client := ofSQS(t, q)
			j := toItsEnd(t, client, admin.JobRequest{Action: action, Queue: q.Name(), All: true, Limit: 3})
			exported := 0
			if err := client.Exported(t.Context(), j.ID, func(*operate.Message) error { exported++; return nil }); err != nil {
				t.Fatal(err)
			}
			left, want := 5, 0
			if action == admin.JobExport {
				left, want = 8, 3
			}
			if j.Matched != 3 || j.Done != 3 || len(q.Messages()) != left || exported != want {
				t.Errorf("%s of at most 3 of 8: %d are left, %d exported, %+v", action, len(q.Messages()), exported, j)
			}
		})
	}
}

// TestReceivesThatMoveMessages: on a queue with a dead-letter queue each receive brings its messages nearer to that. A
// job that has to receive them refuses, and receives none, unless the request says that this is known.
func TestReceivesThatMoveMessages(t *testing.T) {
	for _, action := range []string{admin.JobDelete, admin.JobExport, admin.JobMove, admin.JobRedrive} {
		synctest.Test(t, func(t *testing.T) {
			q := reprisetest.NewQueue(t, nil)
			to := q.NewDeadLetterQueue(3)
			q.Send("1", "2")
			_, client := ofSQS(t, q, to)
			request := admin.JobRequest{Action: action, Queue: q.Name(), All: true, AnyQueue: true}
			if action == admin.JobMove || action == admin.JobRedrive {
				request.To = to.Name()
			}
			j := toItsEnd(t, client, request)
			if j.State != admin.JobFailed || !strings.Contains(j.Problem, "set force") {
				t.Errorf("%s: %+v; want that it is refused", action, j)
			}
			for _, m := range q.Messages() {
				if m.Receives != 0 {
					t.Errorf("%s: %q was received %d times", action, m.Body, m.Receives)
				}
			}
			request.Force = true
			if j = toItsEnd(t, client, request); j.State != admin.JobDone || j.Done != 2 {
				t.Errorf("%s with force: %+v; want that it is done", action, j)
			}
		})
	}
}

// TestTheLivingAreNotSent: messages of a queue that no other names as its dead-letter queue may be alive. A redrive of
// them is refused unless the request says that the queue is meant, or the process has the keys of who dead-letters to
// it; and with dead_only a redrive or a move leaves those that nothing says are dead letters.
func TestTheLivingAreNotSent(t *testing.T) {
	key, err := reprise.NewSigningKey("k", []byte(strings.Repeat("s", 32)))
	if err != nil {
		t.Fatal(err)
	}
	keys := []reprise.SigningKey{key}
	for _, test := range []struct {
		name    string
		keys    []reprise.SigningKey
		named   bool
		request admin.JobRequest
		refused bool
		sent    int // of a letter with a story and two messages without
	}{
		{"redrive", nil, false, admin.JobRequest{Action: admin.JobRedrive}, true, 0},
		{"count of a redrive", nil, false, admin.JobRequest{Action: admin.JobRedrive, DryRun: true}, true, 0},
		{"redrive of letters alone", nil, false, admin.JobRequest{Action: admin.JobRedrive, DeadOnly: true}, true, 0},
		{"redrive of any queue", nil, false, admin.JobRequest{Action: admin.JobRedrive, AnyQueue: true}, false, 3},
		{"redrive of letters alone, of any queue", nil, false, admin.JobRequest{Action: admin.JobRedrive, AnyQueue: true, DeadOnly: true}, false, 1},
		{"redrive with keys", keys, false, admin.JobRequest{Action: admin.JobRedrive}, false, 3},
		{"redrive of letters alone, with keys", keys, false, admin.JobRequest{Action: admin.JobRedrive, DeadOnly: true}, false, 1},
		{"redrive of a dead-letter queue", nil, true, admin.JobRequest{Action: admin.JobRedrive}, false, 3},
		{"redrive of letters alone, of a dead-letter queue", nil, true, admin.JobRequest{Action: admin.JobRedrive, DeadOnly: true}, false, 3},
		{"move", nil, false, admin.JobRequest{Action: admin.JobMove}, false, 3},
		{"move of letters alone", nil, false, admin.JobRequest{Action: admin.JobMove, DeadOnly: true}, false, 1},
		{"move of letters alone, of a dead-letter queue", nil, true, admin.JobRequest{Action: admin.JobMove, DeadOnly: true}, false, 3},
	} {
		for _, own := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				source := reprisetest.NewQueue(t, nil)
				from, to := source.NewQueue(nil), source.NewQueue(nil)
				if test.named {
					from = source.NewDeadLetterQueue(3)
				}
				from.Send("1", "2")
				from.SendMessage(sqsserver.SendMessageEntry{MessageBody: "letter", MessageAttributes: []sqsserver.MessageAttribute{
					{Name: reprise.StoryAttribute, DataType: "String", StringValue: `{"reason":"permanent"}`},
				}})
				cfg := configOf(t, test.keys, from, to)
				if own {
					cfg.Server = from.Server()
				}
				client := admin.New(cfg).Inside("test")
				request := test.request
				request.Queue, request.To, request.All = from.Name(), to.Name(), true
				var j admin.Job
				if test.refused {
					if j, err = client.StartJob(t.Context(), request); err == nil || !strings.Contains(err.Error(), "set any_queue") {
						t.Errorf("%s, own server %t: %+v, %v; want that it is refused", test.name, own, j, err)
					}
					time.Sleep(time.Minute)
				} else {
					j = toItsEnd(t, client, request)
				}
				left := 3 - test.sent
				if len(to.Messages()) != test.sent || len(from.Messages()) != left || j.Done != test.sent {
					t.Errorf("%s, own server %t: %d were sent and %d are left, want %d and %d: %+v", test.name, own, len(to.Messages()), len(from.Messages()), test.sent, left, j)
				}
				if says := strings.Contains(j.Problem, "2 messages left"); !test.refused && (says != (left > 0) || j.Failed != left) {
					t.Errorf("%s, own server %t: %+v; want that it says what was left", test.name, own, j)
				}
			})
		}
	}
}

// TestJobsTrustSignedStories: a process with a server of its own and the keys of its consumers sends letters back by
// the stories that those have signed, although nothing else of the job looks at their bodies, to which signatures are
// bound.
func TestJobsTrustSignedStories(t *testing.T) {
	key, err := reprise.NewSigningKey("k", []byte(strings.Repeat("s", 32)))
	if err != nil {
		t.Fatal(err)
	}
	keys := []reprise.SigningKey{key}
	synctest.Test(t, func(t *testing.T) {
		source := reprisetest.NewQueue(t, nil)
		dead := source.NewQueue(nil) // which SQS does not know as the dead-letter queue of source
		body, story := "m", fmt.Sprintf(`{"source":%q,"last":%q}`, source.ARN(), time.Now().UTC().Format(time.RFC3339))
		entry := types.SendMessageBatchRequestEntry{MessageBody: &body, MessageAttributes: map[string]types.MessageAttributeValue{
			reprise.StoryAttribute: {DataType: aws.String("String"), StringValue: &story},
		}}
		if err := reprise.SignStory(dead.URL(), &entry, keys); err != nil {
			t.Fatal(err)
		}
		for _, body := range []string{body, "another, to which the story was copied"} {
			dead.SendMessage(sqsserver.SendMessageEntry{MessageBody: body, MessageAttributes: []sqsserver.MessageAttribute{
				{Name: reprise.StoryAttribute, DataType: "String", StringValue: *entry.MessageAttributes[reprise.StoryAttribute].StringValue},
			}})
		}
		cfg := configOf(t, keys, source, dead)
		cfg.Server = dead.Server()
		j := toItsEnd(t, admin.New(cfg).Inside("test"), admin.JobRequest{Action: admin.JobRedrive, Queue: dead.Name(), All: true})
		if back := source.Messages(); j.Sent[source.URL()] != 1 || j.Failed != 1 || len(back) != 1 || back[0].Body != "m" {
			t.Errorf("the source holds %+v, %+v; want the letter whose story is signed", back, j)
		}
	})
}
