//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
)

// lambdaStack has a function of each kind, a queue that is mapped to one, and one
// for failures.
const lambdaStack = `Transform: AWS::Serverless-2016-10-31
Parameters:
  Greeting: {Type: String}
Resources:
  Gopher:
    Type: AWS::Serverless::Function
    Metadata: {BuildMethod: go1.x}
    Properties: {CodeUri: $FLAKY, Handler: bootstrap, Runtime: provided.al2023, Architectures: [$ARCHITECTURE], Timeout: 5}
  Python:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: python
      Handler: app.handler
      Runtime: python$PYTHON
      Environment: {Variables: {GREETING: !Ref Greeting, QUEUE_URL: !Ref Work}}
      EventInvokeConfig:
        MaximumRetryAttempts: 1
        DestinationConfig: {OnFailure: {Type: SQS, Destination: !GetAtt Failed.Arn}}
      Events:
        Work:
          Type: SQS
          Properties: {Queue: !GetAtt Work.Arn, FunctionResponseTypes: [ReportBatchItemFailures]}
  Work:
    Type: AWS::SQS::Queue
    Properties:
      VisibilityTimeout: 3
      RedrivePolicy: {deadLetterTargetArn: !GetAtt Dead.Arn, maxReceiveCount: 1}
  Dead: {Type: AWS::SQS::Queue}
  Failed: {Type: AWS::SQS::Queue}
  Topic: {Type: AWS::SNS::Topic}
`

const lambdaPython = `import os

def handler(event, context):
    if "Records" in event:
        for record in event["Records"]:
            print("got", record["body"])
        return {"batchItemFailures": [{"itemIdentifier": r["messageId"]} for r in event["Records"] if r["body"] == "bad"]}
    if event.get("fail"):
        raise ValueError("as asked")
    return {"greeting": os.environ["GREETING"], "queue": os.environ["QUEUE_URL"]}
`

// lambdaEnvironment has the variables for building Go, and no AWS settings. Built files go to a
// folder of the test, since the program may be killed before it can remove them.
func lambdaEnvironment(t *testing.T) []string {
	t.Helper()
	env := environment("HOME="+os.Getenv("HOME"), "TMPDIR="+t.TempDir())
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY", "GOTOOLCHAIN").Output()
	if err != nil {
		t.Fatal(err)
	}
	values := strings.Split(string(out), "\n")
	for i, name := range []string{"GOCACHE", "GOMODCACHE", "GOFLAGS", "GOPROXY", "GOTOOLCHAIN"} {
		env = append(env, name+"="+values[i])
	}
	return env
}

// lambdaFolder writes a template and its Python function, and returns the template's
// path.
func lambdaFolder(t *testing.T, template string) string {
	t.Helper()
	needPython(t)
	flaky, err := filepath.Abs("functions/flaky")
	if err != nil {
		t.Fatal(err)
	}
	version, err := exec.Command("python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").Output()
	if err != nil {
		t.Fatal(err)
	}
	architecture := "x86_64"
	if out, err := exec.Command("go", "env", "GOARCH").Output(); err == nil && strings.TrimSpace(string(out)) == "arm64" {
		architecture = "arm64"
	}
	template = strings.NewReplacer("$FLAKY", flaky, "$PYTHON", strings.TrimSpace(string(version)), "$ARCHITECTURE", architecture).Replace(template)
	dir := t.TempDir()
	for name, text := range map[string]string{"template.yaml": template, "python/app.py": lambdaPython} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "template.yaml")
}

func needPython(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("skipped: python3 is not installed")
	}
}

// lambdaUp runs a template until the test ends, and returns it with its endpoint.
func lambdaUp(t *testing.T, template string, args ...string) (p *process, endpoint string) {
	t.Helper()
	p = startIn(t, lambdaEnvironment(t), append([]string{"lambda", "up", template, "--allow-outside", "--addr", "127.0.0.1:0", "--param", "Greeting=hello"}, args...)...)
	endpoint = p.await("SQS endpoint")
	t.Logf("%s: ready %s", t.Name(), p.await("ready"))
	return p, endpoint
}

