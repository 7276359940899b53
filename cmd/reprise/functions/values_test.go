package functions_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// values are what a deployment says of its parts, by part and by the path of the
// property in CloudFormation. What refers to another part is reference.
type values map[string]map[string]string

const reference = "(another part)"

// kinds are the types of parts that are compared, with the properties in which
// they have to agree, and what Terraform calls them.
var kinds = map[string]struct {
	terraform  string
	properties map[string]string
}{
	"AWS::SQS::Queue": {"aws_sqs_queue", map[string]string{
		"MessageRetentionPeriod":        "message_retention_seconds",
		"VisibilityTimeout":             "visibility_timeout_seconds",
		"SqsManagedSseEnabled":          "sqs_managed_sse_enabled",
		"RedrivePolicy.maxReceiveCount": "redrive_policy.maxReceiveCount",
	}},
	"AWS::Lambda::EventInvokeConfig": {"aws_lambda_function_event_invoke_config", map[string]string{
		"Qualifier":                               "qualifier",
		"MaximumRetryAttempts":                    "maximum_retry_attempts",
		"MaximumEventAgeInSeconds":                "maximum_event_age_in_seconds",
		"DestinationConfig.OnFailure.Destination": "destination_config.on_failure.destination",
	}},
	"AWS::Lambda::Function": {"aws_lambda_function", map[string]string{
		"Handler":                                     "handler",
		"Runtime":                                     "runtime",
		"Architectures":                               "architectures",
		"MemorySize":                                  "memory_size",
		"Timeout":                                     "timeout",
		"RecursiveLoop":                               "recursive_loop",
		"Environment.Variables.MODE":                  "environment.variables.MODE",
		"Environment.Variables.TARGET_TIMEOUT":        "environment.variables.TARGET_TIMEOUT",
		"Environment.Variables.BASE_BACKOFF":          "environment.variables.BASE_BACKOFF",
		"Environment.Variables.MAX_RETRIES":           "environment.variables.MAX_RETRIES",
		"Environment.Variables.MAX_AGE":               "environment.variables.MAX_AGE",
		"Environment.Variables.RETRY_POLICY":          "environment.variables.RETRY_POLICY",
		"Environment.Variables.RETRY_CONFIG":          "environment.variables.RETRY_CONFIG",
		"Environment.Variables.DEAD_LETTER_QUEUE_URL": "environment.variables.DEAD_LETTER_QUEUE_URL",
		"Environment.Variables.IDEMPOTENCY_TABLE":     "environment.variables.IDEMPOTENCY_TABLE",
		"Environment.Variables.REPRISE_SIGNING_KEYS":  "environment.variables.REPRISE_SIGNING_KEYS",
	}},
	"AWS::Lambda::EventSourceMapping": {"aws_lambda_event_source_mapping", map[string]string{
		"EventSourceArn":                   "event_source_arn",
		"BatchSize":                        "batch_size",
		"FunctionResponseTypes":            "function_response_types",
		"ScalingConfig.MaximumConcurrency": "scaling_config.maximum_concurrency",
	}},
	"AWS::Logs::LogGroup": {"aws_cloudwatch_log_group", map[string]string{
		"RetentionInDays": "retention_in_days",
	}},
	"AWS::DynamoDB::Table": {"aws_dynamodb_table", map[string]string{
		"BillingMode":                           "billing_mode",
		"TimeToLiveSpecification.AttributeName": "ttl.attribute_name",
		"TimeToLiveSpecification.Enabled":       "ttl.enabled",
	}},
	"AWS::CloudWatch::Alarm": {"aws_cloudwatch_metric_alarm", map[string]string{
		"AlarmDescription":   "alarm_description",
		"Namespace":          "namespace",
		"MetricName":         "metric_name",
		"Statistic":          "statistic",
		"Period":             "period",
		"EvaluationPeriods":  "evaluation_periods",
		"DatapointsToAlarm":  "datapoints_to_alarm",
		"Threshold":          "threshold",
		"ComparisonOperator": "comparison_operator",
		"TreatMissingData":   "treat_missing_data",
	}},
}

// add takes down a part of a deployment, given its properties by their paths.
func (v values) add(kind string, properties map[string]string) {
	kept := make(map[string]string)
	for path := range kinds[kind].properties {
		if value := properties[path]; value != "" {
			kept[path] = value
		}
	}
	part := kind
	switch {
	case kind == "AWS::CloudWatch::Alarm":
		part += " " + kept["MetricName"]
	case kept["RedrivePolicy.maxReceiveCount"] != "":
		part += " for retries"
	}
	if v[part] == nil {
		v[part] = make(map[string]string)
	}
	maps.Copy(v[part], kept)
}

// permit takes down a statement of a policy.
func (v values) permit(sid string, actions []string) {
	slices.Sort(actions)
	v["permission "+sid] = map[string]string{"Action": strings.Join(actions, " ")}
}

// stack is a template of CloudFormation.
type stack struct {
	Parameters map[string]struct{ Default any }
	Mappings   map[string]map[string]map[string]any
	Conditions map[string]any
	Resources  map[string]struct {
		Type       string
		Condition  string
		Properties map[string]any
	}

	set map[string]string // parameters that have been set
}

func readStack(t *testing.T, path string, set map[string]string) *stack {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if text, err = yaml.YAMLToJSON(text); err != nil { // JSON is YAML too
		t.Fatal(err)
	}
	s := &stack{set: set}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // as they are written
	if err := decoder.Decode(s); err != nil {
		t.Fatal(err)
	}
	return s
}

