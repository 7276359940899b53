//go:build unix

package main_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// TestToQueue: messages move to another queue with their attributes, transformed by a
// command; one of 1 MiB too.
func TestToQueue(t *testing.T) {
	t.Parallel()
	needShell(t)
	file := written(t, "reprise.yaml", `
addr: 127.0.0.1:0
memory: true
queues:
  - {name: small, consume: {to-queue: all, transform: "tr a-z A-Z"}}
  - {name: large, consume: {to-queue: all}}
  - {name: all}
`)
	p := start(t, "up", "--config", file)
	endpoint := p.await("SQS endpoint")
	p.await("deliver to    queue all")
	_, err := client(endpoint).SendMessage(t.Context(), &sqs.SendMessageInput{
		QueueUrl: queueURL(endpoint, "small"), MessageBody: aws.String("hello"),
		MessageAttributes: map[string]types.MessageAttributeValue{"bytes": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 255}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if m := receiveOne(t, endpoint, "all"); *m.Body != "HELLO" || string(m.MessageAttributes["bytes"].BinaryValue) != "\x00\xff" {
		t.Errorf("moved %q with %v", *m.Body, m.MessageAttributes)
	}
	large := strings.Repeat("x", 1<<20)
	if _, err := client(endpoint).SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: queueURL(endpoint, "large"), MessageBody: &large}); err != nil {
		t.Fatal(err)
	}
	if m := receiveOne(t, endpoint, "all"); *m.Body != large {
		t.Errorf("moved a body of %d bytes", len(*m.Body))
	}
	p.signal(syscall.SIGTERM)
	if code, output := p.wait(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, output)
	}
	if got := reprise(t, "", "up", "--memory", "--addr", "127.0.0.1:0", "--queue", "q", "--to-queue", "q"); got.code != 2 || !strings.Contains(got.stderr, "round for ever") {
		t.Errorf("a queue that moves to itself: %+v", got)
	}
}

// receiveOne returns the next message of a queue, and deletes it.
func receiveOne(t *testing.T, endpoint, queue string) types.Message {
	t.Helper()
	out, err := client(endpoint).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queueURL(endpoint, queue), WaitTimeSeconds: 20, MessageAttributeNames: []string{"All"}})
	if err != nil || len(out.Messages) != 1 {
		t.Fatalf("receiving from %s: %v, %v; want a message", queue, out, err)
	}
	if _, err := client(endpoint).DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: queueURL(endpoint, queue), ReceiptHandle: out.Messages[0].ReceiptHandle}); err != nil {
		t.Fatal(err)
	}
	return out.Messages[0]
}

// TestLambdaTarget: the endpoint and the region of the AWS settings lead to the function,
// whose error of a type that is named dead-letters.
func TestLambdaTarget(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var event struct {
			Records []struct{ Body, EventSourceARN string }
		}
		if body, _ := io.ReadAll(r.Body); json.Unmarshal(body, &event) != nil || len(event.Records) != 1 || r.URL.Path != "/2015-03-31/functions/ship/invocations" ||
			event.Records[0].EventSourceARN != "arn:aws:sqs:us-east-1:000000000000:orders" {
			t.Errorf("%s %s", r.URL, body)
		}
		if event.Records[0].Body == "bad" {
			w.Header().Set("X-Amz-Function-Error", "Unhandled")
			io.WriteString(w, `{"errorType":"BadOrder","errorMessage":"no such article"}`)
			return
		}
		io.WriteString(w, "null")
	}))
	defer api.Close()
	endpoint := orders(t)
	sendAll(t, endpoint, "orders", "good", "bad")
	p := startIn(t, environment("AWS_ENDPOINT_URL_SQS="+endpoint, "AWS_ENDPOINT_URL_LAMBDA="+api.URL),
		"run", "--queue", "orders", "--admin-addr", "none", "--lambda", "ship", "--permanent-error", "BadOrder")
	p.await("deliver to    function ship")
	body, story := deadLetter(t, endpoint, "orders-dead")
	if body != "bad" || story.Reason != "permanent" || !strings.Contains(story.Error, "BadOrder: no such article") {
		t.Errorf("dead letter %q, %+v", body, story)
	}
	p.signal(syscall.SIGTERM)
	if code, output := p.wait(); code != 0 || !strings.Contains(output, "1 deleted") {
		t.Errorf("exit code %d:\n%s", code, output)
	}
}

