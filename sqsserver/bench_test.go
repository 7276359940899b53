package sqsserver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/sqsserver"
)

const benchURL = "http://sqs.us-east-1.localhost/000000000000/q"

func benchServer(b *testing.B) *sqsserver.Server {
	server := sqsserver.New(sqsserver.Config{NoCooldown: true})
	b.Cleanup(func() { server.Close() })
	if _, err := server.CreateQueue(b.Context(), &sqsserver.CreateQueueInput{QueueName: "q"}); err != nil {
		b.Fatal(err)
	}
	return server
}

// benchBody is 1 KiB of JSON-like text with quotes to escape.
var benchBody = strings.Repeat(`{"key":"value"} `, 64)

func benchBatch() *sqsserver.SendMessageBatchInput {
	in := &sqsserver.SendMessageBatchInput{QueueUrl: benchURL}
	for i := range 10 {
		in.Entries = append(in.Entries, sqsserver.SendMessageBatchRequestEntry{
			Id: fmt.Sprint(i), SendMessageEntry: sqsserver.SendMessageEntry{MessageBody: benchBody}})
	}
	return in
}

// The life of ten messages in three direct calls: send, receive, delete.
func BenchmarkDirect(b *testing.B) {
	server := benchServer(b)
	send := benchBatch()
	receive := &sqsserver.ReceiveMessageInput{QueueUrl: benchURL, MaxNumberOfMessages: sqsserver.Int(10), MessageSystemAttributeNames: []string{"All"}}
	remove := &sqsserver.DeleteMessageBatchInput{QueueUrl: benchURL, Entries: make([]sqsserver.DeleteMessageBatchRequestEntry, 10)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := server.SendMessageBatch(b.Context(), send); err != nil {
			b.Fatal(err)
		}
		out, err := server.ReceiveMessage(b.Context(), receive)
		if err != nil || len(out.Messages) != 10 {
			b.Fatalf("received %v, %v", out, err)
		}
		for i := range out.Messages {
			remove.Entries[i] = sqsserver.DeleteMessageBatchRequestEntry{Id: send.Entries[i].Id, ReceiptHandle: out.Messages[i].ReceiptHandle}
		}
		if _, err := server.DeleteMessageBatch(b.Context(), remove); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(10*b.N), "ns/message")
}

// discard is a ResponseWriter that keeps only the last body, for a check.
type discard struct {
	header http.Header
	body   []byte
}

func (w *discard) Header() http.Header { return w.header }
func (w *discard) WriteHeader(int)     {}
func (w *discard) Write(data []byte) (int, error) {
	w.body = append(w.body, data...)
	return len(data), nil
}

// The handler for ten messages of 1 KiB, without the network.
func BenchmarkHandler(b *testing.B) {
	server := benchServer(b)
	serve := func(action string, body []byte) []byte {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodPost, benchURL, bytes.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		r.Header["X-Amz-Target"] = []string{"AmazonSQS." + action}
		w := &discard{header: make(http.Header)}
		server.ServeHTTP(w, r)
		if problem := w.header.Get("X-Amzn-Query-Error"); problem != "" {
			b.Fatalf("%s: %s", action, problem)
		}
		return w.body
	}
	entries := make([]map[string]string, 10)
	for i := range entries {
		entries[i] = map[string]string{"Id": fmt.Sprint(i), "MessageBody": benchBody}
	}
	send, err := json.Marshal(map[string]any{"QueueUrl": benchURL, "Entries": entries})
	if err != nil {
		b.Fatal(err)
	}
	receive := []byte(`{"QueueUrl":"` + benchURL + `","MaxNumberOfMessages":10,"VisibilityTimeout":0,"MessageSystemAttributeNames":["All"]}`)

	purge := []byte(`{"QueueUrl":"` + benchURL + `"}`)

	b.Run("SendMessageBatch", func(b *testing.B) {
		b.ReportAllocs()
		for n := 0; b.Loop(); n++ {
			serve("SendMessageBatch", send)
			if n%1000 == 0 { // so that the queue does not outgrow the memory
				serve("PurgeQueue", purge)
			}
		}
	})
	b.Run("ReceiveMessage", func(b *testing.B) {
		serve("SendMessageBatch", send)
		b.ReportAllocs()
		for b.Loop() {
			serve("ReceiveMessage", receive)
		}
	})
}
