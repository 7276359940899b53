package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/repriselambda"
	"github.com/reprise-sqs/reprise/retry"
)

// environment has the settings of the environment variables.
type environment struct {
	retry repriselambda.RetryConfig // but for its clients
	table string                    // of the idempotency store; empty: none
}

// read reads the environment. Its error names every variable that is not valid.
func read(getenv func(string) string) (environment, error) {
	r := reader{getenv: getenv}
	env := environment{table: getenv("IDEMPOTENCY_TABLE")}
	document := r.document()
	env.retry = repriselambda.RetryConfig{
		Mode:          r.mode(),
		Retry:         r.policy(),
		Functions:     document.Functions,
		Permanent:     document.Permanent,
		DeadLetterURL: getenv("DEAD_LETTER_QUEUE_URL"),
		Concurrency:   r.number("CONCURRENCY", 1, 0),
		Name:          getenv("AWS_LAMBDA_FUNCTION_NAME"),

		AllowedFunctions: r.list("ALLOWED_FUNCTIONS"),
		SigningKeys:      r.keys("REPRISE_SIGNING_KEYS"),
	}
	switch timeout := r.duration("TARGET_TIMEOUT"); {
	case env.retry.Mode == repriselambda.ModeDirect && timeout == 0:
		r.bad("TARGET_TIMEOUT", "direct mode waits for the functions", "set the longest timeout of these functions, such as 60")
	default:
		env.retry.Timeout = timeout
	}
	return env, errors.Join(r.problems...)
}

// reader reads variables and collects their problems.
type reader struct {
	getenv   func(string) string
	problems []error
}

// bad notes a variable that is not valid.
func (r *reader) bad(name, problem, remedy string) {
	r.problems = append(r.problems, fmt.Errorf("%s is %q: %s; %s", name, r.getenv(name), problem, remedy))
}

func (r *reader) mode() repriselambda.Mode {
	for _, mode := range []repriselambda.Mode{repriselambda.ModeEnvelope, repriselambda.ModeDirect} {
		if r.getenv("MODE") == mode.String() {
			return mode
		}
	}
	if r.getenv("MODE") != "" {
		r.bad("MODE", "there is no such mode", "set envelope or direct, or leave it out for envelope")
	}
	return repriselambda.ModeEnvelope
}

// policy reads RETRY_POLICY or the three variables in its place.
func (r *reader) policy() retry.Policy {
	p := repriselambda.DefaultRetry()
	if text := r.getenv("RETRY_POLICY"); text != "" {
		for _, name := range []string{"BASE_BACKOFF", "MAX_RETRIES", "MAX_AGE"} {
			if r.getenv(name) != "" {
				r.bad(name, "RETRY_POLICY is set too", "set one of the two")
			}
		}
		p = retry.Policy{}
		if err := p.UnmarshalText([]byte(text)); err != nil {
			r.bad("RETRY_POLICY", err.Error(), `write it like "exponential(base=2s,max=1h) jitter=full attempts=10 age=12h"`)
		}
		return p
	}
	if base := r.duration("BASE_BACKOFF"); base > 0 {
		p.Backoff = retry.Exponential{Base: base, Max: max(base, retry.MaxVisibility)}
	}
	if retries := r.number("MAX_RETRIES", 0, -1); retries >= 0 {
		p.MaxAttempts = retries + 1
	}
	if age := r.duration("MAX_AGE"); age > 0 {
		p.MaxAge = age
	}
	return p
}

// document is the content of RETRY_CONFIG.
type document struct {
	Functions map[string]retry.Policy `json:"functions"`
	Permanent []string                `json:"permanent"`
}

// document reads RETRY_CONFIG.
func (r *reader) document() (d document) {
	text := r.getenv("RETRY_CONFIG")
	if text == "" {
		return d
	}
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		file, err := os.ReadFile(text)
		if err != nil {
			r.bad("RETRY_CONFIG", err.Error(), `set {"functions": {"NAME or ARN": "POLICY"}}, or the path of a file with that`)
			return d
		}
		text = string(file)
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&d)
	if err == nil {
		_, err = decoder.Token()
	}
	if !errors.Is(err, io.EOF) {
		problem := "text follows the document"
		if err != nil {
			problem = err.Error()
		}
		r.bad("RETRY_CONFIG", problem, `write it like {"functions": {"orders": "exponential(base=2s) jitter=full age=12h"}, "permanent": ["ValidationError"]}`)
	}
	return d
}

// list reads items that are separated by commas.
func (r *reader) list(name string) (items []string) {
	for item := range strings.SplitSeq(r.getenv(name), ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// keys reads signing keys. Its errors do not contain the text.
func (r *reader) keys(name string) []reprise.SigningKey {
	text := r.getenv(name)
	if text == "" {
		return nil
	}
	keys, err := reprise.ParseSigningKeys(text)
	if err != nil {
		r.problems = append(r.problems, fmt.Errorf("%s: %w", name, err))
	}
	return keys
}

// number reads a whole number of at least least; it is standard if the variable is not set.
func (r *reader) number(name string, least, standard int) int {
	text := r.getenv(name)
	if text == "" {
		return standard
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > 1_000_000 {
		r.bad(name, "it is not a whole number within the bounds", fmt.Sprintf("set %d to 1000000, or leave it out", least))
		return standard
	}
	return n
}

// duration reads a positive duration, in seconds unless it has a unit; zero if the variable
// is not set.
func (r *reader) duration(name string) time.Duration {
	text := r.getenv(name)
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if seconds, notSeconds := strconv.ParseInt(text, 10, 32); notSeconds == nil {
		d, err = time.Duration(seconds)*time.Second, nil
	}
	if err != nil || d <= 0 || d > maxDuration {
		r.bad(name, "it is not a duration above zero and up to a year", "set seconds, like 90, or one like 90s, 10m or 24h, or leave it out")
		return 0
	}
	return d
}

const maxDuration = 366 * 24 * time.Hour
