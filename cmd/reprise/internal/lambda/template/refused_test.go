package template_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/template"
)

// whole makes a template of the resources in text, which begins on line 3.
func whole(text string) string {
	return "Transform: AWS::Serverless-2016-10-31\nResources:\n" + strings.TrimPrefix(text, "\n")
}

// function is the beginning of a function on line 3, whose further properties begin
// on line 5.
const function = `
  F: {Type: AWS::Serverless::Function, Properties: {CodeUri: f, Handler: bootstrap, Runtime: provided.al2023,
    Timeout: 10,
`

// TestRefused: what AWS refuses, or what would not run as it does there, is named by
// its line, resource and property, with what to do.
func TestRefused(t *testing.T) {
	const queue = "\n  Q: {Type: AWS::SQS::Queue, Properties: {"
	for _, test := range []struct {
		name, resources string
		want            string // without the file's name; of several lines
	}{
		{"handler elsewhere", "\n  F: {Type: AWS::Serverless::Function, Properties: {CodeUri: f, Handler: ../../evil/index.handler, Runtime: nodejs22.x}}",
			`:3: F, Handler: "../../evil/index.handler" leads out of the function's folder: write one that is relative to CodeUri, like app.handler`},
		{"handler anywhere", "\n  F: {Type: AWS::Serverless::Function, Properties: {CodeUri: f, Handler: /evil/index.handler, Runtime: nodejs22.x}}",
			`:3: F, Handler: "/evil/index.handler" leads out of the function's folder: write one that is relative to CodeUri, like app.handler`},
		{"handler up from below", "\n  F: {Type: AWS::Serverless::Function, Properties: {CodeUri: f, Handler: a/../../evil.handler, Runtime: python3.13}}",
			`:3: F, Handler: "a/../../evil.handler" leads out of the function's folder: write one that is relative to CodeUri, like app.handler`},
		{"queue's number", queue + "VisibilityTimeout: 43201}}",
			`:3: Q, VisibilityTimeout: "43201" is not a number from 0 to 43200: write one`},
		{"queue's misspelt property", queue + "VisibiltyTimeout: 3}}",
			`:3: Q, VisibiltyTimeout: there is no such property (VisibilityTimeout?): correct its name, or remove it`},
		{"queue's name", queue + "QueueName: a.b}}",
			`:3: Q, QueueName: "a.b" is not a name of a queue: write up to 80 letters, digits, - and _`},
		{"FIFO without its end", queue + "QueueName: a, FifoQueue: true}}",
			`:3: Q, QueueName: "a" is the name of a FIFO queue and does not end in .fifo: add it`},
		{"end of a FIFO queue", queue + "QueueName: a.fifo}}",
			`:3: Q, QueueName: "a.fifo" ends in .fifo, and the queue has no FifoQueue: true: add that, or remove the suffix`},
		{"FIFO attribute", queue + "ContentBasedDeduplication: true}}",
			`:3: Q, ContentBasedDeduplication: only FIFO queues have it: add FifoQueue: true, or remove it`},
		{"throughput", queue + "FifoQueue: true, FifoThroughputLimit: perMessageGroupId}}",
			`:3: Q, FifoThroughputLimit: perMessageGroupId needs DeduplicationScope: messageGroup`},
		{"name of itself", queue + "QueueName: !Ref Q}}",
			`:3: Q, QueueName: the name depends on itself`},
		{"redrive to elsewhere", queue + "RedrivePolicy: {deadLetterTargetArn: 'arn:aws:sqs:x', maxReceiveCount: 3}}}",
			`:3: Q, RedrivePolicy.deadLetterTargetArn: "arn:aws:sqs:x" is not a queue of this template: add it, and write !GetAtt NAME.Arn`},
		{"redrive to itself", queue + "RedrivePolicy: {deadLetterTargetArn: !GetAtt Q.Arn, maxReceiveCount: 3}}}",
			":3: Q, RedrivePolicy.deadLetterTargetArn: a queue cannot be its own dead-letter queue: name another\n" +
				":3: Q, RedrivePolicy.deadLetterTargetArn: Circular dependency between resources: Q -> Q: take a reference out"},
		{"redrive to another kind", queue + "RedrivePolicy: {deadLetterTargetArn: !GetAtt D.Arn, maxReceiveCount: 3}}}\n  D: {Type: AWS::SQS::Queue, Properties: {FifoQueue: true}}",
			`:3: Q, RedrivePolicy.deadLetterTargetArn: Q and D have to be both FIFO queues or both standard ones`},
		{"redrive without a count", queue + "RedrivePolicy: {deadLetterTargetArn: x}}}",
			`:3: Q, RedrivePolicy: it needs deadLetterTargetArn and maxReceiveCount`},
		{"redrive allowed to nobody said", queue + "RedriveAllowPolicy: {}}}",
			`:3: Q, RedriveAllowPolicy: it has no redrivePermission: write allowAll, denyAll or byQueue`},
		{"two queues of a name", queue + "QueueName: x}}\n  R: {Type: AWS::SQS::Queue, Properties: {QueueName: x}}",
			`:4: R: Q has the name "x", too: change one`},
		{"unknown reference", queue + "QueueName: !Ref Nme}}",
			`:3: Q, QueueName: there is no resource or parameter "Nme"`},
		{"unknown attribute", queue + "QueueName: !GetAtt Q.Name}}",
			`:3: Q, QueueName: Q, a queue, has no attribute "Name": it has Arn, QueueName and QueueUrl`},
		{"export of another stack", queue + "QueueName: !ImportValue x}}",
			`:3: Q, QueueName: Fn::ImportValue reads another stack, and there is none here: make it a parameter, and pass --param`},
		{"unknown function", queue + "QueueName: !Base64 x}}",
			`:3: Q, QueueName: Fn::Base64 is not known here, or not at this place: Ref, GetAtt, Sub, Join, Split, Select, FindInMap and If are`},
		{"secret", queue + "QueueName: '{{resolve:ssm:name}}'}}",
			`:3: Q, QueueName: "{{resolve:ssm:name}}" is looked up on AWS: make it a parameter, and pass --param`},

		{"secret inside a text", function + "    Environment: {Variables: {PW: !Sub '{{resolve:ssm:/${AWS::Region}}}'}}}}",
			`:5: F, Environment.Variables.PW: "{{resolve:ssm:/eu-west-1}}" is looked up on AWS: make it a parameter, and pass --param`},
		{"secret inside a handler", "\n  F: {Type: AWS::Serverless::Function, Properties: {CodeUri: f, Handler: !Sub '{{resolve:ssm:/${AWS::Region}}}', Runtime: python3.12}}",
			":3: F, Handler: \"{{resolve:ssm:/eu-west-1}}\" is looked up on AWS: make it a parameter, and pass --param"},
		{"attribute of a function", "\n  F: {Type: AWS::Serverless::Function, Properties: {InlineCode: f, Handler: a.b, Runtime: python3.12}}" +
			"\n  Q: {Type: AWS::SQS::Queue, Properties: {QueueName: !GetAtt F.Arm}}",
			`:4: Q, QueueName: F, a function, has no attribute "Arm": it has Arn`},
		{"variable's name", function + "    Environment: {Variables: {A: x}}}}",
			`:5: F, Environment.Variables.A: a variable's name is a letter and then at least one letter, digit or _: choose another`},
		{"event's type", function + "    Events: {E: {Type: Sqs}}}}",
			`:5: F, Events.E.Type: there is no event of type "Sqs" (SQS?): correct it`},

		{"timeout", function + "    MemorySize: 127}}",
			`:5: F, MemorySize: "127" is not a number from 128 to 32768: write one`},
		{"layers", function + "    Layers: [x]}}",
			`:5: F, Layers: layers are not run here: put their content into the function's own code`},
		{"image", function + "    PackageType: Image, ImageUri: x}}",
			":5: F, ImageUri: container images are not run here: give the function a zip package (CodeUri, Handler, Runtime)\n" +
				":5: F, PackageType: container images are not run here: give the function a zip package (CodeUri, Handler, Runtime)"},
		{"reserved", function + "    ReservedConcurrentExecutions: -1}}",
			`:5: F, ReservedConcurrentExecutions: "-1" is not a number from 0 to 100000: write one`},
		{"reserved variable", function + "    Environment: {Variables: {AWS_REGION: x}}}}",
			`:5: F, Environment.Variables.AWS_REGION: AWS sets this variable itself: remove it, or choose another name`},
		{"retries", function + "    EventInvokeConfig: {MaximumRetryAttempts: 9}}}",
			`:5: F, EventInvokeConfig.MaximumRetryAttempts: "9" is not a number from 0 to 2: write one`},
		{"destination elsewhere", function + "    EventInvokeConfig: {DestinationConfig: {OnFailure: {Type: SNS, Destination: x}}}}}",
			`:5: F, EventInvokeConfig.DestinationConfig.OnFailure.Type: "SNS" is not known here: write SQS or Lambda`},
		{"destination without a type", function + "    EventInvokeConfig: {DestinationConfig: {OnFailure: {Destination: x}}}}}",
			`:5: F, EventInvokeConfig.DestinationConfig.OnFailure: it has no Type: write Type: SQS or Type: Lambda`},
		{"destination unknown", function + "    EventInvokeConfig: {DestinationConfig: {OnFailure: {Type: SQS, Destination: x}}}}}",
			`:5: F, EventInvokeConfig.DestinationConfig.OnFailure.Destination: "x" is not a queue or function of this template: add one, and write !GetAtt NAME.Arn`},
		{"destination with a type", "\n  I: {Type: AWS::Lambda::EventInvokeConfig, Properties: {FunctionName: F, Qualifier: $LATEST, DestinationConfig: {OnFailure: {Type: SQS}}}}\n" +
			"  F: {Type: AWS::Serverless::Function, Properties: {CodeUri: f, Handler: h, Runtime: provided}}",
			":3: I, DestinationConfig.OnFailure.Type: there is no such property: correct its name, or remove it\n" +
				":3: I, DestinationConfig.OnFailure: it has no Destination: write !GetAtt QUEUE.Arn, and add the queue"},
		{"destination of another type", function + "    EventInvokeConfig: {DestinationConfig: {OnFailure: {Type: SQS, Destination: !GetAtt G.Arn}}}}}\n" +
			"  G: {Type: AWS::Serverless::Function, Properties: {InlineCode: f, Handler: a.b, Runtime: python3.12}}",
			`:5: F, EventInvokeConfig.DestinationConfig.OnFailure.Type: it is SQS, and the Destination is arn:aws:lambda:eu-west-1:000000000000:function:G: correct one, as SAM permits the function what the Type says`},
		{"destination misspelt", function + "    EventInvokeConfig: {DestinationConfig: {OnFailure: {Type: SQS, Destination: !GetAtt Q.Arn}}}}}",
			`:5: F, EventInvokeConfig.DestinationConfig.OnFailure.Destination: there is no resource or parameter "Q" (F?)`},
		{"no qualifier", "\n  F: {Type: AWS::Serverless::Function, Properties: {InlineCode: f, Handler: a.b, Runtime: python3.12}}" +
			"\n  I: {Type: AWS::Lambda::EventInvokeConfig, Properties: {FunctionName: !Ref F}}",
			`:4: I: it has no Qualifier: write Qualifier: $LATEST`},
		{"FIFO destination", function + "    DeadLetterQueue: {Type: SQS, TargetArn: !GetAtt Q.Arn}}}\n  Q: {Type: AWS::SQS::Queue, Properties: {FifoQueue: true}}",
			`:5: F, DeadLetterQueue.TargetArn: Q is a FIFO queue: Lambda sends to standard ones only`},
		{"runtime", "\n  F: {Type: AWS::Serverless::Function, Properties: {CodeUri: f, Handler: x, Runtime: java21}}",
			`:3: F, Runtime: java21 is not run here: functions for provided.al2023 (Go), python3.x and nodejs22.x and the like are`},
		{"nothing", "\n  F: {Type: AWS::Serverless::Function}",
			":3: F: it has no Runtime: write one, like Runtime: provided.al2023\n:3: F: it has no Handler: write one, like Handler: bootstrap\n:3: F: it has no code: write CodeUri: FOLDER"},
		{"code in S3", "\n  F: {Type: AWS::Lambda::Function, Properties: {Code: {S3Bucket: b}, Handler: x, Runtime: python3.12}}",
			`:3: F, Code.S3Bucket: the code is in S3, from where nothing is fetched: name its folder (Code: FOLDER, which aws cloudformation package uploads)`},
		{"build method", "\n  F: {Type: AWS::Serverless::Function, Metadata: {BuildMethod: esbuild}, Properties: {CodeUri: f, Handler: x, Runtime: nodejs22.x}}",
			`:3: F, Metadata.BuildMethod: esbuild is not known here: write makefile, and a Makefile with the target build-FUNCTION`},

		{"batch of a FIFO queue", mapped("BatchSize: 11", "FifoQueue: true, VisibilityTimeout: 60"),
			`:6: F, Events.E.Properties.BatchSize: "11" is not a number from 1 to 10: write one`},
		{"window of a FIFO queue", mapped("MaximumBatchingWindowInSeconds: 1", "FifoQueue: true, VisibilityTimeout: 60"),
			`:6: F, Events.E.Properties.MaximumBatchingWindowInSeconds: FIFO queues have no batching window: remove it`},
		{"batch without a window", mapped("BatchSize: 11", "VisibilityTimeout: 60"),
			`:5: F, Events.E.Properties.MaximumBatchingWindowInSeconds: Maximum batch window in seconds must be greater than 0 if maximum batch size is greater than 10: write 1 or more`},
		{"visibility", mapped("BatchSize: 1", "VisibilityTimeout: 9"),
			`:5: F, Events.E.Properties: Queue visibility timeout: 9 seconds is less than Function timeout: 10 seconds: give Q a VisibilityTimeout of 60`},
		{"concurrency", mapped("ScalingConfig: {MaximumConcurrency: 1}", "VisibilityTimeout: 60"),
			`:6: F, Events.E.Properties.ScalingConfig.MaximumConcurrency: "1" is not a number from 2 to 1000: write one`},
		{"response type", mapped("FunctionResponseTypes: [ReportItemFailures]", "VisibilityTimeout: 60"),
			`:6: F, Events.E.Properties.FunctionResponseTypes: "ReportItemFailures" is not known here: write ReportBatchItemFailures`},
		{"failed events deleted", function + "    Events: {E: {Type: SQS, Properties: {Queue: !GetAtt Q.Arn}}}}}" +
			"\n  G: {Type: AWS::Serverless::Function, Properties: {CodeUri: f, Handler: h, Runtime: python3.13, EventInvokeConfig: {DestinationConfig: {OnFailure: {Type: SQS, Destination: !GetAtt Q.Arn}}}}}" +
			"\n  Q: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: 60}}",
			`:5: F, Events.E.Properties: Q is the OnFailure destination of G, and failed events that the reply names, as that of a retry handler does, are deleted and lost: add FunctionResponseTypes: [ReportBatchItemFailures]`},
		{"filter", mapped("FilterCriteria: {Filters: [{Pattern: '{'}]}", "VisibilityTimeout: 60"),
			`:6: F, Events.E.Properties.FilterCriteria.Filters[0].Pattern: the pattern is not a JSON object: unexpected end of JSON input`},
		{"mapped twice", mapped("BatchSize: 1", "VisibilityTimeout: 60") +
			"\n  M: {Type: AWS::Lambda::EventSourceMapping, Properties: {EventSourceArn: !GetAtt Q.Arn, FunctionName: F}}",
			`:8: M: F.E maps the queue to the function, too: keep one`},
		{"configured twice", function + "    EventInvokeConfig: {MaximumRetryAttempts: 0}}}\n" +
			"  I: {Type: AWS::Lambda::EventInvokeConfig, Properties: {FunctionName: !GetAtt F.Arn, Qualifier: $LATEST}}",
			`:6: I: F has an EventInvokeConfig already: keep one`},
		{"unknown function's name", "\n  I: {Type: AWS::Lambda::EventInvokeConfig, Properties: {FunctionName: f, Qualifier: $LATEST}}",
			`:3: I, FunctionName: "f" is not a function of this template: add it, or write !Ref FUNCTION`},

		{"absent resource", "\n  Q: {Type: AWS::SQS::Queue, Condition: Never}",
			`:3: Q, Condition: there is no condition "Never": add it to Conditions, or correct the name`},
		{"dependency", "\n  Q: {Type: AWS::SQS::Queue, DependsOn: [R]}",
			`:3: Q, DependsOn: there is no resource "R" (Q?)`},
		{"circle", queue + "QueueName: !Sub '${R.QueueName}-q'}}\n  R: {Type: AWS::SQS::Queue, DependsOn: Q}",
			":4: R, DependsOn: Circular dependency between resources: Q -> R -> Q: take a reference out"},
		{"no type", "\n  Q: {Properties: {}}", `:3: Q: it has no Type: write one, like Type: AWS::SQS::Queue`},
		{"attribute of a resource", "\n  Q: {Type: AWS::SQS::Queue, Property: {}}",
			`:3: Q: a resource has no Property: correct its name, or remove it`},
		{"logical id", "\n  my-q: {Type: AWS::SQS::Queue}", `:3: my-q: "my-q" is not a logical id: write letters and digits`},
		{"misspelt type", "\n  Q: {Type: AWS::Sqs::Queues}", `:3: Q: there is no type AWS::Sqs::Queues (AWS::SQS::Queue?): correct it`},
		{"no such type", "\n  Q: {Type: Queue}", `:3: Q: "Queue" is not a type of a resource: write one, like AWS::SQS::Queue`},
		{"null", queue + "\n    QueueName: }}", `:4: there is no value: CloudFormation takes no null, write one or leave the key out`},
		{"tag", queue + "DelaySeconds: !!int 3}}", `:3: !!int is not a tag of CloudFormation's: remove it`},
		{"alias", "\n  Q: &q\n    Type: AWS::SQS::Queue", `:3: CloudFormation takes no YAML anchors and aliases: write the value out`},
		{"syntax", "\n  Q: {", `:3: this is not YAML: could not find flow mapping end token '}'`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := template.Load([]byte(whole(test.resources)), options("t.yaml"))
			if err == nil {
				t.Fatal("the template was taken")
			}
			if diff := cmp.Diff(test.want, strings.ReplaceAll(err.Error(), "t.yaml", "")); diff != "" {
				t.Errorf("Load (-want +got):\n%s", diff)
			}
		})
	}
}

