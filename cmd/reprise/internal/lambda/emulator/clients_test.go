//go:build unix

package emulator_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/emulator"
)

// TestAWSCLI: the AWS command line interface invokes, with no setting but the
// endpoint.
func TestAWSCLI(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("aws"); err != nil {
		t.Skip("skipped: the AWS CLI (aws) is not installed")
	}
	runClient(t, "sh", `set -eu
		lambda() { aws --endpoint-url "$ENDPOINT" --output text lambda "$@"; }
		lambda invoke --function-name f --payload '{"do":"echo","text":"שלום 🚀"}' $RAW out --query '[StatusCode,ExecutedVersion,FunctionError]'
		cat out; echo
		lambda invoke --function-name arn:aws:lambda:us-east-1:000000000000:function:f --payload '{"do":"fail","text":"no"}' $RAW out --query '[StatusCode,FunctionError]'
		cat out; echo
		lambda invoke --function-name f --invocation-type Event --payload '{"do":"echo"}' $RAW out --query StatusCode
		lambda invoke --function-name f --log-type Tail --payload '{"do":"print","text":"hello"}' $RAW out --query LogResult | base64 -d | grep hello
		lambda invoke --function-name absent out 2>&1 | grep -o 'ResourceNotFoundException.*'`,
		"200\t$LATEST\tNone",
		`{"do":"echo","text":"שלום 🚀"}`,
		"200\tUnhandled",
		`{"errorMessage":"no","errorType":"refusal"}`,
		"202",
		"hello",
		"ResourceNotFoundException) when calling the Invoke operation: Function not found: arn:aws:lambda:us-east-1:000000000000:function:absent",
	)
}

// TestBoto3: so does the SDK for Python, which has a type for every error.
func TestBoto3(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("skipped: python3 is not installed")
	}
	if err := exec.Command(python, "-c", "import boto3").Run(); err != nil {
		t.Skip("skipped: boto3 is not installed for python3")
	}
	runClient(t, python, `
import os, boto3, botocore.config
client = boto3.client("lambda", endpoint_url=os.environ["ENDPOINT"], config=botocore.config.Config(retries={"max_attempts": 0}))
r = client.invoke(FunctionName="f", Payload='{"do":"echo","text":"ж"}')
print(r["StatusCode"], r["ExecutedVersion"], "FunctionError" in r, r["Payload"].read().decode())
r = client.invoke(FunctionName="f:$LATEST", Payload=b'{"do":"exit"}')
print(r["StatusCode"], r["FunctionError"], "Runtime.ExitError" in r["Payload"].read().decode())
print(client.invoke(FunctionName="f", InvocationType="Event")["StatusCode"], client.invoke(FunctionName="f", InvocationType="DryRun")["StatusCode"])
client.get_waiter("function_active_v2").wait(FunctionName="f")
client.get_waiter("function_updated_v2").wait(FunctionName="f")
try:
    client.invoke(FunctionName="absent")
except client.exceptions.ResourceNotFoundException as e:
    print(e.response["Error"]["Message"], e.response["Type"])
try:
    client.invoke(FunctionName="none")
except client.exceptions.TooManyRequestsException as e:
    print(e.response["Error"]["Message"], e.response["Reason"])
try:
    client.invoke(FunctionName="f", InvocationType="Event", Payload='"' + "x" * (1 << 20) + '"')
except client.exceptions.RequestTooLargeException as e:
    print(e.response["ResponseMetadata"]["HTTPStatusCode"])`,
		`200 $LATEST False {"do":"echo","text":"ж"}`,
		"200 Unhandled True",
		"202 204",
		"Function not found: arn:aws:lambda:us-east-1:000000000000:function:absent User",
		"Rate Exceeded. ReservedFunctionConcurrentInvocationLimitExceeded",
		"413",
	)
}

// runClient runs a client against a Lambda of its own and compares the lines that it
// prints.
func runClient(t *testing.T, program, script string, want ...string) {
	t.Helper()
	f, none := self(t, "f"), self(t, "none")
	none.Concurrency = -1
	functions := []emulator.Function{f}
	if program != "sh" {
		functions = append(functions, none)
	}
	l, _ := open(t, emulator.Config{Functions: functions})
	cmd := exec.Command(program, "-c", script)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "ENDPOINT="+serve(t, l), "HOME="+cmd.Dir, "PYTHONIOENCODING=utf-8", "RAW="+rawPayloads(),
		"AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=thing", "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1", "AWS_PAGER=")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("the client failed: %v\n%s%s", err, stdout.String(), stderr.String())
	}
	got := strings.Split(strings.TrimSpace(stdout.String()), "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the client printed (-want +got):\n%s", diff)
	}
}

// rawPayloads is what makes version 2 of the CLI take payloads as they are, as
// version 1 does.
func rawPayloads() string {
	version, err := exec.Command("aws", "--version").Output()
	if err == nil && strings.HasPrefix(string(version), "aws-cli/1.") {
		return ""
	}
	return "--cli-binary-format raw-in-base64-out"
}
