//go:build unix

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// TestLambdaUpKilled: if the program is killed right after it has accepted asynchronous invokes
// with --data, all of them run after the next start, with their exact payloads. The files that
// the killed program had built are removed.
func TestLambdaUpKilled(t *testing.T) {
	t.Parallel()
	needPython(t)
	const events = 200
	ran := filepath.Join(t.TempDir(), "ran")
	template := written(t, "template.yaml", fmt.Sprintf(`Parameters: {Greeting: {Type: String}}
Resources:
  Slow:
    Type: AWS::Lambda::Function
    Properties:
      Code:
        ZipFile: |
          import os, time
          def handler(event, context):
              time.sleep(0.2)
              with open(os.environ["RAN"], "a") as file:
                  file.write(event["id"] + "\n")
      Handler: index.handler
      Runtime: python3.12
      Environment: {Variables: {RAN: %s}}
`, ran))
	env := lambdaEnvironment(t)
	temporary := ""
	for _, variable := range env {
		if dir, ok := strings.CutPrefix(variable, "TMPDIR="); ok {
			temporary = dir
		}
	}
	up := []string{"lambda", "up", template, "--allow-outside", "--addr", "127.0.0.1:0", "--param", "Greeting=hello", "--data", filepath.Join(t.TempDir(), "data")}
	p := startIn(t, env, up...)
	endpoint := p.await("SQS endpoint")
	p.await("ready")
	client := lambda.New(lambda.Options{Region: "us-east-1", BaseEndpoint: &endpoint, Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), Retryer: aws.NopRetryer{}})
	var accepting sync.WaitGroup
	for first := range 10 {
		accepting.Go(func() {
			for n := first; n < events; n += 10 {
				payload := fmt.Appendf(nil, `{"id": "e-%d"}`, n)
				out, err := client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: aws.String("Slow"), InvocationType: types.InvocationTypeEvent, Payload: payload})
				if err != nil || out.StatusCode != 202 {
					t.Errorf("event %d: %v, %v", n, out, err)
				}
			}
		})
	}
	accepting.Wait()
	p.signal(syscall.SIGKILL)
	p.wait()
	before := len(ranEvents(t, ran))
	if before == events {
		t.Fatal("all events had run when the program was killed: the test shows nothing")
	}

	p = startIn(t, env, up...)
	p.await("asynchronous events that were accepted before this start, and run now")
	for deadline := time.Now().Add(2 * time.Minute); len(ranEvents(t, ran)) < events && time.Now().Before(deadline); {
		time.Sleep(50 * time.Millisecond)
	}
	if got := len(ranEvents(t, ran)); got != events {
		t.Errorf("of %d events that were accepted %d have run, %d of them before the kill", events, got, before)
	}
	folders, err := filepath.Glob(filepath.Join(temporary, "reprise-lambda-*"))
	if err != nil || len(folders) != 1 {
		t.Errorf("the temporary folder has %q (%v), want the one of the program that runs", folders, err)
	}
	p.signal(os.Interrupt)
	if code, output := p.wait(); code != 0 {
		t.Errorf("exit code %d after SIGINT:\n%s", code, output)
	}
}

// ranEvents returns how often each event has run.
func ranEvents(t *testing.T, file string) map[string]int {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	counts := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		counts[strings.TrimSpace(line)]++
	}
	return counts
}

// TestLambdaUpStopped: with --data, an asynchronous event that waits for its retry at the stop is
// not lost: it goes on after the next start.
func TestLambdaUpStopped(t *testing.T) {
	t.Parallel()
	template, data := lambdaFolder(t, lambdaStack), filepath.Join(t.TempDir(), "data")
	p, endpoint := lambdaUp(t, template, "--data", data, "--time-scale", "20")
	if got := reprise(t, "", "lambda", "invoke", "Python", "--event", `{"fail": true}`, "--endpoint", endpoint); got.code != 0 {
		t.Fatalf("lambda invoke --event: %+v", got)
	}
	p.await("the asynchronous event is invoked again in")
	p.signal(os.Interrupt)
	if code, output := p.wait(); code != 0 || !strings.Contains(output, "the asynchronous event is kept for the next start") {
		t.Errorf("exit code %d, want 0, after a stop with a retry to come:\n%s", code, output)
	}
	_, endpoint = lambdaUp(t, template, "--data", data, "--time-scale", "20")
	if bodies := receive(t, endpoint, "Failed"); len(bodies) != 1 || !strings.Contains(bodies[0], `"approximateInvokeCount":2`) {
		t.Errorf("the queue for failures has %q, want one record, of two invokes", bodies)
	}
}
