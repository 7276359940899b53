package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestScaleCountsTheLane: retries that wait visibly in a retry lane are work to do. Without them an autoscaler
// ends the last process while they wait. Another queue, and its lane, do not count.
func TestScaleCountsTheLane(t *testing.T) {
	nothing := reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return nil })
	logger := slog.New(slog.DiscardHandler)
	counts := map[string]int{"orders": 5, "orders-lane": 3, "refunds": 11, "refunds-lane": 7, "orders-dead": 13}
	expect := func(t *testing.T, page http.HandlerFunc) {
		t.Helper()
		for queue, visible := range map[string]int{"orders": 8, "refunds": 18} {
			want := fmt.Sprintf(`{"queue":%q,"visible":%d,"processing":0,"backoff":0}`, queue, visible)
			if code, text := answerOf(page, "queue="+queue); code != http.StatusOK || strings.TrimSpace(text) != want {
				t.Errorf("/scale?queue=%s: %d %s, want %s", queue, code, text, want)
			}
		}
	}
	t.Run("of a server", func(t *testing.T) {
		cfg := Config{Addr: "127.0.0.1:0", Region: "us-east-1", Logger: logger}
		for name := range counts {
			cfg.Queues = append(cfg.Queues, Queue{Name: name})
		}
		d, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		for name, n := range counts {
			for range n {
				send(t, d.sqs, d.QueueURL(name))
			}
		}
		var all []Consume
		for _, name := range []string{"orders", "refunds"} {
			c := Consume{Client: d.Client(), QueueURL: d.QueueURL(name), Handler: nothing, Config: reprise.Config{Logger: logger}}
			c.Config.RetryLane.URL = d.QueueURL(name + "-lane")
			all = append(all, c)
		}
		if err := d.Consume(all); err != nil {
			t.Fatal(err)
		}
		expect(t, d.serveScale)
	})
	t.Run("of a worker", func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		urls := make(map[string]string)
		for name, n := range counts {
			made, err := q.Server().CreateQueue(t.Context(), &sqsserver.CreateQueueInput{QueueName: name})
			if err != nil {
				t.Fatal(err)
			}
			urls[name] = made.QueueUrl
			for range n {
				send(t, q.Server(), urls[name])
			}
		}
		w, err := NewWorker(WorkerConfig{Logger: logger})
		if err != nil {
			t.Fatal(err)
		}
		var all []Consume
		for _, name := range []string{"orders", "refunds"} {
			c := Consume{Client: q.Client(), QueueURL: urls[name], Handler: nothing, Config: reprise.Config{Logger: logger}}
			c.Config.RetryLane.URL = urls[name+"-lane"]
			all = append(all, c)
		}
		if err := w.Consume(all); err != nil {
			t.Fatal(err)
		}
		expect(t, w.serveScale)
	})
}

// TestScaleTellsHeldFromBackoff: each number is another: 2 messages run and 3 wait for a place, which are processing,
// and 4 wait for a retry.
func TestScaleTellsHeldFromBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		w, err := NewWorker(WorkerConfig{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		block := make(chan struct{})
		err = w.Consume([]Consume{{Client: q.Client(), QueueURL: q.URL(), Config: reprise.Config{Concurrency: 2, Logger: slog.New(slog.DiscardHandler)},
			Handler: reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
				if m.Body == "later" {
					return reprise.RetryAfter(time.Hour, fmt.Errorf("not yet"))
				}
				<-block
				return nil
			}),
		}})
		if err != nil {
			t.Fatal(err)
		}
		drain, ended := make(chan struct{}), make(chan error)
		go func() { ended <- w.Run(t.Context(), drain) }()
		q.Send("later", "later", "later", "later")
		time.Sleep(time.Second)
		q.Send("1", "2", "3", "4", "5")
		time.Sleep(time.Second)
		code, text := answerOf(w.serveScale)
		if want := `{"visible":0,"processing":5,"backoff":4}`; code != http.StatusOK || strings.TrimSpace(text) != want {
			t.Errorf("%d %s, want %s", code, text, want)
		}
		close(block)
		close(drain)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestScaleOfARegion: a server counts the messages of its own region's queue, and not those of a queue of the same name
// that a client has created in another region.
func TestScaleOfARegion(t *testing.T) {
	d, err := New(Config{Addr: "127.0.0.1:0", Region: "us-east-1", Logger: slog.New(slog.DiscardHandler), Queues: []Queue{{Name: "orders"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	web := httptest.NewServer(d.http.Handler)
	defer web.Close()
	for region, n := range map[string]int{"ap-south-1": 3, "us-east-1": 2, "us-west-2": 5} {
		client := awsclient.Local(web.URL, region)
		made, err := client.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("orders")})
		if err != nil {
			t.Fatal(err)
		}
		for range n {
			if _, err := client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: made.QueueUrl, MessageBody: aws.String("b")}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for query, want := range map[string]string{"queue=orders": `{"queue":"orders","visible":2,"processing":0,"backoff":0}`, "": `{"visible":2,"processing":0,"backoff":0}`} {
		if code, text := answerOf(d.serveScale, query); code != http.StatusOK || strings.TrimSpace(text) != want {
			t.Errorf("/scale?%s: %d %s, want %s", query, code, text, want)
		}
	}
}

// TestScaleKnowsQueuesByTheirURL: queues of one name, in two accounts or regions, are two.
func TestScaleKnowsQueuesByTheirURL(t *testing.T) {
	client := visibleAt{of: map[string]string{
		"https://sqs.eu-west-1.amazonaws.com/1/orders": "3", "https://sqs.eu-west-1.amazonaws.com/2/orders": "5", "https://sqs.us-east-1.amazonaws.com/1/orders": "7",
	}}
	var n counted
	for range 2 { // asked, and remembered
		for url, want := range client.of {
			if got, err := n.of(t.Context(), client, url); err != nil || strconv.Itoa(got) != want {
				t.Errorf("%s: %d, %v, want %s", url, got, err, want)
			}
		}
	}
}

// visibleAt is a client that knows how many messages of the queues at some URLs are visible.
type visibleAt struct {
	reprise.Client
	of map[string]string
}

func (visible visibleAt) GetQueueAttributes(_ context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{"ApproximateNumberOfMessages": visible.of[*in.QueueUrl]}}, nil
}
