package reprisetest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/reprisetest"
)

// BenchmarkIdleFortnight: a consumer waits for one retry, for a fortnight.
func BenchmarkIdleFortnight(b *testing.B) {
	clients := []struct {
		name   string
		client func(*reprisetest.Queue) reprise.Client
	}{
		{"direct", func(q *reprisetest.Queue) reprise.Client { return q.Direct() }},
		{"sdk", func(q *reprisetest.Queue) reprise.Client { return q.Client() }},
	}
	for _, c := range clients {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			polls := 0
			for b.Loop() {
				bubble(b, func(t *testing.T) { polls = pollFor(t, 14*24*time.Hour, c.client) })
			}
			b.ReportMetric(float64(polls), "polls/op")
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*polls), "µs/poll")
		})
	}
}

// bubble runs f in a bubble; synctest offers them to tests only.
func bubble(b *testing.B, f func(*testing.T)) {
	test := testing.InternalTest{Name: b.Name(), F: func(t *testing.T) { synctest.Test(t, f) }}
	all := func(string, string) (bool, error) { return true, nil }
	if !testing.RunTests(all, []testing.InternalTest{test}) {
		b.Fatal("the test in the bubble failed")
	}
}

// pollFor sends a message that is due after a while, and polls until it comes.
func pollFor(t *testing.T, wait time.Duration, client func(*reprisetest.Queue) reprise.Client) (polls int) {
	q := reprisetest.NewQueue(t, map[string]string{"MessageRetentionPeriod": "1209600"})
	c := client(q)
	start := time.Now()
	for time.Since(start) < wait {
		out, err := c.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
			QueueUrl: aws.String(q.URL()), MaxNumberOfMessages: 10, WaitTimeSeconds: 20,
		})
		if err != nil || len(out.Messages) != 0 {
			t.Fatalf("an idle poll returned %v, %v", out, err)
		}
		polls++
	}
	return polls
}
