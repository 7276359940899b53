package main

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/reprise-sqs/reprise/repriselambda"
)

// The line of docs/lambda.md: a function of the user's, of any shape that
// lambda.Start takes, under Async.
var _ = func(handle func(context.Context, event) error) {
	lambda.Start(repriselambda.Async(lambda.NewHandler(handle)))
}

// TestFlaky: the function fails as its payload says, else as its environment does,
// and counts the attempts of the envelope.
func TestFlaky(t *testing.T) {
	retry := func(n, payload string) string {
		return `{"_retry_metadata":{"attempt":` + n + `,"initial_timestamp":1643667670},"_original_payload":` + payload + `}`
	}
	for _, test := range []struct {
		name, environment, event string
		want                     string // of the result or the error, or of a panic
	}{
		{"succeeds", "", `{"id":"o-1"}`, `{"id":"o-1","attempt":1}`},
		{"first attempt", "", `{"id":"o-1","fail_until":3}`, `attempt 1 of "o-1" failed`},
		{"second attempt", "", retry("1", `{"id":"o-1","fail_until":3}`), `attempt 2 of "o-1" failed`},
		{"third attempt", "", retry("2", `{"id":"o-1","fail_until":3}`), `{"id":"o-1","attempt":3}`},
		{"environment", "FAIL_UNTIL=2", `{}`, `attempt 1 of "" failed`},
		{"payload wins", "FAIL_UNTIL=2 FAIL_PERCENT=100", `{"fail_until":0,"fail_percent":0}`, `{"id":"","attempt":1}`},
		{"always", "FAIL_PERCENT=100", retry("30", `{}`), `attempt 31 of "" failed`},
		{"panics", "FAIL_UNTIL=2 FAIL_HOW=panic", `{}`, `panic: attempt 1 of ""`},
		{"unknown defaults", "", `{"how":"softly"}`, `how is "softly": set it to error, panic, exit or hang`},
		{"unknown defaults in the environment", "FAIL_HOW=softly", `{}`, `FAIL_HOW is "softly": set it to error, panic, exit or hang`},
		{"no number", "FAIL_UNTIL=two", `{}`, `FAIL_UNTIL is "two": set it to a whole number`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := outcome(t, test.environment, test.event); !strings.HasPrefix(got, test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func outcome(t *testing.T, environment, payload string) (got string) {
	variables := make(map[string]string)
	for assignment := range strings.FieldsSeq(environment) {
		name, value, _ := strings.Cut(assignment, "=")
		variables[name] = value
	}
	defaults, err := fromEnvironment(func(name string) string { return variables[name] })
	if err != nil {
		return err.Error()
	}
	defer func() {
		if p := recover(); p != nil {
			got = "panic: " + p.(string)
		}
	}()
	result, err := repriselambda.Async(lambda.NewHandler(defaults.handle)).Invoke(t.Context(), []byte(payload))
	if err != nil {
		return err.Error()
	}
	return string(result)
}
