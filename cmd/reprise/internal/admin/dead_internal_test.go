package admin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// BenchmarkDead groups dead letters with bodies of 1 KiB, whose errors have numbers of their own.
func BenchmarkDead(b *testing.B) {
	const letters = 100_000
	server := sqsserver.New(sqsserver.Config{})
	b.Cleanup(func() { server.Close() })
	if _, err := server.CreateQueue(b.Context(), &sqsserver.CreateQueueInput{QueueName: "dead"}); err != nil {
		b.Fatal(err)
	}
	for i := range letters {
		in := &sqsserver.SendMessageInput{QueueUrl: "dead"}
		in.MessageBody = strings.Repeat(`"x`, 512)
		in.MessageAttributes = []sqsserver.MessageAttribute{{Name: reprise.StoryAttribute, DataType: "String", StringValue: fmt.Sprintf(
			`{"reason":"attempts","attempts":20,"error":"order %d: the target answered %d: try later","source":"arn:aws:sqs:us-east-1:000000000000:orders","last":"2026-11-24T11:00:00Z"}`, i, 500+i%4)}}
		if _, err := server.SendMessage(b.Context(), in); err != nil {
			b.Fatal(err)
		}
	}
	a := &API{cfg: Config{Server: server}}
	r := httptest.NewRequestWithContext(b.Context(), "GET", "/", http.NoBody)
	r.SetPathValue("queue", "dead")
	b.ReportAllocs()
	for b.Loop() {
		a.answers.forget("dead")
		if dead, err := a.dead(r); err != nil || dead.Messages != letters || len(dead.Groups) != 4 {
			b.Fatal(dead, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/letters, "ns/letter")
}

// TestDeadIsKept: an answer serves again for as long as no letter comes or goes, and one that may be
// recent for a while after that; whoever does not say so gets the letters as they are.
func TestDeadIsKept(t *testing.T) {
	server := sqsserver.New(sqsserver.Config{})
	t.Cleanup(func() { server.Close() })
	for _, queue := range []string{"dead", "orders"} {
		if _, err := server.CreateQueue(t.Context(), &sqsserver.CreateQueueInput{QueueName: queue}); err != nil {
			t.Fatal(err)
		}
	}
	send := func() {
		t.Helper()
		in := &sqsserver.SendMessageInput{QueueUrl: "dead"}
		in.MessageBody = "x"
		if _, err := server.SendMessage(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	a := &API{cfg: Config{Server: server}}
	ask := func(target string) Dead {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), "GET", target, http.NoBody)
		r.SetPathValue("queue", "dead")
		dead, err := a.dead(r)
		if err != nil {
			t.Fatal(err)
		}
		return dead
	}
	send()
	first := ask("/")
	if again := ask("/"); first.Messages != 1 || !again.At.Equal(first.At) {
		t.Errorf("nothing has changed, and the answer of %v is made again at %v", first.At, again.At)
	}
	if _, err := server.ReceiveMessage(t.Context(), &sqsserver.ReceiveMessageInput{QueueUrl: "dead"}); err != nil {
		t.Fatal(err)
	}
	if again := ask("/"); !again.At.Equal(first.At) {
		t.Error("the answer is made again for a receive")
	}
	send()
	kept := a.answers.answer("dead")
	kept.took = time.Hour // so that the answer is recent
	if recent := ask("/?recent=true"); recent.Messages != 1 {
		t.Errorf("the recent answer has %d letters, want 1", recent.Messages)
	}
	if now := ask("/"); now.Messages != 2 || now.Groups[0].Reason != operate.ReasonAlive {
		t.Errorf("%+v, want two letters", now)
	}
	send()
	kept.took, kept.made = time.Hour, time.Now().Add(-maxRecent)
	if recent := ask("/?recent=true"); recent.Messages != 3 {
		t.Errorf("the answer of a minute ago serves as a recent one: %d letters, want 3", recent.Messages)
	}
	policy := map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":5}`}
	if err := server.SetQueueAttributes(t.Context(), &sqsserver.SetQueueAttributesInput{QueueUrl: "orders", Attributes: policy}); err != nil {
		t.Fatal(err)
	}
	if now := ask("/"); now.Groups[0].Reason == operate.ReasonAlive {
		t.Error("the letters of what has become a dead-letter queue are still alive")
	}
	kept.asked = time.Now().Add(-keptFor - time.Second)
	if a.answers.answer("other"); a.answers.of["dead"] != nil {
		t.Error("an answer is kept that nobody asks for")
	}
}

// TestIsDeadLetterQueue: a dead-letter queue is known by its name, its ARN and its URL, whatever the host is called; a
// queue of that name in another account or region is another.
func TestIsDeadLetterQueue(t *testing.T) {
	server := sqsserver.New(sqsserver.Config{})
	t.Cleanup(func() { server.Close() })
	const arn = "arn:aws:sqs:us-east-1:000000000000:"
	for _, queue := range []string{"dead", "orders"} {
		in := &sqsserver.CreateQueueInput{QueueName: queue}
		if queue == "orders" {
			in.Attributes = map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + arn + `dead","maxReceiveCount":5}`}
		}
		if _, err := server.CreateQueue(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	for queue, want := range map[string]bool{
		"dead": true, arn + "dead": true, "http://127.0.0.1:9324/000000000000/dead": true, "https://any.example/000000000000/dead": true,
		"orders": false, "ead": false, arn + "orders": false, "http://127.0.0.1:9324/000000000000/orders": false,
		"http://127.0.0.1:9324/111111111111/dead": false, "arn:aws:sqs:us-east-1:111111111111:dead": false, "arn:aws:sqs:eu-west-1:000000000000:dead": false, "": false,
	} {
		if got := isDeadLetterQueue(server, queue); got != want {
			t.Errorf("%q: %t, want %t", queue, got, want)
		}
	}
}
