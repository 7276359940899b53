package admin

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// BenchmarkDead groups dead letters with bodies of 1 KiB, whose errors have numbers of their own.
func BenchmarkDead(b *testing.B) {
	const letters = 20_000
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
		if dead, err := a.dead(r); err != nil || dead.Messages != letters || len(dead.Groups) != 4 {
			b.Fatal(dead, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/letters, "ns/letter")
}
