// Command flaky is an AWS Lambda function that fails at will: something to try
// retries with. Deploy it, or run it locally, with
// examples/asynclambda/template.yaml.
//
// Its payload decides how it fails; the environment has the defaults for the members
// that the payload leaves out:
//
//		{"id": "o-1", "fail_until": 4, "fail_percent": 0, "how": "error"}
//
//	  - fail_until, FAIL_UNTIL: attempts before this one fail. Default: 0, none.
//	  - fail_percent, FAIL_PERCENT: so many percent of the others fail. Default: 0.
//	  - how, FAIL_HOW: "error" returns one, "panic" panics, "exit" ends the process
//	    and "hang" waits for the function's timeout. Default: error.
//
// In direct mode every attempt is the first to the function: use fail_percent there.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/reprise-sqs/reprise/repriselambda"
)

func main() {
	defaults, err := fromEnvironment(os.Getenv)
	if err != nil {
		slog.Error("the environment is not understood", "error", err)
		os.Exit(1)
	}
	lambda.Start(repriselambda.Async(lambda.NewHandler(defaults.handle)))
}

// event is the function's payload.
type event struct {
	ID          string `json:"id"`
	FailUntil   *int   `json:"fail_until"`
	FailPercent *int   `json:"fail_percent"`
	How         string `json:"how"`
}

// defaults decide about an event that does not.
type defaults struct {
	failUntil, failPercent int
	how                    string
}

// fromEnvironment reads the defaults of a function.
func fromEnvironment(get func(string) string) (defaults, error) {
	t := defaults{how: "error"}
	for name, number := range map[string]*int{"FAIL_UNTIL": &t.failUntil, "FAIL_PERCENT": &t.failPercent} {
		text := get(name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return defaults{}, fmt.Errorf("%s is %q: set it to a whole number", name, text)
		}
		*number = n
	}
	if how := get("FAIL_HOW"); how != "" {
		t.how = how
	}
	if !known(t.how) {
		return defaults{}, fmt.Errorf("FAIL_HOW is %q: set it to error, panic, exit or hang", t.how)
	}
	return t, nil
}

func known(how string) bool {
	switch how {
	case "error", "panic", "exit", "hang":
		return true
	}
	return false
}

// done is the function's result.
type done struct {
	ID      string `json:"id"`
	Attempt int    `json:"attempt"`
}

// handle does nothing, and fails at will.
func (t defaults) handle(ctx context.Context, e event) (done, error) {
	attempt := repriselambda.AttemptFrom(ctx)
	t = t.of(e)
	if !known(t.how) {
		return done{}, fmt.Errorf("how is %q: set it to error, panic, exit or hang", t.how)
	}
	if attempt.Number >= t.failUntil && rand.IntN(100) >= t.failPercent {
		slog.InfoContext(ctx, "done", "id", e.ID, "attempt", attempt.Number)
		return done{ID: e.ID, Attempt: attempt.Number}, nil
	}
	slog.WarnContext(ctx, "failing", "id", e.ID, "attempt", attempt.Number, "how", t.how)
	switch t.how {
	case "panic":
		panic(fmt.Sprintf("attempt %d of %q", attempt.Number, e.ID))
	case "exit":
		os.Exit(3)
	case "hang":
		select {}
	}
	return done{}, fmt.Errorf("attempt %d of %q failed, as it was asked to", attempt.Number, e.ID)
}

// of returns t with the settings of the event.
func (t defaults) of(e event) defaults {
	if e.FailUntil != nil {
		t.failUntil = *e.FailUntil
	}
	if e.FailPercent != nil {
		t.failPercent = *e.FailPercent
	}
	if e.How != "" {
		t.how = e.How
	}
	return t
}