// TestWorkers: workers in Python, Node and shell work messages off, each with one process for
// all of its messages, and end with the program.
func TestWorkers(t *testing.T) {
	t.Parallel()
	workers := map[string]string{
		"python3": "python3 " + written(t, "worker.py", `
import json, os, sys
for line in sys.stdin:
    m = json.loads(line)
    print("message", m["body"], "in", os.getpid(), file=sys.stderr, flush=True)
    print(json.dumps({"id": m["id"]}), flush=True)
`),
		"node": "node " + written(t, "worker.js", `
const lines = require('readline').createInterface({input: process.stdin});
lines.on('line', (line) => {
  const m = JSON.parse(line);
  console.error('message', m.body, 'in', process.pid);
  console.log(JSON.stringify({id: m.id}));
});
`),
		"sed": `while read -r line; do
			echo "message $(echo "$line" | sed 's/.*"body":"\([^"]*\)".*/\1/') in $$" >&2
			echo "$line" | sed 's/^{"id":"\([^"]*\)".*/{"id":"\1"}/'
		done`,
	}
	for program, command := range workers {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			installed(t, program)
			p, endpoint := up(t, "--worker", command, "--concurrency", "1")
			sendAll(t, endpoint, "jobs", "one", "two", "three")
			_, first, _ := strings.Cut(p.await("message "), " in ")
			for range 2 {
				if _, next, _ := strings.Cut(p.await("message "), " in "); next != first {
					t.Errorf("a message was given to process %s, and the one before to %s", next, first)
				}
			}
			awaitHealth(t, endpoint, func(h health) bool { return h.Consumer.Deleted == 3 })
			p.signal(syscall.SIGTERM)
			if code, output := p.wait(); code != 0 || strings.Contains(output, "left behind") {
				t.Errorf("exit code %d:\n%s", code, output)
			}
		})
	}
}

// TestPayloads: a body that its sender keeps in S3 is fetched for the target, and removed
// when the message has been deleted.
func TestPayloads(t *testing.T) {
	t.Parallel()
	needShell(t)
	removed := make(chan string, 10)
	s3 := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet:
			io.WriteString(w, "a large body")
		case http.MethodDelete:
			w.WriteHeader(http.StatusNoContent)
			removed <- r.URL.Path
		}
	}))
	defer s3.Close()
	p := startIn(t, environment("AWS_ENDPOINT_URL_S3="+s3.URL),
		"up", "--memory", "--addr", "127.0.0.1:0", "--payloads", "s3://bucket/orders/", "--exec", `test "$(cat)" = "a large body"`)
	endpoint := p.await("SQS endpoint")
	_, err := client(endpoint).SendMessage(t.Context(), &sqs.SendMessageInput{
		QueueUrl:          queueURL(endpoint, "jobs"),
		MessageBody:       aws.String(`["software.amazon.payloadoffloading.PayloadS3Pointer",{"s3BucketName":"bucket","s3Key":"orders/1"}]`),
		MessageAttributes: map[string]types.MessageAttributeValue{"ExtendedPayloadSize": {DataType: aws.String("Number"), StringValue: aws.String("12")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	awaitHealth(t, endpoint, func(h health) bool { return h.Consumer.Deleted == 1 })
	if path := <-removed; path != "/bucket/orders/1" {
		t.Errorf("removed %s", path)
	}
	p.signal(syscall.SIGTERM)
	if code, output := p.wait(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, output)
	}
}
