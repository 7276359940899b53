package dynamostore_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
)

// functionTime is the time that the function has left, as its context says.
const functionTime = 3 * time.Second

// functionSource is a Lambda function with Powertools. It is invoked for each line that it reads,
// and prints the result. An exception that ends the process passes through Powertools and leaves
// the same record as a function that is killed.
const functionSource = `
import json, os, sys, boto3
from aws_lambda_powertools.utilities.idempotency import DynamoDBPersistenceLayer, IdempotencyConfig, idempotent
endpoint, table, left = sys.argv[1:]
client = boto3.client("dynamodb", endpoint_url=endpoint)
class Context:
    def get_remaining_time_in_millis(self):
        return int(left)
@idempotent(
    persistence_store=DynamoDBPersistenceLayer(table_name=table, boto3_client=client),
    config=IdempotencyConfig(event_key_jmespath="order", payload_validation_jmespath="amount"),
    key_prefix="orders",
)
def function(event, context):
    said.append("ran")
    if end == "killed":
        raise SystemExit
    if end == "fails":
        raise RuntimeError
    return {"by": "Python"}
for line in sys.stdin:
    said = []
    body, end = json.loads(line)
    try:
        said.append("returned " + json.dumps(function(json.loads(body), Context())))
    except BaseException as e:
        said.append("raised " + type(e).__name__)
    print(*said, sep=", ", flush=True)
`

// function is a process with the function.
type function struct {
	in     io.Writer
	out    *bufio.Reader
	stderr bytes.Buffer
}

// startFunction starts a function on a table, or skips the test.
func startFunction(t *testing.T, table string) *function {
	t.Helper()
	if absent := missing("aws_lambda_powertools.utilities.idempotency"); absent != "" {
		t.Skip("skipped: " + absent)
	}
	f := &function{}
	cmd := exec.Command("python3", "-c", functionSource, endpoint, table, strconv.FormatInt(functionTime.Milliseconds(), 10))
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=thing", "AWS_DEFAULT_REGION=us-east-1")
	cmd.Stderr = &f.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f.in, f.out = in, bufio.NewReader(out)
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Errorf("the function ended with %v\n%s", err, f.stderr.String())
		}
	})
	return f
}

// says invokes the function with m and lets it end as given. It fails the test unless the function
// prints the expected text.
func (f *function) says(t *testing.T, m *reprise.Message, end, want string) {
	t.Helper()
	line, _ := json.Marshal([]string{m.Body, end}) // strings can be marshalled
	if _, err := f.in.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
	got, err := f.out.ReadString('\n')
	if err != nil || strings.TrimSpace(got) != want {
		t.Fatalf("the function %s, %v; want %s", got, err, want)
	}
}