// values returns what the stack comes to.
func (s *stack) values() values {
	found := make(values)
	for _, r := range s.Resources {
		if r.Condition != "" && !s.holds(map[string]any{"Condition": r.Condition}) {
			continue
		}
		properties := s.resolve(r.Properties).(map[string]any)
		if _, compared := kinds[r.Type]; compared {
			flat := make(map[string]string)
			flatten(flat, "", properties)
			found.add(r.Type, flat)
		}
		documents := []any{properties["PolicyDocument"]}
		for _, policy := range list(properties["Policies"]) {
			documents = append(documents, policy.(map[string]any)["PolicyDocument"])
		}
		for _, document := range documents {
			found.permitAll(document)
		}
	}
	return found
}

func (v values) permitAll(document any) {
	policy, _ := document.(map[string]any)
	for _, statement := range list(policy["Statement"]) {
		st := statement.(map[string]any)
		var actions []string
		for _, action := range list(st["Action"]) {
			actions = append(actions, fmt.Sprint(action))
		}
		v.permit(fmt.Sprint(st["Sid"]), actions)
	}
}

// list is v as a list: of one, if it is none, and of nothing if it is not there.
func list(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	}
	return []any{v}
}

// noValue is what a property is that is not there.
type noValue struct{}

// resolve carries out the functions in a part of the template.
func (s *stack) resolve(v any) any {
	switch v := v.(type) {
	case []any:
		var items []any
		for _, item := range v {
			if item = s.resolve(item); item != (noValue{}) {
				items = append(items, item)
			}
		}
		return items
	case map[string]any:
		if len(v) == 1 {
			for name, arguments := range v {
				if name == "Ref" || strings.HasPrefix(name, "Fn::") {
					return s.call(name, arguments)
				}
			}
		}
		members := make(map[string]any)
		for name, member := range v {
			if member = s.resolve(member); member != (noValue{}) {
				members[name] = member
			}
		}
		return members
	}
	return v
}

func (s *stack) call(name string, arguments any) any {
	switch name {
	case "Ref":
		if arguments == "AWS::NoValue" {
			return noValue{}
		}
		parameter, ok := s.Parameters[arguments.(string)]
		if !ok {
			return reference
		}
		if value, ok := s.set[arguments.(string)]; ok {
			return value
		}
		return cmp.Or(parameter.Default, any(reference))
	case "Fn::If":
		branch := 2
		if s.holds(map[string]any{"Condition": arguments.([]any)[0]}) {
			branch = 1
		}
		return s.resolve(arguments.([]any)[branch])
	case "Fn::FindInMap":
		keys := s.resolve(arguments).([]any)
		return s.Mappings[keys[0].(string)][keys[1].(string)][keys[2].(string)]
	case "Fn::Join":
		joined := s.resolve(arguments).([]any)
		var texts []string
		for _, item := range list(joined[1]) {
			texts = append(texts, fmt.Sprint(item))
		}
		return strings.Join(texts, joined[0].(string))
	}
	return reference
}

// holds evaluates a condition.
func (s *stack) holds(condition any) bool {
	for name, arguments := range condition.(map[string]any) {
		switch name {
		case "Condition":
			return s.holds(s.Conditions[arguments.(string)])
		case "Fn::Not":
			return !s.holds(arguments.([]any)[0])
		case "Fn::Equals":
			sides := s.resolve(arguments).([]any)
			return fmt.Sprint(sides[0]) == fmt.Sprint(sides[1])
		}
	}
	panic(fmt.Sprintf("the condition %v is not known to this test", condition))
}

// flatten writes the leaves of v under their paths. Lists of plain values are one.
func flatten(into map[string]string, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			flatten(into, strings.TrimPrefix(path+"."+name, "."), member)
		}
	default:
		into[path] = strings.Trim(fmt.Sprint(v), "[]")
	}
}

// settings are deployments that are compared: their parameters in the SAM template.
var settings = map[string]map[string]string{
	"as it comes": {"FunctionName": "orders", "FunctionRoleName": "orders-role"},
	"direct":      {"FunctionName": "orders", "FunctionRoleName": "orders-role", "Mode": "direct", "Idempotency": "true"},
}

// deployed returns what the SAM template comes to, with a check that nothing of
// it is overlooked.
func deployed(t *testing.T, setting string) values {
	t.Helper()
	v := readStack(t, filepath.Join(root, plain), settings[setting]).values()
	parts := slices.Sorted(maps.Keys(v))
	want := []string{
		"AWS::CloudWatch::Alarm ApproximateAgeOfOldestMessage", "AWS::CloudWatch::Alarm ApproximateNumberOfMessagesNotVisible",
		"AWS::CloudWatch::Alarm ApproximateNumberOfMessagesVisible", "AWS::CloudWatch::Alarm DestinationDeliveryFailures", "AWS::CloudWatch::Alarm Errors",
		"AWS::CloudWatch::Alarm Throttles",
		"AWS::Lambda::EventInvokeConfig", "AWS::Lambda::EventSourceMapping", "AWS::Lambda::Function", "AWS::Logs::LogGroup",
		"AWS::SQS::Queue", "AWS::SQS::Queue for retries",
		"permission DeadLetterQueue", "permission Destination", "permission Function", "permission Logs", "permission RetryQueue",
	}
	if settings[setting]["Idempotency"] == "true" {
		want = append(want, "AWS::DynamoDB::Table", "permission IdempotencyTable")
		slices.Sort(want)
	}
	if !slices.Equal(parts, want) {
		text, _ := json.MarshalIndent(v, "", " ")
		t.Fatalf("the template comes to the parts\n%q, want\n%q:\n%s", parts, want, text)
	}
	return v
}
