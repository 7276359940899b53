//go:build unix

package main_test

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestPlan: queues, templates, Terraform and policies are reviewed, and findings decide the exit code.
func TestPlan(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "orders,dead-letter=orders-dead,max-receives=100", "--queue", "f.fifo,dead-letter=d.fifo,max-receives=3", "--queue", "bare")
	const policyText = "exponential(base=2s,max=1h) attempts=5"
	broken := written(t, "t.yaml", "Resources: {Q: {Type: AWS::SQS::Queue, Properties: {QueueName: q.fifo, FifoQueue: true, RedrivePolicy: {deadLetterTargetArn: !GetAtt D.Arn, maxReceiveCount: 3}}}, D: {Type: AWS::SQS::Queue, Properties: {FifoQueue: true}}}")
	imported := written(t, "i.yaml", "Resources: {Q: {Type: AWS::SQS::Queue, Properties: {RedrivePolicy: {deadLetterTargetArn: !ImportValue dead, maxReceiveCount: 30}}}}")
	retries := written(t, "r.yaml", `Transform: AWS::Serverless-2016-10-31
Resources:
  Retries: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: 60}}
  Handler: {Type: AWS::Serverless::Function, Properties: {Events: {Failed: {Type: SQS, Properties: {Queue: !GetAtt Retries.Arn}}}}}
  Flaky: {Type: AWS::Serverless::Function, Properties: {EventInvokeConfig: {DestinationConfig: {OnFailure: {Type: SQS, Destination: !GetAtt Retries.Arn}}}}}
`)
	const terraform = "internal/review/testdata/terraform.json"
	for _, test := range []struct {
		name  string
		args  []string
		stdin string
		code  int
		want  []string
	}{
		{"queue", []string{"orders"}, "", 0, []string{"dead letters to orders-dead after 100 receives", "no findings", "sqs:ReceiveMessage"}},
		{"queue by URL", []string{*queueURL(endpoint, "orders")}, "", 0, []string{"queue     orders  (" + endpoint}},
		{"errors", []string{"f.fifo"}, "", 1, []string{"error    fifo-receives-are-not-attempts", "remedy: raise maxReceiveCount", "the plan has 1 error"}},
		{"errors that do not count", []string{"f.fifo", "--fail-on", "never"}, "", 0, []string{"error    fifo-receives-are-not-attempts"}},
		{"errors where warnings count", []string{"f.fifo", "--fail-on", "warning"}, "", 1, []string{"the plan has 1 error"}},
		{"warnings", []string{"bare"}, "", 0, []string{"warning  no-dead-letter-queue"}},
		{"warnings that count", []string{"bare", "--fail-on", "warning"}, "", 1, []string{"the plan has 1 warning"}},
		{"several queues", []string{"orders", "bare"}, "", 0, []string{"queue     orders", "queue     bare"}},
		{"policy", []string{policyText}, "", 0, []string{"5 attempts", "no findings"}},
		{"quota", []string{"orders", "--rate", "10000", "--retry", "constant(1h) attempts=20", "--via", "visibility"}, "", 0, []string{"in-flight-quota"}},
		{"template", []string{broken}, "", 1, []string{"fifo-receives-are-not-attempts", broken + ":1"}},
		{"template on the standard input", []string{"-"}, "Resources: {Q: {Type: AWS::SQS::Queue}}", 0, []string{"standard input:1", "no-dead-letter-queue"}},
		{"template with what is elsewhere", []string{imported}, "", 0, []string{"warning  attribute-unknown", "RedrivePolicy", "not read", "Fn::ImportValue"}},
		{"failed events that are deleted", []string{retries}, "", 1, []string{"error    batch-item-failures-ignored", "Handler.Failed", "OnFailure", "the plan has 1 error"}},
		{"Terraform", []string{terraform}, "", 0, []string{"queue     refunds-1-b.fifo", "warning  single-receive"}},
		{"Markdown", []string{"f.fifo", "-o", "markdown"}, "", 1, []string{"| `f.fifo` | 1 | 0 |"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := reprise(t, test.stdin, append([]string{"plan", "--endpoint", endpoint, "--retry", policyText}, test.args...)...)
			if got.code != test.code {
				t.Errorf("exit code %d, want %d: %s", got.code, test.code, got.stderr)
			}
			for _, want := range test.want {
				if !strings.Contains(got.stdout+got.stderr, want) {
					t.Errorf("does not say %q:\n%s%s", want, got.stdout, got.stderr)
				}
			}
		})
	}
	for _, format := range []string{"json", "sarif"} {
		got := reprise(t, "", "plan", "--endpoint", endpoint, "f.fifo", "-o", format)
		if got.code != 1 || !json.Valid([]byte(got.stdout)) || !strings.Contains(got.stdout, "fifo-receives-are-not-attempts") {
			t.Errorf("%s: exit code %d, %s%s", format, got.code, got.stdout, got.stderr)
		}
	}
}

// TestPlanMistakes: what cannot be reviewed is named, with the remedy.
func TestPlanMistakes(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "orders")
	for _, test := range []struct {
		args []string
		code int
		want []string
	}{
		{nil, 2, []string{"requires at least 1 arg"}},
		{[]string{"absent"}, 5, []string{`queue "absent" does not exist`, "create it"}},
		{[]string{"arn:aws:sqs:us-east-1:000000000000:orders"}, 2, []string{"is an ARN", "URL or its name"}},
		{[]string{"/nonexistent/template.yaml"}, 1, []string{"/nonexistent/template.yaml"}},
		{[]string{written(t, "t.yaml", "a: b")}, 1, []string{"t.yaml:1", "no Resources", "terraform show -json"}},
		{[]string{written(t, "t.json", `{"format_version":"1.2","planned_values":{}}`)}, 1, []string{"t.json", "has no resources"}},
		{[]string{written(t, "e.yaml", "Resources: {F: {Type: AWS::Lambda::Function}}")}, 1, []string{"declares no queue"}},
		{[]string{written(t, "p.yaml", "Resources: {Q: {Type: AWS::SQS::Queue}}"), "--param", "Stage=x"}, 1, []string{`no parameter "Stage"`, "correct --param"}},
		{[]string{"orders", "--param", "Stage"}, 2, []string{`"Stage"`, "name=value"}},
		{[]string{"constant(1s", "--endpoint", endpoint}, 2, []string{"parenthesis is not closed"}},
		{[]string{"orders", "attempts=3"}, 2, []string{"is a policy", "--retry"}},
		{[]string{"orders", "--retry", "expnential(base=1s)"}, 2, []string{"--retry", "exponential("}},
		{[]string{"orders", "--timeout", "0"}, 2, []string{"--timeout is 0s", "30s"}},
		{[]string{"orders", "--rate", "-1"}, 2, []string{"--rate is -1"}},
		{[]string{"orders", "--via", "x"}, 2, []string{`--via is "x"`, "auto, visibility, requeue"}},
		{[]string{"orders", "-o", "xml"}, 2, []string{`invalid argument "xml"`, "sarif"}},
		{[]string{"orders", "--fail-on", "x"}, 2, []string{`--fail-on is "x"`, "never"}},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			t.Parallel()
			got := reprise(t, "", append([]string{"plan", "--endpoint", endpoint}, test.args...)...)
			if got.code != test.code || got.stdout != "" {
				t.Errorf("exit code %d, want %d; stdout %q", got.code, test.code, got.stdout)
			}
			for _, want := range test.want {
				if !strings.Contains(got.stderr, want) {
					t.Errorf("does not say %q: %s", want, got.stderr)
				}
			}
		})
	}
}