// TestLambdaUp: functions in Go and Python are invoked by the SDK, by this program
// and by a queue; a failure that is asynchronous is retried and ends in the queue for
// failures; and everything stops gently.
func TestLambdaUp(t *testing.T) {
	t.Parallel()
	p, endpoint := lambdaUp(t, lambdaFolder(t, lambdaStack), "--time-scale", "600")
	if text := p.output(); !strings.Contains(text, "Topic: AWS::SNS::Topic is not run here") {
		t.Errorf("nothing is said of the topic:\n%s", text)
	}
	client := lambda.New(lambda.Options{Region: "us-east-1", BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider("a", "b", "")})
	out, err := client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("Gopher"), Payload: []byte(`{"id":"o-1"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if out.FunctionError != nil || string(out.Payload) != `{"id":"o-1","attempt":1}` {
		t.Errorf("the Go function answers %s, %v", out.Payload, aws.ToString(out.FunctionError))
	}

	got := reprise(t, "", "lambda", "invoke", "Python", "--endpoint", endpoint)
	want := result{0, fmt.Sprintf("{\"greeting\": \"hello\", \"queue\": \"%s/000000000000/Work\"}\n", endpoint), ""}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("lambda invoke (-want +got):\n%s", diff)
	}
	got = reprise(t, `{"fail": true}`, "lambda", "invoke", "Python", "-", "--endpoint", endpoint)
	if got.code != 3 || !strings.Contains(got.stdout, `"errorMessage": "as asked"`) || got.stderr != "reprise: function Python failed (Unhandled)\n" {
		t.Errorf("lambda invoke of what fails: %+v", got)
	}

	if got := reprise(t, "", "lambda", "send", "--endpoint", endpoint, "Work", "good", "bad"); got.code != 0 {
		t.Fatalf("lambda send: %+v", got)
	}
	p.await("Python  | got good")
	if bodies := receive(t, endpoint, "Dead"); !cmp.Equal(bodies, []string{"bad"}) {
		t.Errorf("the dead-letter queue has %q, want the one that the function named", bodies)
	}

	if got := reprise(t, "", "lambda", "invoke", "Python", "--event", `{"fail": true}`, "--endpoint", endpoint); got.code != 0 || !strings.HasPrefix(got.stdout, "accepted, request ") {
		t.Errorf("lambda invoke --event: %+v", got)
	}
	var record struct {
		RequestContext struct {
			Condition              string
			FunctionARN            string
			ApproximateInvokeCount int
		}
		RequestPayload  map[string]bool
		ResponsePayload struct{ ErrorMessage string }
	}
	if bodies := receive(t, endpoint, "Failed"); len(bodies) != 1 {
		t.Fatalf("the queue for failures has %q, want one record", bodies)
	} else if err := json.Unmarshal([]byte(bodies[0]), &record); err != nil {
		t.Fatal(err)
	}
	if c := record.RequestContext; c.Condition != "RetriesExhausted" || c.ApproximateInvokeCount != 2 ||
		c.FunctionARN != "arn:aws:lambda:us-east-1:000000000000:function:Python:$LATEST" ||
		!record.RequestPayload["fail"] || record.ResponsePayload.ErrorMessage != "as asked" {
		t.Errorf("the record of the failure is %+v", record)
	}

	p.signal(os.Interrupt)
	if code, output := p.wait(); code != 0 {
		t.Errorf("exit code %d after SIGINT:\n%s", code, output)
	}
}

// TestLambdaUpNode: a Node function is run, where there is Node.
func TestLambdaUpNode(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("skipped: node is not installed")
	}
	template := written(t, "template.yaml", `Parameters: {Greeting: {Type: String}}
Resources:
  Node:
    Type: AWS::Lambda::Function
    Properties:
      Code: {ZipFile: "exports.handler = async (event) => ({ said: process.env.GREETING + ', ' + event.name });"}
      Handler: index.handler
      Runtime: nodejs22.x
      Environment: {Variables: {GREETING: !Ref Greeting}}
`)
	_, endpoint := lambdaUp(t, template)
	got := reprise(t, "", "lambda", "invoke", "Node", `{"name": "Ann"}`, "--endpoint", endpoint)
	if want := (result{0, `{"said":"hello, Ann"}` + "\n", ""}); got != want {
		t.Errorf("lambda invoke = %+v, want %+v", got, want)
	}
}

// TestLambdaUpKeeps: with --data, messages are there after a restart, and queues have
// what the template says then.
func TestLambdaUpKeeps(t *testing.T) {
	t.Parallel()
	template := "Parameters: {Greeting: {Type: String}}\nResources:\n  Work: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: 30}}\n"
	file, data := written(t, "template.yaml", template), filepath.Join(t.TempDir(), "data")
	p, endpoint := lambdaUp(t, file, "--data", data)
	if got := reprise(t, "", "lambda", "send", "--endpoint", endpoint, "Work", "kept"); got.code != 0 {
		t.Fatalf("lambda send: %+v", got)
	}
	p.signal(os.Interrupt)
	if code, output := p.wait(); code != 0 {
		t.Fatalf("exit code %d after SIGINT:\n%s", code, output)
	}
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(template, "30", "77")), 0o600); err != nil {
		t.Fatal(err)
	}
	_, endpoint = lambdaUp(t, file, "--data", data)
	out, err := client(endpoint).GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: queueURL(endpoint, "Work"), AttributeNames: []types.QueueAttributeName{"VisibilityTimeout"}})
	if err != nil || out.Attributes["VisibilityTimeout"] != "77" {
		t.Errorf("the queue's attributes are %v, %v", out, err)
	}
	if bodies := receive(t, endpoint, "Work"); !cmp.Equal(bodies, []string{"kept"}) {
		t.Errorf("the queue has %q after a restart", bodies)
	}
}

// TestLambdaUpLoses: an asynchronous event that waits for its retry when everything
// stops is named, and the exit code says so.
func TestLambdaUpLoses(t *testing.T) {
	t.Parallel()
	p, endpoint := lambdaUp(t, lambdaFolder(t, lambdaStack))
	if got := reprise(t, "", "lambda", "invoke", "Python", "--event", `{"fail": true}`, "--endpoint", endpoint); got.code != 0 {
		t.Fatalf("lambda invoke --event: %+v", got)
	}
	p.await("the asynchronous event is invoked again in")
	p.signal(os.Interrupt)
	if code, output := p.wait(); code != 3 || !strings.Contains(output, "stopping the functions") {
		t.Errorf("exit code %d, want 3, after a stop with a retry to come:\n%s", code, output)
	}
}

// TestLambdaUpWatch: a function whose source changes is replaced without a restart; if the new
// source is broken the old function goes on.
func TestLambdaUpWatch(t *testing.T) {
	t.Parallel()
	template := lambdaFolder(t, lambdaStack)
	p, endpoint := lambdaUp(t, template, "--watch")
	source := filepath.Join(filepath.Dir(template), "python", "app.py")
	if err := os.WriteFile(source, []byte("def handler(event, context):\n    return 'anew'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.await("Python  | built again")
	if got := reprise(t, "", "lambda", "invoke", "Python", "--endpoint", endpoint); got.stdout != "\"anew\"\n" {
		t.Errorf("after a change the function answers %+v", got)
	}
	if err := os.Rename(filepath.Dir(source), filepath.Dir(source)+"-gone"); err != nil {
		t.Fatal(err)
	}
	p.await("Python  | not replaced, the build before keeps running: function Python: there is no folder")
	if err := os.Chtimes(template, time.Now(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	p.await("has changed: stop and start again")
}

// TestLambdaUpRefused: a template that cannot run here says why, by lines, and
// nothing is left.
func TestLambdaUpRefused(t *testing.T) {
	t.Parallel()
	template := written(t, "template.yaml", `Transform: AWS::Serverless-2016-10-31
Resources:
  Slow:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: slow
      Handler: bootstrap
      Runtime: provided.al2023
      Timeout: 901
      Layers: [arn]
      Events:
        Work: {Type: SQS, Properties: {Queue: !GetAtt Wrk.Arn}}
  Work: {Type: AWS::SQS::Queue}
`)
	got := reprise(t, "", "lambda", "up", template, "--addr", "127.0.0.1:0")
	want := result{1, "", strings.ReplaceAll(`reprise: FILE:9: Slow, Timeout: "901" is not a number from 1 to 900: write one
FILE:10: Slow, Layers: layers are not run here: put their content into the function's own code
FILE:12: Slow, Events.Work.Properties.Queue: there is no resource or parameter "Wrk" (Work?)
`, "FILE", template)}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Errorf("lambda up (-want +got):\n%s", diff)
	}
}

// TestLambdaUpFilter: a filter that is not known here is refused before anything is
// built.
func TestLambdaUpFilter(t *testing.T) {
	t.Parallel()
	template := written(t, "template.yaml", `Transform: AWS::Serverless-2016-10-31
Resources:
  Picky:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: nowhere
      Handler: bootstrap
      Runtime: provided.al2023
      Events:
        Work:
          Type: SQS
          Properties: {Queue: !GetAtt Work.Arn, FunctionResponseTypes: [ReportBatchItemFailures], FilterCriteria: {Filters: [{Pattern: '{"body": {"ip": [{"cidr": "10.0.0.0/8"}]}}'}]}}
  Work: {Type: AWS::SQS::Queue}
`)
	got := reprise(t, "", "lambda", "up", template, "--addr", "127.0.0.1:0")
	if want := "reprise: " + template + ":10: Picky.Work: mapping of "; got.code != 1 || !strings.HasPrefix(got.stderr, want) || !strings.Contains(got.stderr, `"cidr"`) {
		t.Errorf("lambda up: %+v, want exit code 1 and %q", got, want)
	}
}

// TestLambdaInvokeAWSCLI: the AWS command line interface invokes what runs here.
func TestLambdaInvokeAWSCLI(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("aws"); err != nil {
		t.Skip("skipped: the AWS CLI (aws) is not installed")
	}
	_, endpoint := lambdaUp(t, lambdaFolder(t, lambdaStack))
	cmd := exec.Command("sh", "-c", `set -eu
		aws lambda invoke --function-name Python --payload '{}' --query FunctionError --output text answer.json
		cat answer.json
		aws lambda invoke --function-name Absent answer.json 2>&1 | grep -o ResourceNotFoundException`)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "AWS_ENDPOINT_URL="+endpoint, "AWS_ACCESS_KEY_ID=any", "AWS_SECRET_ACCESS_KEY=thing",
		"AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1", "AWS_PAGER=")
	out, err := cmd.CombinedOutput()
	want := fmt.Sprintf("None\n{\"greeting\": \"hello\", \"queue\": \"%s/000000000000/Work\"}ResourceNotFoundException\n", endpoint)
	if err != nil || string(out) != want {
		t.Errorf("the AWS CLI prints %q, %v, want %q", out, err, want)
	}
}