// mapped is a function on line 3 with an event on line 5, which has a property on
// line 6, and a queue.
func mapped(property, queue string) string {
	return function + "    Events: {E: {Type: SQS, Properties: {Queue: !GetAtt Q.Arn,\n      " + property + "}}}}}\n" +
		"  Q: {Type: AWS::SQS::Queue, Properties: {" + queue + "}}"
}

// TestRefusedAltogether: mistakes outside of resources.
func TestRefusedAltogether(t *testing.T) {
	const queue = "Resources: {Q: {Type: AWS::SQS::Queue}}\n"
	const sam = "Transform: AWS::Serverless-2016-10-31\n"
	for _, test := range []struct{ source, want string }{
		{"", "t.yaml: the template is empty: it needs Resources"},
		{"[]", "t.yaml:1: this is a list: a template is a mapping with Resources"},
		{"Resources: {}", "t.yaml:1: the template has no Resources: there is nothing to run"},
		{queue + "---\n" + queue, "t.yaml:3: a second document begins: a template is one"},
		{queue + "Resource: {}", "t.yaml:2: Resource: a template has no such section (Resources?): correct its name, or remove it"},
		{"\ufeff" + queue + "Resource: {}", "t.yaml:2: Resource: a template has no such section (Resources?): correct its name, or remove it"},
		{"Resources: [Q]", "t.yaml:1: Resources: this is a list: it has to be a mapping"},
		{queue + "Conditions: [A]", "t.yaml:2: Conditions: this is a list: it has to be a mapping"},
		{queue + "Mappings: {A: {b: c}}", "t.yaml:2: Mappings, A.b: this is a single value: it has to be a mapping"},
		{queue + "Parameters: {P: {Type: Sting, Default: x}}", `t.yaml:2: parameter P: "Sting" is not a type of a parameter (String?): write String, Number or CommaDelimitedList`},
		{queue + sam + "Globals: x", "t.yaml:3: Globals: this is a single value: it has to be a mapping"},
		{queue + sam + "Globals: {Functions: {Timeout: 9}}", "t.yaml:3: Globals, Functions: there is no such property (Function?): correct its name, or remove it"},
		{queue + sam + "Globals: {Function: {Timeot: 9}}", "t.yaml:3: Globals, Function.Timeot: there is no such property (Timeout?): correct its name, or remove it"},
		{queue + sam + "Globals: {Function: {Events: {}}}", "t.yaml:3: Globals, Function.Events: SAM does not take it from here: write it into each function"},
		{queue + "Transform: [Macro]", "t.yaml:2: Transform: macros are not run here, only AWS::Serverless-2016-10-31"},
		{queue + "Globals: {Function: {Timeout: 3}}", "t.yaml:2: Globals: only SAM has globals: add Transform: AWS::Serverless-2016-10-31"},
		{queue + "AWSTemplateFormatVersion: 2011-01-01", `t.yaml:2: AWSTemplateFormatVersion: "2011-01-01" is not a version: write 2010-09-09`},
		{queue + "Conditions:\n  A: !Not [!Condition B]\n  B: !Condition A", `t.yaml:4: Conditions, B: the condition "A" depends on itself`},
		{queue + "Conditions:\n  A: !Equals [!Ref Q, x]", `t.yaml:3: Conditions, A: a condition cannot refer to "Q": only to parameters`},
		{"Resources: {F: {Type: AWS::Serverless::Function, Properties: {CodeUri: f, Handler: h, Runtime: python3.12}}}",
			"t.yaml:1: F: AWS::Serverless::Function is one of SAM: add Transform: AWS::Serverless-2016-10-31"},
	} {
		_, err := template.Load([]byte(test.source), options("t.yaml"))
		if err == nil {
			t.Errorf("%q was taken", test.source)
		} else if err.Error() != test.want {
			t.Errorf("Load(%q) = %q, want %q", test.source, err, test.want)
		}
	}
}
