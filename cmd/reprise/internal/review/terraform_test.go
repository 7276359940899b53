package review_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/review"
)

// TestTerraform reads what `terraform show -json` (1.11.4, provider aws 5.100.0) printed about a
// plan for queues with redrive policies that are known, unknown, and resources of their own in
// modules with count and for_each.
func TestTerraform(t *testing.T) {
	text, err := os.ReadFile("testdata/terraform.json")
	if err != nil {
		t.Fatal(err)
	}
	if !review.IsTerraform(text) {
		t.Error("it is not taken for the output of terraform show -json")
	}
	got, err := review.Terraform("plan.json", text)
	if err != nil {
		t.Fatal(err)
	}
	const arn = "arn:aws:sqs:REGION:ACCOUNT:"
	attributes := func(name string, more map[string]string) map[string]string {
		all := map[string]string{
			"QueueArn": arn + name, "VisibilityTimeout": "30", "MessageRetentionPeriod": "345600", "DelaySeconds": "0",
			"FifoQueue": "false", "ContentBasedDeduplication": "false",
		}
		for name, value := range more {
			all[name] = value
		}
		return all
	}
	want := []review.Subject{
		{
			Name: "orders", Source: "plan.json", Unknown: []string{"RedrivePolicy"}, FunctionTimeout: time.Minute,
			Wholesale:  []string{"aws_lambda_event_source_mapping.ship"},
			Attributes: attributes("orders", map[string]string{"VisibilityTimeout": "60", "RedrivePolicy": `{"deadLetterTargetArn":"` + arn + `orders-dead"}`}),
			DeadLetter: attributes("orders-dead", nil),
		},
		{
			Name: "shared", Source: "plan.json",
			Attributes: attributes("shared", map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:123456789012:all-dead","maxReceiveCount":1}`}),
		},
	}
	for _, number := range []string{"0", "1"} {
		for _, key := range []string{"a", "b"} {
			name := "refunds-" + number + "-" + key
			want = append(want, review.Subject{
				Name: name + ".fifo", Source: "plan.json", Unknown: []string{"RedrivePolicy"},
				Attributes: attributes(name+".fifo", map[string]string{"FifoQueue": "true", "RedrivePolicy": `{"deadLetterTargetArn":"` + arn + name + `-dead.fifo"}`}),
				DeadLetter: attributes(name+"-dead.fifo", map[string]string{"FifoQueue": "true", "MessageRetentionPeriod": "1209600"}),
			})
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
}

// TestTerraformWholesale: mappings that ignore which messages failed are noted, and whether these
// are records of failed events, before and after they have ARNs.
func TestTerraformWholesale(t *testing.T) {
	const (
		known = `{"format_version":"1.2","values":{"root_module":{"resources":[
			{"address":"aws_sqs_queue.r","type":"aws_sqs_queue","name":"r","values":{"arn":"A"}},
			{"address":"m","type":"aws_lambda_event_source_mapping","name":"m","values":{"event_source_arn":"A","function_response_types":TYPES}},
			{"address":"i","type":"aws_lambda_function_event_invoke_config","name":"i","values":{"destination_config":[{"on_failure":[{"destination":"TO"}]}]}}]}}}`
		planned = `{"format_version":"1.2","planned_values":{"root_module":{"resources":[
			{"address":"aws_sqs_queue.r","type":"aws_sqs_queue","name":"r","values":{}},
			{"address":"t.m","type":"aws_lambda_event_source_mapping","name":"m","values":{"function_response_types":TYPES}},
			{"address":"t.i","type":"aws_lambda_function_event_invoke_config","name":"i","values":{"destination_config":[{"on_failure":[{}]}]}}]}},
			"resource_changes":[{"address":"t.m","change":{"after_unknown":{"event_source_arn":true}}},
				{"address":"t.i","change":{"after_unknown":{"destination_config":[{"on_failure":[{"destination":true}]}]}}}],
			"configuration":{"root_module":{"resources":[
				{"address":"aws_lambda_event_source_mapping.m","expressions":{"event_source_arn":{"references":["aws_sqs_queue.r.arn"]}}},
				{"address":"aws_lambda_function_event_invoke_config.i","expressions":{"destination_config":[{"on_failure":[{"destination":{"references":["aws_sqs_queue.TO.arn"]}}]}]}}]}}}`
	)
	for _, test := range []struct {
		text, types, to string
		mappings        int
		onFailure       bool
	}{
		{known, "null", "A", 1, true},
		{known, `["ReportBatchItemFailures"]`, "A", 0, true},
		{known, "[]", "B", 1, false},
		{planned, "null", "r", 1, true},
		{planned, `["ReportBatchItemFailures"]`, "r", 0, true},
		{planned, "null", "rr", 1, false},
	} {
		text := strings.NewReplacer("TYPES", test.types, "TO", test.to).Replace(test.text)
		got, err := review.Terraform("p.json", []byte(text))
		if err != nil || len(got) != 1 || len(got[0].Wholesale) != test.mappings || got[0].OnFailure != test.onFailure {
			t.Errorf("%s: %+v, %v, want %d mappings, OnFailure %v", text, got, err, test.mappings, test.onFailure)
		}
	}
}

// TestTerraformRefused: what is not the output of terraform show -json is told apart, and a plan
// without resources is an error.
func TestTerraformRefused(t *testing.T) {
	for _, text := range []string{``, `[]`, `{}`, `{"format_version":"1.2"}`, `{"Resources":{}}`, `Resources: {}`} {
		if review.IsTerraform([]byte(text)) {
			t.Errorf("%q is taken for the output of terraform show -json", text)
		}
	}
	if _, err := review.Terraform("p.json", []byte(`{"format_version":"1.2","values":{}}`)); err == nil {
		t.Error("a state without resources is no error")
	}
}

// FuzzTerraform: whatever the text, there are queues with names or an error.
func FuzzTerraform(f *testing.F) {
	f.Add([]byte(`{"format_version":"1.2","values":{"root_module":{"resources":[{"address":"aws_sqs_queue.a","type":"aws_sqs_queue","name":"a","index":1,"values":{"name":"a","redrive_policy":"{}"}}]}}}`))
	f.Add([]byte(`{"format_version":"1.2","planned_values":{"root_module":{"child_modules":[{"address":"module.m[\"x.]\"]","resources":[{"address":"q","type":"aws_sqs_queue"},{"address":"r","type":"aws_sqs_queue_redrive_policy"}]}]}},
		"resource_changes":[{"address":"r","change":{"after_unknown":{"queue_url":true,"redrive_policy":true}}}],
		"configuration":{"root_module":{"module_calls":{"m":{"module":{"resources":[{"address":"aws_sqs_queue_redrive_policy.","expressions":{"queue_url":{"references":["aws_sqs_queue.[0]"]}}}]}}}}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		subjects, err := review.Terraform("p.json", text)
		if err != nil && len(subjects) > 0 {
			t.Error("queues and an error")
		}
	})
}

// TestTerraformInstances: a reference to one instance of a resource with count or for_each is to that one only, although
// Terraform lists the resource without the index after it.
func TestTerraformInstances(t *testing.T) {
	const text = `{"format_version":"1.2","planned_values":{"root_module":{"resources":[
		{"address":"aws_sqs_queue.dead[\"a\"]","type":"aws_sqs_queue","name":"dead","index":"a","values":{"name":"dead-a","message_retention_seconds":86400}},
		{"address":"aws_sqs_queue.dead[\"b\"]","type":"aws_sqs_queue","name":"dead","index":"b","values":{"name":"dead-b","message_retention_seconds":1209600}},
		{"address":"aws_sqs_queue.q[0]","type":"aws_sqs_queue","name":"q","index":0,"values":{"name":"q-0"}},
		{"address":"aws_sqs_queue.q[1]","type":"aws_sqs_queue","name":"q","index":1,"values":{"name":"q-1"}},
		{"address":"aws_sqs_queue.r","type":"aws_sqs_queue","name":"r","values":{"name":"r"}},
		{"address":"aws_lambda_function.f","type":"aws_lambda_function","name":"f","values":{"timeout":600}},
		{"address":"aws_lambda_function_event_invoke_config.i","type":"aws_lambda_function_event_invoke_config","name":"i","values":{"destination_config":[{"on_failure":[{}]}]}},
		{"address":"aws_lambda_event_source_mapping.m","type":"aws_lambda_event_source_mapping","name":"m","values":{"function_response_types":null}}]}},
		"resource_changes":[
			{"address":"aws_sqs_queue.q[0]","change":{"after_unknown":{"redrive_policy":true}}},
			{"address":"aws_sqs_queue.q[1]","change":{"after_unknown":{"redrive_policy":true}}},
			{"address":"aws_sqs_queue.r","change":{"after_unknown":{"redrive_policy":true}}},
			{"address":"aws_lambda_function_event_invoke_config.i","change":{"after_unknown":{"destination_config":[{"on_failure":[{"destination":true}]}]}}},
			{"address":"aws_lambda_event_source_mapping.m","change":{"after_unknown":{"event_source_arn":true,"function_name":true}}}],
		"configuration":{"root_module":{"resources":[
			{"address":"aws_sqs_queue.q","expressions":{"redrive_policy":{"references":["aws_sqs_queue.dead[\"b\"].arn","aws_sqs_queue.dead[\"b\"]","aws_sqs_queue.dead"]}}},
			{"address":"aws_sqs_queue.r","expressions":{"redrive_policy":{"references":["aws_sqs_queue.dead[\"b\"].arn","aws_sqs_queue.dead[\"b\"]","aws_sqs_queue.dead"]}}},
			{"address":"aws_lambda_function_event_invoke_config.i","expressions":{"destination_config":[{"on_failure":[{"destination":{"references":["aws_sqs_queue.q[1].arn","aws_sqs_queue.q[1]","aws_sqs_queue.q"]}}]}]}},
			{"address":"aws_lambda_event_source_mapping.m","expressions":{
				"event_source_arn":{"references":["aws_sqs_queue.q[1].arn","aws_sqs_queue.q[1]","aws_sqs_queue.q"]},
				"function_name":{"references":["aws_lambda_function.f.arn","aws_lambda_function.f"]}}}]}}}`
	got, err := review.Terraform("p.json", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	type queue struct {
		Name, DeadRetention string
		FunctionTimeout     time.Duration
		Mappings            int
		OnFailure           bool
	}
	var queues []queue
	for _, s := range got {
		queues = append(queues, queue{s.Name, s.DeadLetter["MessageRetentionPeriod"], s.FunctionTimeout, len(s.Wholesale), s.OnFailure})
	}
	if diff := cmp.Diff([]queue{
		{"dead-a", "", 0, 0, false}, // nothing shows that it takes dead letters
		{"q-0", "1209600", 0, 0, false},
		{"q-1", "1209600", 10 * time.Minute, 1, true},
		{"r", "1209600", 0, 0, false},
	}, queues); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
}
