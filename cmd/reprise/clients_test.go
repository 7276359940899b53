//go:build unix

package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAWSCLI: the AWS CLI works with no setting but the endpoint. (It needs any credentials, or
// --no-sign-request.)
func TestAWSCLI(t *testing.T) {
	t.Parallel()
	installed(t, "aws")
	runClient(t, "sh", `set -eu
		sqs() { aws --endpoint-url "$ENDPOINT" --output text sqs "$@"; }
		url=$(sqs create-queue --queue-name cli --attributes VisibilityTimeout=30 --query QueueUrl)
		echo "created $url"
		sqs send-message --queue-url "$url" --message-body '{"text":"שלום 🚀"}' \
			--message-attributes '{"tenant":{"DataType":"String","StringValue":"ж"}}' --query MD5OfMessageBody
		sqs send-message-batch --queue-url "$url" --entries Id=a,MessageBody=two --query 'Successful[].Id'
		sqs get-queue-attributes --queue-url "$url" --attribute-names VisibilityTimeout --query Attributes.VisibilityTimeout
		handle=$(sqs receive-message --queue-url "$url" --message-attribute-names All --wait-time-seconds 5 --query 'Messages[0].ReceiptHandle')
		sqs change-message-visibility --queue-url "$url" --receipt-handle "$handle" --visibility-timeout 0
		sqs receive-message --queue-url "$url" --max-number-of-messages 10 --visibility-timeout 60 \
			--message-attribute-names All --attribute-names All --wait-time-seconds 5 --query 'sort_by(Messages,&Body)[].[Body,MessageAttributes.tenant.StringValue,Attributes.ApproximateReceiveCount,ReceiptHandle]' >received
		cut -f1-3 received
		cut -f4 received | while read -r handle; do sqs delete-message --queue-url "$url" --receipt-handle "$handle"; done
		sqs get-queue-attributes --queue-url "$url" --attribute-names All --query 'Attributes.[ApproximateNumberOfMessages,ApproximateNumberOfMessagesNotVisible]'
		sqs list-queues --query QueueUrls
		sqs receive-message --queue-url "$ENDPOINT/000000000000/absent" 2>&1 | grep -o NonExistentQueue`,
		"created $ENDPOINT/000000000000/cli",
		"2705a9bbb3042fa08f96970ea503f6a8",
		"a",
		"30",
		"two\tNone\t1",
		"{\"text\":\"שלום 🚀\"}\tж\t2",
		"0\t0",
		"$ENDPOINT/000000000000/cli",
		"NonExistentQueue",
	)
}

// TestBoto3: so does the SDK for Python.
func TestBoto3(t *testing.T) {
	t.Parallel()
	runClient(t, boto3(t), `
import os, boto3
endpoint = os.environ["ENDPOINT"]
sqs = boto3.client("sqs", endpoint_url=endpoint)
url = sqs.create_queue(QueueName="boto", Attributes={"VisibilityTimeout": "30"})["QueueUrl"]
print("created", url)
sqs.send_message(QueueUrl=url, MessageBody="שלום 🚀", MessageAttributes={
    "tenant": {"DataType": "String", "StringValue": "ж"}, "raw": {"DataType": "Binary", "BinaryValue": b"\x00\xff"}})
print(len(sqs.send_message_batch(QueueUrl=url, Entries=[{"Id": str(i), "MessageBody": "m%d" % i} for i in range(9)])["Successful"]))
got = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"], AttributeNames=["All"], WaitTimeSeconds=5)["Messages"]
print(len(got), sorted(m["Body"] for m in got)[-1], sorted(got[0]["MessageAttributes"]), got[0]["MessageAttributes"]["raw"]["BinaryValue"])
sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=got[0]["ReceiptHandle"], VisibilityTimeout=0)
again = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["ApproximateReceiveCount"], WaitTimeSeconds=5)["Messages"]
print(len(again), again[0]["Body"], again[0]["Attributes"]["ApproximateReceiveCount"])
sqs.delete_message(QueueUrl=url, ReceiptHandle=again[0]["ReceiptHandle"])
failed = sqs.delete_message_batch(QueueUrl=url, Entries=[{"Id": str(i), "ReceiptHandle": m["ReceiptHandle"]} for i, m in enumerate(got[1:])]).get("Failed", [])
print("failed", failed)
a = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
print(a["ApproximateNumberOfMessages"], a["ApproximateNumberOfMessagesNotVisible"])
try:
    sqs.get_queue_url(QueueName="absent")
except sqs.exceptions.QueueDoesNotExist as e:
    print(e.response["Error"]["Code"])
try:
    sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=11)
except Exception as e:
    print(type(e).__name__)`,
		"created $ENDPOINT/000000000000/boto",
		"9",
		`10 שלום 🚀 ['raw', 'tenant'] b'\x00\xff'`,
		"1 שלום 🚀 2",
		"failed []",
		"0 0",
		"AWS.SimpleQueueService.NonExistentQueue",
		"ClientError",
	)
}

// boto3 returns a Python with boto3.
func boto3(t *testing.T) string {
	t.Helper()
	python := installed(t, "python3")
	if err := exec.Command(python, "-c", "import boto3").Run(); err != nil {
		t.Skip("skipped: boto3 is not installed for python3")
	}
	return python
}

// runClient runs a client against a server of its own and compares the lines that
// it prints. $ENDPOINT in a wanted line is the server's.
func runClient(t *testing.T, program, script string, want ...string) {
	t.Helper()
	_, endpoint := serve(t)
	cmd := exec.Command(program, "-c", script)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "ENDPOINT="+endpoint, "HOME="+cmd.Dir, "PYTHONIOENCODING=utf-8",
		"AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=thing", "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1", "AWS_PAGER=")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("the client failed: %v\n%s%s", err, stdout.String(), stderr.String())
	}
	got := strings.Split(strings.TrimSpace(strings.ReplaceAll(stdout.String(), endpoint, "$ENDPOINT")), "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the client printed (-want +got):\n%s", diff)
	}
}
