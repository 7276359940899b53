package main

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/template"
	"github.com/reprise-sqs/reprise/repriselambda"
)

// TestTemplatesSetTheEnvironment: what the templates set is understood, and nothing
// of it is overlooked. The template to deploy sets every variable but the concurrency,
// whose default fits its batches, and the functions that are allowed, which are those
// of its role.
func TestTemplatesSetTheEnvironment(t *testing.T) {
	const handler = "RetryHandler" // the function that is retried is in no template: the handler stands for it
	unset := map[string]bool{"CONCURRENCY": true, "AWS_LAMBDA_FUNCTION_NAME": true, "ALLOWED_FUNCTIONS": true}
	for name, test := range map[string]struct {
		file       string
		parameters map[string]string
		unset      map[string]bool
		mode       repriselambda.Mode
		keys       int
	}{
		"envelope": {
			file: "deploy/sam/template.yaml", mode: repriselambda.ModeEnvelope,
			parameters: map[string]string{"FunctionName": handler, "BaseBackoff": "2", "MaxRetries": "10", "MaxAge": "36h"},
			unset:      map[string]bool{"CONCURRENCY": true, "AWS_LAMBDA_FUNCTION_NAME": true, "ALLOWED_FUNCTIONS": true, "TARGET_TIMEOUT": true, "IDEMPOTENCY_TABLE": true},
		},
		"direct": {
			file: "deploy/sam/template.yaml", mode: repriselambda.ModeDirect, unset: unset,
			parameters: map[string]string{
				"FunctionName": handler, "Mode": "direct", "RetryPolicy": "exponential(base=2s,max=1h) jitter=full attempts=10 age=12h",
				"RetryConfig": `{"functions":{"orders":"constant(1m) attempts=3"}}`, "Idempotency": "true",
				"SigningKeys": "2026-11:" + strings.Repeat("s", 32) + "\n2026-10:" + strings.Repeat("t", 32),
			},
			keys: 2,
		},
		"example": {
			file: "examples/asynclambda/template.yaml", mode: repriselambda.ModeEnvelope,
			unset: map[string]bool{
				"CONCURRENCY": true, "AWS_LAMBDA_FUNCTION_NAME": true, "ALLOWED_FUNCTIONS": true, "REPRISE_SIGNING_KEYS": true, "TARGET_TIMEOUT": true,
				"MODE": true, "RETRY_POLICY": true, "RETRY_CONFIG": true,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			variables := templateVariables(t, test.file, test.parameters)
			missing := make(map[string]bool)
			given := maps.Clone(variables)
			got, err := read(func(name string) string {
				value, ok := given[name]
				if !ok {
					missing[name] = true
				}
				delete(variables, name)
				return value
			})
			if err != nil {
				t.Fatal(err)
			}
			if got.retry.Mode != test.mode {
				t.Errorf("the mode is %v, want %v", got.retry.Mode, test.mode)
			}
			if n := len(got.retry.SigningKeys); n != test.keys {
				t.Errorf("%d signing keys, want %d", n, test.keys)
			}
			if diff := cmp.Diff(test.unset, missing); diff != "" {
				t.Errorf("the variables that the template does not set (-want +got):\n%s", diff)
			}
			if len(variables) > 0 {
				t.Errorf("the template sets %v, which nobody reads", variables)
			}
		})
	}
}

// templateVariables are the handler's, as a template sets them.
func templateVariables(t *testing.T, file string, parameters map[string]string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../..", file))
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := template.Load(text, template.Options{
		File: file, Parameters: parameters, Region: "eu-central-1", AccountID: "123456789012",
		QueueURL: func(queue string) string { return "http://sqs/" + queue },
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range loaded.Functions {
		if f.ID == "RetryHandler" {
			return f.Environment
		}
	}
	t.Fatalf("%s has no function RetryHandler", file)
	return nil
}
