package playground_test

// Holds off: a link whose form would take the processor and the memory of a process that has queues to serve.

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/playground"
)

// TestAttackPlaygroundForm: a form that would have more than 400,000 attempts simulated is refused before any is, for
// each way to have many. What people ask is answered: the limit of time here cuts each simulation short at once.
func TestAttackPlaygroundForm(t *testing.T) {
	for query, refused := range map[string]bool{
		"": false,
		"policy=exponential(base=1s)+attempts=30&against=constant(1m)&breaker=compare": false,
		"messages=50000&rate=0&failing=80%25":                                          false,
		"capacity=5":                                                                   false,
		"policy=constant(1s)+attempts=unlimited+age=24h&failing=20%25":                 false,
		"messages=50000&rate=0&failing=100%25":                                         true,
		"policy=constant(1s)+attempts=100000&messages=5&rate=0&failing=100%25":         true,
		"policy=constant(1ms)+attempts=unlimited+age=336h&messages=50&failing=100%25":  true,
		"policy=constant(1ms)+attempts=90000&breaker=compare":                          true,
		"policy=constant(1ms)+attempts=90000&capacity=1e-300":                          true,
		"against=constant(1ms)+attempts=90000&failing=99.99%25":                        true,
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		form, problems := playground.Read(values)
		if len(problems) > 0 {
			t.Fatalf("%s: %v", query, problems)
		}
		a, err := playground.Ask(t.Context(), form, playground.Settings{Limit: time.Nanosecond})
		if (err != nil) != refused || err != nil && !strings.Contains(err.Error(), "a page simulates 400000 at most") || !refused && len(a.Runs) == 0 {
			t.Errorf("%s: %v, want it refused: %v", query, err, refused)
		}
	}
}

// TestAttackPlaygroundPolicy: a policy of so many attempts that a look at each takes long cannot be used.
func TestAttackPlaygroundPolicy(t *testing.T) {
	for _, field := range []string{"policy", "against"} {
		if _, problems := playground.Read(url.Values{field: {"constant(1s) attempts=1000000000"}}); len(problems) != 1 || problems[0].Field != field || !strings.Contains(problems[0].Text, "up to 100000") {
			t.Errorf("%s: %v, want a problem that says how many", field, problems)
		}
	}
}
