package template_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/template"
)

// TestLoadSurvey: queues are read from a template that could not run here, and what is not
// known about them is noted where it is used.
func TestLoadSurvey(t *testing.T) {
	source, err := os.ReadFile("testdata/survey/stack.yaml")
	if err != nil {
		t.Fatal(err)
	}
	got, err := template.LoadSurvey(source, options("stack.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const arn = "arn:aws:sqs:eu-west-1:000000000000:"
	want := []template.SurveyedQueue{
		{
			ID: "Orders", Name: "orders", ARN: arn + "orders", FunctionTimeout: time.Minute, Wholesale: []string{"Ship.Orders"}, Line: 10,
			Attributes: map[string]string{
				"QueueArn": arn + "orders", "VisibilityTimeout": "120", "MessageRetentionPeriod": "345600", "DelaySeconds": "0",
				"KmsMasterKeyId": "Key", "RedrivePolicy": `{"deadLetterTargetArn":"` + arn + `Dead","maxReceiveCount":5}`,
			},
		},
		{
			ID: "Dead", Name: "Dead", ARN: arn + "Dead", Line: 19,
			Attributes: map[string]string{"QueueArn": arn + "Dead", "VisibilityTimeout": "30", "MessageRetentionPeriod": "1209600", "DelaySeconds": "0"},
		},
		{
			ID: "Refunds", Name: "Refunds.fifo", ARN: arn + "Refunds.fifo", FunctionTimeout: 15 * time.Minute, Wholesale: []string{"Mapping"}, Line: 22,
			Unknown: []string{"DelaySeconds", "MessageRetentionPeriod", "RedrivePolicy"},
			Attributes: map[string]string{
				"QueueArn": arn + "Refunds.fifo", "FifoQueue": "true", "ContentBasedDeduplication": "true", "VisibilityTimeout": "30",
				"RedrivePolicy": `{"maxReceiveCount":3}`,
			},
		},
		{
			ID: "Elsewhere", Name: "elsewhere", ARN: arn + "elsewhere", Line: 33,
			Attributes: map[string]string{
				"QueueArn": arn + "elsewhere", "VisibilityTimeout": "30", "MessageRetentionPeriod": "345600", "DelaySeconds": "0",
				"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:123456789012:dead","maxReceiveCount":"4"}`,
			},
		},
	}
	if diff := cmp.Diff(want, got.Queues); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
	var notes []string
	for _, n := range got.Notes {
		notes = append(notes, n.String())
	}
	if diff := cmp.Diff([]string{
		"stack.yaml: parameter Stage: it has no value: pass --param Stage=VALUE",
		`stack.yaml:29: Refunds, DelaySeconds: "901" is not a number from 0 to 900: write one`,
		"stack.yaml:31: Refunds, RedrivePolicy.deadLetterTargetArn: Fn::ImportValue reads another stack, and there is none here: make it a parameter, and pass --param",
	}, notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
}

// TestLoadSurveyWholesale: mappings that ignore which messages failed are noted, and whether these
// are records of failed events, in each way in which a template says so. What is not known is not
// claimed.
func TestLoadSurveyWholesale(t *testing.T) {
	const (
		mapping = "{Type: SQS, Properties: {Queue: !GetAtt Q.Arn"
		report  = ", FunctionResponseTypes: [ReportBatchItemFailures]"
		failing = "EventInvokeConfig: {DestinationConfig: {OnFailure: {Type: SQS, Destination: !GetAtt Q.Arn}}}"
	)
	for _, test := range []struct {
		name, resources string
		wholesale       []string
		onFailure       bool
	}{
		{"reports", "  F: {Type: AWS::Serverless::Function, Properties: {Events: {E: " + mapping + report + "}}}}}", nil, false},
		{"does not", "  F: {Type: AWS::Serverless::Function, Properties: {Events: {E: " + mapping + "}}}}}", []string{"F.E"}, false},
		{"empty", "  F: {Type: AWS::Serverless::Function, Properties: {Events: {E: " + mapping + ", FunctionResponseTypes: []}}}}}", []string{"F.E"}, false},
		{"not known", "  F: {Type: AWS::Serverless::Function, Properties: {Events: {E: " + mapping + ", FunctionResponseTypes: !ImportValue types}}}}}", nil, false},
		{"no value", "  F: {Type: AWS::Serverless::Function, Properties: {Events: {E: " + mapping + ", FunctionResponseTypes: !Ref 'AWS::NoValue'}}}}}", []string{"F.E"}, false},
		{"of failures", "  F: {Type: AWS::Serverless::Function, Properties: {Events: {E: " + mapping + "}}}}}\n  G: {Type: AWS::Serverless::Function, Properties: {" + failing + "}}", []string{"F.E"}, true},
		{"of failures, in CloudFormation", "  M: {Type: AWS::Lambda::EventSourceMapping, Properties: {EventSourceArn: !GetAtt Q.Arn, FunctionName: elsewhere}}\n" +
			"  I: {Type: AWS::Lambda::EventInvokeConfig, Properties: {DestinationConfig: {OnFailure: {Destination: !GetAtt Q.Arn}}}}", []string{"M"}, true},
		{"of successes", "  I: {Type: AWS::Lambda::EventInvokeConfig, Properties: {DestinationConfig: {OnSuccess: {Destination: !GetAtt Q.Arn}}}}", nil, false},
		{"failures elsewhere", "  I: {Type: AWS::Lambda::EventInvokeConfig, Properties: {DestinationConfig: {OnFailure: {Destination: !ImportValue topic}}}}", nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := template.LoadSurvey([]byte("Transform: AWS::Serverless-2016-10-31\nResources:\n  Q: {Type: AWS::SQS::Queue}\n"+test.resources), options("t.yaml"))
			if err != nil || len(got.Queues) != 1 {
				t.Fatalf("%+v, %v", got, err)
			}
			q := got.Queues[0]
			if diff := cmp.Diff(test.wholesale, q.Wholesale); diff != "" || q.OnFailure != test.onFailure {
				t.Errorf("OnFailure is %v, and mappings (-want +got):\n%s", q.OnFailure, diff)
			}
		})
	}
}

// TestLoadSurveyParameters: given parameters are used, and one that does not exist is refused.
func TestLoadSurveyParameters(t *testing.T) {
	const source = "Parameters: {Stage: {Type: String}}\nResources: {Q: {Type: AWS::SQS::Queue, Properties: {QueueName: !Sub 'q-${Stage}'}}}"
	o := options("t.yaml")
	o.Parameters = map[string]string{"Stage": "prod"}
	got, err := template.LoadSurvey([]byte(source), o)
	if err != nil || len(got.Queues) != 1 || got.Queues[0].Name != "q-prod" || len(got.Notes) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	o.Parameters = map[string]string{"Stag": "prod"}
	if _, err := template.LoadSurvey([]byte(source), o); err == nil || !strings.Contains(err.Error(), "Stage?") {
		t.Errorf("error %v", err)
	}
}

// TestLoadSurveyRefused: only what is no template is an error.
func TestLoadSurveyRefused(t *testing.T) {
	for _, text := range []string{"", "a: [", "a: b", "- a", "just text"} {
		if got, err := template.LoadSurvey([]byte(text), options("t.yaml")); err == nil {
			t.Errorf("%q is taken: %+v", text, got)
		}
	}
}

// TestLoadSurveyConditions: what a condition decides that is not known is not taken for its default,
// and a queue that may exist is not left out.
func TestLoadSurveyConditions(t *testing.T) {
	const source = `Transform: AWS::Serverless-2016-10-31
Parameters: {Stage: {Type: String}}
Conditions: {Prod: !Equals [!Ref Stage, prod]}
Resources:
  Q:
    Type: AWS::SQS::Queue
    Properties:
      VisibilityTimeout: !If [Prod, 300, 60]
      MessageRetentionPeriod: !If [Prod, 1209600, 600]
      RedrivePolicy: !If [Prod, {deadLetterTargetArn: !GetAtt D.Arn, maxReceiveCount: 3}, !Ref 'AWS::NoValue']
  D: {Type: AWS::SQS::Queue, Condition: Prod}
  F:
    Type: AWS::Serverless::Function
    Condition: Prod
    Properties: {Timeout: !If [Prod, 600, 30], Events: {E: {Type: SQS, Properties: {Queue: !GetAtt Q.Arn}}}}
`
	got, err := template.LoadSurvey([]byte(source), options("t.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const arn = "arn:aws:sqs:eu-west-1:000000000000:"
	if diff := cmp.Diff([]template.SurveyedQueue{
		{
			ID: "Q", Name: "Q", ARN: arn + "Q", Line: 5, Wholesale: []string{"F.E"},
			Unknown:    []string{"MessageRetentionPeriod", "RedrivePolicy", "VisibilityTimeout"},
			Attributes: map[string]string{"QueueArn": arn + "Q", "DelaySeconds": "0", "RedrivePolicy": "{}"},
		},
		{
			ID: "D", Name: "D", ARN: arn + "D", Line: 11,
			Attributes: map[string]string{"QueueArn": arn + "D", "VisibilityTimeout": "30", "MessageRetentionPeriod": "345600", "DelaySeconds": "0"},
		},
	}, got.Queues); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
	const unknown = `whether the condition "Prod" holds is not known: pass the parameters that it depends on with --param, or correct it`
	var notes []string
	for _, n := range got.Notes {
		notes = append(notes, n.String())
	}
	if diff := cmp.Diff([]string{
		"t.yaml:8: Q, VisibilityTimeout: " + unknown,
		"t.yaml:9: Q, MessageRetentionPeriod: " + unknown,
		"t.yaml:10: Q, RedrivePolicy: " + unknown,
		"t.yaml:11: D, Condition: " + unknown,
		"t.yaml:14: F, Condition: " + unknown,
		"t.yaml:15: F, Timeout: " + unknown,
	}, notes); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}

	o := options("t.yaml")
	o.Parameters = map[string]string{"Stage": "test"}
	got, err = template.LoadSurvey([]byte(source), o)
	if err != nil || len(got.Queues) != 1 || got.Queues[0].Attributes["VisibilityTimeout"] != "60" || len(got.Notes) > 0 {
		t.Errorf("with a value for the parameter: %+v, %v", got, err)
	}
}
