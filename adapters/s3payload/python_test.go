package s3payload_test

import (
	"bytes"
	"context"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/s3payload"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// preamble is the beginning of each Python program: AWS's library in front of boto3.
const preamble = `
import os, boto3, sqs_extended_client
sqs = boto3.client("sqs")
sqs.large_payload_support = "payloads"
sqs.delete_payload_from_s3 = True
url = os.environ["QUEUE"]
payload = "größer 🚀 " * 50_000
`

// fromPython sends messages by AWS's library: the present format and the legacy one, alone and in a
// batch, with a key of its own, and a small message.
const fromPython = preamble + `
attributes = {"tenant": {"DataType": "String", "StringValue": "acme"}}
sqs.send_message(QueueUrl=url, MessageBody=payload + "1", MessageAttributes=dict(attributes))
sqs.use_legacy_attribute = True
sqs.send_message(QueueUrl=url, MessageBody=payload + "2", MessageAttributes=dict(attributes))
sqs.use_legacy_attribute = False
sqs.send_message_batch(QueueUrl=url, Entries=[
    {"Id": "a", "MessageBody": payload + "3", "MessageAttributes": dict(attributes)},
    {"Id": "b", "MessageBody": "small", "MessageAttributes": dict(attributes)}])
sqs.always_through_s3 = True
sqs.send_message(QueueUrl=url, MessageBody="small, in S3", MessageAttributes=dict(attributes, S3Key={"DataType": "String", "StringValue": "a key/of its own"}))
`

// toPython receives everything, prints the messages, and deletes them.
const toPython = preamble + `
got = []
while True:
    messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], WaitTimeSeconds=4).get("Messages", [])
    if not messages:
        break
    for m in messages:
        body = m["Body"].replace(payload, "payload ")
        got.append("%s %s %s" % (body, m["MessageAttributes"]["tenant"]["StringValue"], len(m["MessageAttributes"])))
        sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=m["ReceiptHandle"], VisibilityTimeout=60)
        sqs.delete_message(QueueUrl=url, ReceiptHandle=m["ReceiptHandle"])
print("\n".join(sorted(got)))
`

// python runs a program against the servers and returns its output.
func python(t *testing.T, q *reprisetest.Queue, s3URL, program string) string {
	t.Helper()
	name, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("skipped: python3 is not installed")
	}
	if out, err := exec.CommandContext(t.Context(), name, "-c", "import boto3.session, sqs_extended_client").CombinedOutput(); err != nil {
		t.Skipf("skipped: AWS's extended client (amazon-sqs-extended-client) is not installed for python3: %s", lastLine(out))
	}
	sqs := httptest.NewServer(q.Server())
	defer sqs.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, "-c", program)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "QUEUE="+sqs.URL+"/000000000000/"+q.Name(), "PYTHONIOENCODING=utf-8",
		"AWS_ENDPOINT_URL_SQS="+sqs.URL, "AWS_ENDPOINT_URL_S3="+s3URL, "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1",
		"AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=any")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("the program failed: %v\n%s%s", err, stdout.String(), stderr.String())
	}
	return strings.TrimSpace(stdout.String())
}

func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return lines[len(lines)-1]
}

var pythonPayload = strings.Repeat("größer 🚀 ", 50_000)

// TestFromPython: messages that AWS's library for Python has sent are read, and their objects are
// removed, except for an object in a bucket without a prefix whose name its sender chose.
func TestFromPython(t *testing.T) {
	client, url := newS3(t, "payloads")
	q := reprisetest.NewQueue(t, nil)
	python(t, q, url, fromPython)
	if n := len(objects(t, client, "payloads")); n != 4 {
		t.Fatalf("the library has written %d objects, want 4", n)
	}
	p := newPayloads(t, client, func(c *s3payload.Config) { c.Prefix = "" })
	got := make(chan string, 10)
	c := q.Consume(p.Fetch(reprise.HandlerFunc(func(_ context.Context, m *reprise.Message) error {
		delete(m.Attributes, "S3Key") // the library sends that, too
		if len(m.Attributes) != 1 || *m.Attributes["tenant"].StringValue != "acme" {
			t.Errorf("the attributes are %v", m.Attributes)
		}
		got <- strings.Replace(m.Body, pythonPayload, "payload ", 1)
		return nil
	})), reprise.Config{StopBudget: 4 * time.Second, AfterDelete: p.Remove})
	q.WaitEmpty(time.Minute)
	c.Stop()
	close(got)
	bodies := make(map[string]bool)
	for body := range got {
		bodies[body] = true
	}
	if diff := cmp.Diff(map[string]bool{"payload 1": true, "payload 2": true, "payload 3": true, "small": true, "small, in S3": true}, bodies); diff != "" {
		t.Errorf("arrived (-want +got):\n%s", diff)
	}
	if left := objects(t, client, "payloads"); len(left) != 1 || p.Stats() != (s3payload.Stats{Fetched: 4, Removed: 3, NotRemoved: 1}) {
		t.Errorf("%d objects left, %+v", len(left), p.Stats())
	}
}

// TestToPython: messages sent by this package are read by AWS's library for Python,
// which removes their objects; also after they were retried by a copy.
func TestToPython(t *testing.T) {
	client, url := newS3(t, "payloads")
	q := reprisetest.NewQueue(t, nil)
	p := newPayloads(t, client, func(c *s3payload.Config) { c.Threshold = 0 })
	var messages []reprise.Outgoing
	for _, n := range []string{"1", "2"} {
		messages = append(messages, reprise.Outgoing{Body: pythonPayload + n})
	}
	messages = append(messages, reprise.Outgoing{Body: "small"})
	for i := range messages {
		messages[i].Attributes = map[string]types.MessageAttributeValue{"tenant": text("acme")}
	}
	if _, err := p.Send(t.Context(), newSender(t, q), messages...); err != nil {
		t.Fatal(err)
	}
	c := q.Consume(p.Fetch(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { return reprise.RetryAfter(time.Second, errWarehouse) })), reprise.Config{StopBudget: 4 * time.Second, Via: reprise.ViaRequeue, AfterDelete: p.Remove})
	for !copied(q.Messages()) {
		time.Sleep(10 * time.Millisecond)
	}
	c.Stop()
	if n := len(objects(t, client, "payloads")); n != 2 {
		t.Errorf("%d objects, want 2", n)
	}
	got := python(t, q, url, toPython)
	if diff := cmp.Diff("payload 1 acme 2\npayload 2 acme 2\nsmall acme 2", got); diff != "" {
		t.Errorf("the program printed (-want +got):\n%s", diff)
	}
	if left, messages := objects(t, client, "payloads"), q.Messages(); len(left) > 0 || len(messages) > 0 {
		t.Errorf("%d objects and %d messages are left", len(left), len(messages))
	}
}

// copied reports whether all messages are copies with a history.
func copied(messages []sqsserver.MessageInfo) bool {
	for _, m := range messages {
		if !slices.ContainsFunc(m.Attributes, func(a sqsserver.MessageAttribute) bool { return a.Name == reprise.HistoryAttribute }) {
			return false
		}
	}
	return len(messages) == 3
}
