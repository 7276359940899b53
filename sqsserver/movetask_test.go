package sqsserver_test

import (
	"encoding/base64"
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// newRedriveBench has n messages in the dead-letter queue dead of the queue q.
func newRedriveBench(t *testing.T, n int) (b *testServer, dead string) {
	b = &testServer{T: t, server: newServer(t)}
	dead = b.create("dead", nil)
	b.url = b.create("q", map[string]string{"VisibilityTimeout": "0", "RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":1}`})
	for i := range n {
		b.send(fmt.Sprint(i))
	}
	for received := 0; received < n; received += len(b.receive(b.url)) {
	}
	if n := len(b.receive(b.url)); n != 0 {
		t.Fatalf("received %d messages for the second time", n)
	}
	return b, dead
}

func (b *testServer) move(rate sqsserver.OptionalInt) {
	b.Helper()
	_, err := b.server.StartMessageMoveTask(b.Context(), &sqsserver.StartMessageMoveTaskInput{
		SourceArn: "arn:aws:sqs:us-east-1:000000000000:dead", MaxNumberOfMessagesPerSecond: rate,
	})
	if err != nil {
		b.Fatal(err)
	}
}

func (b *testServer) visible(url string) (count string) {
	b.Helper()
	out, err := b.server.GetQueueAttributes(b.Context(), &sqsserver.GetQueueAttributesInput{QueueUrl: url, AttributeNames: []string{"ApproximateNumberOfMessages"}})
	if err != nil {
		b.Fatal(err)
	}
	return out.Attributes["ApproximateNumberOfMessages"]
}

// A task moves as many messages a second as it may, evenly.
func TestMoveTaskPace(t *testing.T) {
	for _, test := range []struct {
		rate sqsserver.OptionalInt
		want []string // the messages moved after each 300 ms
	}{
		{sqsserver.OptionalInt{}, []string{"150", "300", "450", "600"}},
		{sqsserver.Int(500), []string{"150", "300", "450", "600"}},
		{sqsserver.Int(100), []string{"30", "60", "90", "120"}},
		{sqsserver.Int(10), []string{"3", "6", "9", "12"}},
		{sqsserver.Int(1), []string{"0", "0", "0", "1"}},
	} {
		t.Run(fmt.Sprint(test.rate), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, _ := newRedriveBench(t, 1000)
				b.move(test.rate)
				for i, want := range test.want {
					time.Sleep(300 * time.Millisecond)
					synctest.Wait()
					if got := b.visible(b.url); got != want {
						t.Errorf("after %v %s messages are moved, want %s", time.Duration(i+1)*300*time.Millisecond, got, want)
					}
				}
			})
		})
	}
}

// The handle of a task says which it is. That of another task of the queue ends
// none.
func TestTaskHandle(t *testing.T) {
	b, _ := newRedriveBench(t, 1)
	const source = "arn:aws:sqs:us-east-1:000000000000:dead"
	started, err := b.server.StartMessageMoveTask(t.Context(), &sqsserver.StartMessageMoveTaskInput{SourceArn: source, MaxNumberOfMessagesPerSecond: sqsserver.Int(1)})
	if err != nil {
		t.Fatal(err)
	}
	text, err := base64.StdEncoding.DecodeString(started.TaskHandle)
	if form := `^{"taskId":"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}","sourceArn":"` + source + `"}$`; err != nil || !regexp.MustCompile(form).Match(text) {
		t.Errorf("the handle says %s, %v; want %s", text, err, form)
	}
	for handle, want := range map[string]string{
		`{"taskId":"10f57157-fc38-4da9-a113-4de7e12d05dd","sourceArn":"` + source + `"}`: "ResourceNotFoundException: Task does not exist.",
		`{"sourceArn":"` + source + `"}`:                                                 "InvalidParameterValue: Value for parameter TaskHandle is invalid.",
		`{"taskId":"10f57157-fc38-4da9-a113-4de7e12d05dd"}`:                              "InvalidParameterValue: Value for parameter TaskHandle is invalid.",
	} {
		_, err := b.server.CancelMessageMoveTask(t.Context(), &sqsserver.CancelMessageMoveTaskInput{TaskHandle: base64.StdEncoding.EncodeToString([]byte(handle))})
		if err == nil || err.Error() != want {
			t.Errorf("cancelling %s returned %v, want %s", handle, err, want)
		}
	}
	if _, err := b.server.CancelMessageMoveTask(t.Context(), &sqsserver.CancelMessageMoveTaskInput{TaskHandle: started.TaskHandle}); err != nil {
		t.Errorf("the task has ended: %v", err)
	}
}

// A message that is moved wakes who waits for it.
func TestMovedMessageEndsALongPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _ := newRedriveBench(t, 1)
		b.move(sqsserver.Int(1))
		messages, took, err := b.poll(t.Context())
		if err != nil || len(messages) != 1 || took != time.Second {
			t.Errorf("the poll returned %v, %v after %v; want the message after 1s", messages, err, took)
		}
	})
}

// Messages that fail again while a task runs do not go round for ever.
func TestMoveTaskEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, dead := newRedriveBench(t, 5)
		b.move(sqsserver.Int(1))
		for range 30 {
			time.Sleep(time.Second)
			b.receive(b.url) // gets the moved messages, and
			b.receive(b.url) // sends it back
		}
		if got := b.visible(dead); got != "5" {
			t.Errorf("the dead-letter queue has %s messages, want 5", got)
		}
		out, err := b.server.ListMessageMoveTasks(t.Context(), &sqsserver.ListMessageMoveTasksInput{SourceArn: "arn:aws:sqs:us-east-1:000000000000:dead"})
		if err != nil || len(out.Results) != 1 || out.Results[0].Status != "COMPLETED" || out.Results[0].ApproximateNumberOfMessagesMoved != 5 {
			t.Errorf("the task is %+v, %v; want it completed with 5 moved", out, err)
		}
	})
}

// Expired messages, more than a step settles, are no end.
func TestMoveTaskPassesExpiredMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, dead := newRedriveBench(t, 300)
		time.Sleep(time.Minute)
		b.url = dead
		b.send("fresh")
		if err := b.server.SetQueueAttributes(t.Context(), &sqsserver.SetQueueAttributesInput{
			QueueUrl: dead, Attributes: map[string]string{"MessageRetentionPeriod": "61"},
		}); err != nil {
			t.Fatal(err)
		}
		other := b.create("other", nil)
		if _, err := b.server.StartMessageMoveTask(t.Context(), &sqsserver.StartMessageMoveTaskInput{
			SourceArn: "arn:aws:sqs:us-east-1:000000000000:dead", DestinationArn: "arn:aws:sqs:us-east-1:000000000000:other",
			MaxNumberOfMessagesPerSecond: sqsserver.Int(1),
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if got := b.receive(other); len(got) != 1 || got[0].Body != "fresh" {
			t.Errorf("moved %v, want the one that has not expired", got)
		}
	})
}

// After 36 hours a task ends.
func TestMoveTaskEndsAfter36Hours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, dead := newRedriveBench(t, 0)
		if err := b.server.SetQueueAttributes(t.Context(), &sqsserver.SetQueueAttributesInput{
			QueueUrl: dead, Attributes: map[string]string{"MessageRetentionPeriod": "1209600"},
		}); err != nil {
			t.Fatal(err)
		}
		b.url = dead
		for range 13_000 {
			entries := make([]sqsserver.SendMessageBatchRequestEntry, 10)
			for i := range entries {
				entries[i] = sqsserver.SendMessageBatchRequestEntry{Id: fmt.Sprint(i), SendMessageEntry: sqsserver.SendMessageEntry{MessageBody: "x"}}
			}
			if _, err := b.server.SendMessageBatch(t.Context(), &sqsserver.SendMessageBatchInput{QueueUrl: dead, Entries: entries}); err != nil {
				t.Fatal(err)
			}
		}
		b.create("other", nil)
		if _, err := b.server.StartMessageMoveTask(t.Context(), &sqsserver.StartMessageMoveTaskInput{
			SourceArn: "arn:aws:sqs:us-east-1:000000000000:dead", DestinationArn: "arn:aws:sqs:us-east-1:000000000000:other",
			MaxNumberOfMessagesPerSecond: sqsserver.Int(1),
		}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(37 * time.Hour)
		out, err := b.server.ListMessageMoveTasks(t.Context(), &sqsserver.ListMessageMoveTasksInput{SourceArn: "arn:aws:sqs:us-east-1:000000000000:dead"})
		if err != nil || out.Results[0].Status != "FAILED" || out.Results[0].FailureReason != "TaskTimedOut" {
			t.Errorf("the task is %+v, %v; want it to have failed", out, err)
		}
	})
}

func TestActiveMoveTasksAreLimited(t *testing.T) {
	b := &testServer{T: t, server: newServer(t)}
	start := func(i int) error {
		dead := fmt.Sprintf("dead%d", i)
		b.create(dead, nil)
		arn := "arn:aws:sqs:us-east-1:000000000000:" + dead
		b.create(fmt.Sprintf("q%d", i), map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + arn + `","maxReceiveCount":1}`})
		_, err := b.server.StartMessageMoveTask(t.Context(), &sqsserver.StartMessageMoveTaskInput{SourceArn: arn, MaxNumberOfMessagesPerSecond: sqsserver.Int(1)})
		return err
	}
	for i := range 100 {
		if err := start(i); err != nil {
			t.Fatal(err)
		}
	}
	if err := start(100); err == nil || !strings.Contains(err.Error(), "OverLimit") {
		t.Errorf("the task beyond the limit: %v", err)
	}
	// Each account has a limit of its own.
	for _, step := range [][2]string{
		{"CreateQueue", `{"QueueName":"dead"}`},
		{"CreateQueue", `{"QueueName":"q","Attributes":{"RedrivePolicy":"{\"deadLetterTargetArn\":\"arn:aws:sqs:us-east-1:111111111111:dead\",\"maxReceiveCount\":1}"}}`},
		{"StartMessageMoveTask", `{"SourceArn":"arn:aws:sqs:us-east-1:111111111111:dead"}`},
	} {
		w := httptest.NewRecorder()
		b.server.ServeHTTP(w, request("POST", step[0], step[1], map[string]string{"Authorization": "AWS4-HMAC-SHA256 Credential=111111111111/20261121/us-east-1/sqs/aws4_request"}))
		if w.Code != 200 {
			t.Errorf("%s in another account: %d %s", step[0], w.Code, w.Body)
		}
	}
}
