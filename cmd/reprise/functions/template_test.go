package functions_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/template"
	"github.com/reprise-sqs/reprise/plan"
)

const (
	sam     = "deploy/sam/template.yaml"
	plain   = "deploy/cloudformation/template.yaml"
	example = "examples/asynclambda/template.yaml"
)

// python returns an interpreter that has the modules.
func python(t *testing.T, modules ...string) string {
	t.Helper()
	interpreter, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("skipped: python3 is not installed")
	}
	for _, module := range modules {
		if out, err := exec.Command(interpreter, "-c", "import "+module).CombinedOutput(); err != nil {
			t.Skipf("skipped: python3 has no %s: %s", module, out)
		}
	}
	return interpreter
}

// TestTemplatesAreClean: cfn-lint, which knows what each property may be on AWS, has
// nothing to say.
func TestTemplatesAreClean(t *testing.T) {
	t.Parallel()
	linter, err := exec.LookPath("cfn-lint")
	if err != nil {
		t.Skip("skipped: cfn-lint is not installed")
	}
	cmd := exec.CommandContext(t.Context(), linter, sam, plain, example)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("cfn-lint: %v\n%s", err, out)
	}
}

// TestCloudFormationIsTranslated: the committed CloudFormation is what AWS's own
// translator makes of the SAM template.
func TestCloudFormationIsTranslated(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), python(t, "samtranslator"), "deploy/cloudformation/generate.py", "--check")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestStackIsCreated creates the stack on moto, and reads back what moto has made.
// Moto makes no EventInvokeConfig and no alarms, and forgets the architecture.
func TestStackIsCreated(t *testing.T) {
	t.Parallel()
	interpreter := python(t, "boto3", "moto", "yaml")
	queue, dead := "arn:aws:sqs:eu-central-1:123456789012:retry", "arn:aws:sqs:eu-central-1:123456789012:dead"
	permissions := leastPermissions(t, plan.Queue{ARN: queue, DeadLetterARN: dead})
	want := func(change func(stack map[string]any)) map[string]any {
		stack := map[string]any{
			"status": "CREATE_COMPLETE",
			"retry":  map[string]any{"VisibilityTimeout": "360", "MessageRetentionPeriod": "864000", "maxReceiveCount": 50., "deadLetterTarget": "DeadLetterQueue"},
			"dead":   map[string]any{"MessageRetentionPeriod": "1209600"},
			"handler": map[string]any{
				"Runtime": "provided.al2023", "Handler": "bootstrap", "Timeout": 60., "MemorySize": 128.,
				"Environment": map[string]any{"MODE": "envelope", "DEAD_LETTER_QUEUE_URL": "DeadLetterQueue"},
			},
			"mapping": map[string]any{
				"Queue": "RetryQueue", "BatchSize": 10., "FunctionResponseTypes": []any{"ReportBatchItemFailures"},
				"ScalingConfig": map[string]any{"MaximumConcurrency": 10.},
			},
			"permissions": map[string]any{
				"RetryQueue":      permissions[queue],
				"DeadLetterQueue": permissions[dead],
				"Function":        "lambda:InvokeFunction",
				"Logs":            []any{"logs:CreateLogStream", "logs:PutLogEvents"},
			},
			"destination roles": []any{},
			"table":             false,
			"outputs":           []any{"DeadLetterQueueUrl", "DestinationPolicyArn", "RetryHandlerName", "RetryQueueArn", "RetryQueueUrl"},
		}
		change(stack)
		return stack
	}
	for _, test := range []struct {
		name       string
		parameters []string
		want       map[string]any
	}{
		{"as it comes", nil, want(func(map[string]any) {})},
		{
			"every setting",
			[]string{
				"FunctionRoleName=flaky-role", "OtherFunctionArns=arn:aws:lambda:eu-central-1:123456789012:function:a,arn:aws:lambda:eu-central-1:123456789012:function:b",
				"Mode=direct", "TargetTimeout=300", "BaseBackoff=5", "MaxRetries=20", "MaxAge=36h", `RetryConfig={"functions":{}}`, "SigningKeys=2026-11:" + strings.Repeat("s", 32),
				"Idempotency=true", "MaximumConcurrency=50", "Architecture=x86_64", "AlarmTopicArn=arn:aws:sns:eu-central-1:123456789012:alarms",
			},
			want(func(stack map[string]any) {
				stack["retry"].(map[string]any)["VisibilityTimeout"] = "5400"
				handler := stack["handler"].(map[string]any)
				handler["Timeout"] = 900.
				handler["Environment"] = map[string]any{
					"MODE": "direct", "TARGET_TIMEOUT": "300", "BASE_BACKOFF": "5", "MAX_RETRIES": "20", "MAX_AGE": "36h",
					"RETRY_CONFIG": `{"functions":{}}`, "REPRISE_SIGNING_KEYS": "2026-11:" + strings.Repeat("s", 32), "DEAD_LETTER_QUEUE_URL": "DeadLetterQueue", "IDEMPOTENCY_TABLE": "IdempotencyTable",
				}
				mapping := stack["mapping"].(map[string]any)
				mapping["BatchSize"], mapping["ScalingConfig"] = 1., map[string]any{"MaximumConcurrency": 50.}
				permissions := stack["permissions"].(map[string]any)
				permissions["OtherFunctions"] = "lambda:InvokeFunction"
				permissions["IdempotencyTable"] = []any{"dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}
				stack["destination roles"] = []any{"DestinationPolicy"}
				stack["table"] = true
			}),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), interpreter, append([]string{"testdata/create.py", filepath.Join(root, plain), "FunctionName=flaky"}, test.parameters...)...)
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, err.(*exec.ExitError).Stderr)
			}
			var got map[string]any
			if err := json.Unmarshal(out, &got); err != nil {
				t.Fatalf("%v in %s", err, out)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the stack (-want +got):\n%s", diff)
			}
		})
	}
}

