package emulator

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"time"
)

// Lambda's defaults and limits.
// https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
const (
	defaultTimeout     = 3 * time.Second
	maxTimeout         = 15 * time.Minute
	defaultMemory      = 128
	unreservedLimit    = 10
	defaultRetries     = 2
	minEventAge        = time.Minute
	maxEventAge        = 6 * time.Hour
	defaultIdleTimeout = 10 * time.Minute
)

var (
	functionName  = regexp.MustCompile(`^[a-zA-Z0-9-_]{1,64}$`)
	regionName    = regexp.MustCompile(`^` + regionPattern + `$`)
	accountNumber = regexp.MustCompile(`^` + accountPattern + `$`)
)

func (c Config) withDefaults() Config {
	if c.Region == "" {
		c.Region = "us-east-1"
	}
	if c.AccountID == "" {
		c.AccountID = "000000000000"
	}
	if c.TimeScale == 0 {
		c.TimeScale = 1
	}
	if c.IdleTimeout == 0 {
		c.IdleTimeout = defaultIdleTimeout
	}
	if c.Log == nil {
		c.Log = func(Line) {}
	}
	return c
}

func (c *Config) validate() error {
	var problems []error
	if !regionName.MatchString(c.Region) {
		problems = append(problems, fmt.Errorf("Region is %q, with which no ARN of a function can be invoked: pass one like us-east-1", c.Region))
	}
	if !accountNumber.MatchString(c.AccountID) {
		problems = append(problems, fmt.Errorf("AccountID is %q, with which no ARN of a function can be invoked: pass 12 digits", c.AccountID))
	}
	if !(c.TimeScale > 0) || math.IsInf(c.TimeScale, 1) { // NaN is not above 0 either
		problems = append(problems, fmt.Errorf("TimeScale is %v: pass how many times faster AWS's minutes pass, such as 60", c.TimeScale))
	}
	if c.IdleTimeout < 0 {
		problems = append(problems, fmt.Errorf("IdleTimeout is %v: pass a positive duration", c.IdleTimeout))
	}
	seen := make(map[string]bool)
	for _, f := range c.Functions {
		if seen[f.Name] {
			problems = append(problems, fmt.Errorf("function %q is given twice: keep one", f.Name))
		}
		seen[f.Name] = true
		problems = append(problems, f.validate(c.Send != nil))
	}
	return errors.Join(problems...)
}

func (f Function) withDefaults() Function {
	if f.Handler == "" {
		f.Handler = "bootstrap"
	}
	if f.Runtime == "" {
		f.Runtime = "provided.al2023"
	}
	if f.Timeout == 0 {
		f.Timeout = defaultTimeout
	}
	if f.MemorySize == 0 {
		f.MemorySize = defaultMemory
	}
	if f.PerInstance == 0 {
		f.PerInstance = 1
	}
	if dir, err := filepath.Abs(f.Dir); err == nil {
		f.Dir = dir
	}
	if f.Async.MaxRetryAttempts == nil {
		f.Async.MaxRetryAttempts = new(defaultRetries)
	}
	if f.Async.MaxEventAge == 0 {
		f.Async.MaxEventAge = maxEventAge
	}
	return f
}

// validate returns every problem of f, whose defaults are not filled in yet.
func (f Function) validate(canSend bool) error {
	var problems []error
	problem := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("function %q: "+format, append([]any{f.Name}, args...)...))
	}
	if !functionName.MatchString(f.Name) {
		problem("the name must be 1 to 64 letters, digits, hyphens and underscores")
	}
	if len(f.Command) == 0 || f.Command[0] == "" {
		problem("Command is empty: pass the program that starts an instance, such as ./bootstrap")
	}
	if f.Dir == "" {
		problem("Dir is empty: pass the folder of the function's code")
	}
	if f.Timeout < 0 || f.Timeout > maxTimeout {
		problem("Timeout is %v: pass up to %v", f.Timeout, maxTimeout)
	}
	if f.MemorySize < 0 {
		problem("MemorySize is %d: pass MiB from 128 up", f.MemorySize)
	}
	if f.PerInstance < 0 {
		problem("PerInstance is %d: pass how many invokes an instance handles at once", f.PerInstance)
	}
	if n := f.Async.MaxRetryAttempts; n != nil && (*n < 0 || *n > 2) {
		problem("MaxRetryAttempts is %d: Lambda takes 0, 1 or 2", *n)
	}
	if age := f.Async.MaxEventAge; age != 0 && (age < minEventAge || age > maxEventAge) {
		problem("MaxEventAge is %v: Lambda takes %v to %v", age, minEventAge, maxEventAge)
	}
	for _, target := range []struct{ field, arn string }{
		{"OnSuccess", f.Async.OnSuccess}, {"OnFailure", f.Async.OnFailure}, {"DeadLetter", f.Async.DeadLetter},
	} {
		if target.arn == "" {
			continue
		}
		d, err := parseDestination(target.arn)
		switch {
		case err != nil:
			problem("%s %w", target.field, err)
		case target.field == "DeadLetter" && d.service != "sqs":
			problem("DeadLetter %q is not a queue: name a queue, or make it OnFailure", target.arn)
		case d.service == "sqs" && !canSend:
			problem("%s is a queue, but Config.Send is missing: pass a function that sends to queues", target.field)
		}
	}
	return errors.Join(problems...)
}