// leastPermissions are the actions that a consumer of the queue needs, by resource.
func leastPermissions(t *testing.T, queue plan.Queue) map[string][]any {
	t.Helper()
	features, err := plan.Features(queue, plan.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	actions := make(map[string][]any)
	for _, feature := range features {
		for _, need := range feature.Needs {
			actions[need.Resource] = append(actions[need.Resource], need.Action)
		}
	}
	for _, list := range actions {
		slices.SortFunc(list, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	}
	return actions
}

// load reads a template as reprise lambda up does.
func load(t *testing.T, name string, parameters map[string]string) *template.Template {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	read, err := template.Load(text, template.Options{
		File: name, Parameters: parameters, Region: "eu-central-1", AccountID: "123456789012",
		QueueURL: func(queue string) string { return "http://sqs/" + queue },
	})
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// TestExampleRunsLocally: the example's template has no part that reprise lambda up
// would not run, and declares the article's system.
func TestExampleRunsLocally(t *testing.T) {
	system := load(t, example, map[string]string{"BaseBackoff": "7", "FailUntil": "4"})
	none := 0
	handler, flaky := functionOf(t, system, "RetryHandler"), functionOf(t, system, "Flaky")
	if diff := cmp.Diff(template.Async{MaxRetryAttempts: &none, MaxEventAge: 6 * time.Hour, OnFailure: "arn:aws:sqs:eu-central-1:123456789012:RetryQueue"}, flaky.Async); diff != "" {
		t.Errorf("the function's asynchronous invocation (-want +got):\n%s", diff)
	}
	if flaky.Environment["FAIL_UNTIL"] != "4" {
		t.Errorf("FAIL_UNTIL is %q, want the parameter's 4", flaky.Environment["FAIL_UNTIL"])
	}
	if diff := cmp.Diff(map[string]string{"BASE_BACKOFF": "7", "IDEMPOTENCY_TABLE": "IdempotencyTable", "MAX_AGE": "24h", "MAX_RETRIES": "", "DEAD_LETTER_QUEUE_URL": "http://sqs/DeadLetterQueue"}, handler.Environment); diff != "" {
		t.Errorf("the handler's environment (-want +got):\n%s", diff)
	}
	checkRetries(t, system, handler)
	for _, f := range system.Functions {
		if _, err := os.Stat(filepath.Join(root, filepath.Dir(example), f.Code.Path, "main.go")); err != nil {
			t.Errorf("the code of %s: %v", f.ID, err)
		}
	}
}

// TestDeployedRetriesFitTheHandler: in either mode the queue's and the mapping's
// settings are those under which the handler works.
func TestDeployedRetriesFitTheHandler(t *testing.T) {
	for _, mode := range []string{"envelope", "direct"} {
		t.Run(mode, func(t *testing.T) {
			// The function that is retried is in no template: here the handler stands for it.
			stack := load(t, sam, map[string]string{"FunctionName": "RetryHandler", "Mode": mode, "TargetTimeout": "870"})
			handler := functionOf(t, stack, "RetryHandler")
			checkRetries(t, stack, handler)
			if mode == "direct" && handler.Timeout < 870*time.Second+30*time.Second {
				t.Errorf("the handler's timeout is %v, less than the functions' and 30 s", handler.Timeout)
			}
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(sam), handler.Code.Path)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAlarms: somebody is told when failures do not reach the retry queue, when the
// handler crashes or is not let run, when there are dead letters, and before SQS
// deletes them or refuses to hide more. The alarms act only if there is a topic.
func TestAlarms(t *testing.T) {
	const topic = "arn:aws:sns:eu-central-1:123456789012:alarms"
	for _, told := range []string{"", topic} {
		found := make(map[string]string)
		deployment := readStack(t, filepath.Join(root, plain), map[string]string{"FunctionName": "orders", "AlarmTopicArn": told})
		for _, r := range deployment.Resources {
			if r.Type == "AWS::CloudWatch::Alarm" {
				p := deployment.resolve(r.Properties).(map[string]any)
				found[fmt.Sprintf("%v %v", p["Namespace"], p["MetricName"])] = fmt.Sprintf("%v %v", p["Threshold"], list(p["AlarmActions"]))
			}
		}
		actions := "[]"
		if told != "" {
			actions = "[" + topic + "]"
		}
		want := map[string]string{
			"AWS/Lambda DestinationDeliveryFailures":        "1 " + actions,
			"AWS/Lambda Errors":                             "1 " + actions,
			"AWS/Lambda Throttles":                          "1 " + actions,
			"AWS/SQS ApproximateNumberOfMessagesVisible":    "1 " + actions,
			"AWS/SQS ApproximateAgeOfOldestMessage":         "864000 " + actions,
			"AWS/SQS ApproximateNumberOfMessagesNotVisible": "100000 " + actions,
		}
		if diff := cmp.Diff(want, found); diff != "" {
			t.Errorf("told %q, the alarms are (-want +got):\n%s", told, diff)
		}
	}
}

// TestOneCrashIsAnAlarm: a record of which the handler dies comes again after the
// queue's visibility timeout, every 6 minutes or, in direct mode, every 90. The alarm
// rises at the first crash and stays until they end, so that it does not report each.
func TestOneCrashIsAnAlarm(t *testing.T) {
	deployment := readStack(t, filepath.Join(root, plain), map[string]string{"FunctionName": "orders"})
	alarm := map[string]int{"DatapointsToAlarm": -1}
	for _, r := range deployment.Resources {
		if p, _ := deployment.resolve(r.Properties).(map[string]any); r.Type == "AWS::CloudWatch::Alarm" && p["MetricName"] == "Errors" {
			for _, name := range []string{"Period", "EvaluationPeriods", "DatapointsToAlarm", "Threshold"} {
				if n, err := strconv.Atoi(fmt.Sprint(p[name])); err == nil {
					alarm[name] = n
				}
			}
		}
	}
	if alarm["DatapointsToAlarm"] < 0 {
		alarm["DatapointsToAlarm"] = alarm["EvaluationPeriods"] // as CloudWatch has it
	}
	if alarm["Period"] != 60 || alarm["Threshold"] != 1 || alarm["EvaluationPeriods"]*60 > 24*60*60 {
		t.Fatalf("the alarm is %v, want one by the minute for a single error, over a day at the most", alarm)
	}
	for _, visibility := range []int{6, 90} { // minutes
		raised := 0
		for minute := range 10 * visibility {
			bad := 0
			for back := range alarm["EvaluationPeriods"] {
				if minute >= back && (minute-back)%visibility == 0 {
					bad++
				}
			}
			if bad >= alarm["DatapointsToAlarm"] {
				raised++
			}
		}
		if raised != 10*visibility {
			t.Errorf("of %d minutes with a crash every %d the alarm is raised in %d", 10*visibility, visibility, raised)
		}
	}
}

func functionOf(t *testing.T, from *template.Template, id string) template.Function {
	t.Helper()
	for _, f := range from.Functions {
		if f.ID == id {
			return f
		}
	}
	t.Fatalf("the template has no function %s", id)
	return template.Function{}
}

// checkRetries checks that the retry queue and its mapping fit the retry handler.
func checkRetries(t *testing.T, from *template.Template, handler template.Function) {
	t.Helper()
	if len(from.Mappings) != 1 || !from.Mappings[0].ReportBatchItemFailures || from.Mappings[0].Function != handler.Name || from.Mappings[0].Queue != "RetryQueue" {
		t.Errorf("the mappings are %+v: want the retry queue's to the handler, with partial responses", from.Mappings)
	}
	for _, q := range from.Queues {
		// What SQS itself moves to the dead-letter queue keeps its age: four days are left
		// to look at it.
		if want := map[string]string{"RetryQueue": "864000", "DeadLetterQueue": "1209600"}[q.ID]; q.Attributes["MessageRetentionPeriod"] != want {
			t.Errorf("%s keeps messages for %s s, want %s", q.ID, q.Attributes["MessageRetentionPeriod"], want)
		}
		if q.ID != "RetryQueue" {
			continue
		}
		if q.DeadLetter != "DeadLetterQueue" || q.MaxReceives != 50 {
			t.Errorf("the retry queue's dead letters go to %q after %d receives, want DeadLetterQueue after 50", q.DeadLetter, q.MaxReceives)
		}
		if visibility, err := time.ParseDuration(q.Attributes["VisibilityTimeout"] + "s"); err != nil || visibility < 6*handler.Timeout {
			t.Errorf("the retry queue hides for %v (%v), less than six times the handler's timeout of %v", visibility, err, handler.Timeout)
		}
	}
	if len(from.Queues) != 2 {
		t.Errorf("there are %d queues, want 2", len(from.Queues))
	}
}
