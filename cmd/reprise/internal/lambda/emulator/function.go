// Package emulator runs AWS Lambda functions on this machine: each function as processes of its
// own behind the real Runtime API, invoked through the real Invoke API, with the asynchronous
// invokes that Lambda retries by itself and the records that it writes to destinations. Functions
// are the same binaries and bootstraps that are deployed.
package emulator

import (
	"context"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// Function is a function to run.
type Function struct {
	// Name is the function's name; required.
	Name string
	// Command starts an instance: a bootstrap binary, or an interpreter with the
	// runtime's own bootstrap. Required. A name without a slash is looked up in PATH,
	// a relative path in Dir.
	Command []string
	// Dir is the instance's working directory and its LAMBDA_TASK_ROOT; required.
	Dir string
	// Handler is the instance's _HANDLER. Default: "bootstrap".
	Handler string
	// Runtime is the identifier that the template gives, such as "provided.al2023". It only
	// appears in AWS_EXECUTION_ENV and in answers. Default: "provided.al2023".
	Runtime string
	// Environment is the function's own. It wins over Config.Environment, and loses
	// to the variables that Lambda reserves.
	Environment map[string]string
	// Timeout is how long an invoke may take before its instance is killed, up to
	// 15 minutes. Default: 3 s.
	Timeout time.Duration
	// MemorySize is passed to the process, in MiB, and not enforced. Default: 128.
	MemorySize int
	// Concurrency is the function's reserved concurrency: more invokes at once are throttled.
	// Negative: 0 is reserved, every invoke is throttled, and asynchronous events are given up at
	// once. Default: nothing is reserved; this machine runs 10 at once and lets others wait,
	// where Lambda would start more instances.
	Concurrency int
	// PerInstance is how many invokes one instance handles at once, as on Lambda Managed
	// Instances: the instance gets the number in AWS_LAMBDA_MAX_CONCURRENCY, and asks for that
	// many. Default: 1.
	PerInstance int
	// Async configures asynchronous invokes.
	Async AsyncConfig
}

// AsyncConfig configures asynchronous invokes: Lambda's EventInvokeConfig.
type AsyncConfig struct {
	// MaxRetryAttempts is how often an event is retried after the function failed:
	// 0 to 2. Default (nil): 2.
	MaxRetryAttempts *int
	// MaxEventAge is how long an event may wait and be retried: 60 s to 6 h.
	// Default: 6 h.
	MaxEventAge time.Duration
	// OnSuccess and OnFailure are the ARNs of the queues or functions that get the record of an
	// event's end. Default: none.
	OnSuccess, OnFailure string
	// DeadLetter is the ARN of the queue that gets the event itself when it is given up: the
	// older DeadLetterConfig. Default: none.
	DeadLetter string
}

// Config is the configuration of a Lambda.
type Config struct {
	// Functions exist from the start; see also [Lambda.Replace].
	Functions []Function
	// Region and AccountID, 12 digits, are those of the functions' ARNs. Default:
	// us-east-1 and 000000000000.
	Region, AccountID string
	// Environment is set for every instance: AWS_ENDPOINT_URL_SQS and the like. Of this process's
	// environment instances get only PATH, the folder for temporary files and PassEnvironment;
	// their credentials are made up.
	Environment map[string]string
	// PassEnvironment names variables of this process that every instance gets as they are, in
	// place of the made-up credentials if it names those. Environment, the function's own
	// variables and Lambda's reserved ones win. Default: none.
	PassEnvironment []string
	// Send sends records and dead letters to the queue with an ARN. Required if a function has
	// such a queue. It is retried until it succeeds, or fails with an [*sqsserver.Error] with a
	// sender's fault other than throttling. It must return when ctx ends.
	Send func(ctx context.Context, queueARN, body string, attributes []sqsserver.MessageAttribute) error
	// Journal keeps asynchronous events from before they are accepted until they have ended, so
	// that no crash loses one; see also [Lambda.Resume]. An event is invoked again if a crash
	// comes before its end is kept. Default: in memory only.
	Journal Journal
	// TimeScale shortens AWS's own waits: those before an event is retried, and the age at which
	// it is given up. At 60 a minute becomes a second. Timeouts of functions are not scaled.
	// Default: 1.
	TimeScale float64
	// IdleTimeout is how long an instance without an invoke is kept. Default: 10 min.
	IdleTimeout time.Duration
	// Log gets every line that instances write, and lines about instances and events. Many
	// goroutines call it; it must not call the Lambda. Default: discarded.
	Log func(Line)
}

// Line is a line of a function's log.
type Line struct {
	Time     time.Time
	Function string
	// RequestID is the invoke during which the line was written; "" if none or several were
	// running.
	RequestID string
	// Instance is the number of the instance, from 1 in the order of starts. 0: about none.
	Instance int
	Source   Source
	Text     string // without the newline
}

// Source is where a line comes from.
type Source string

// The sources of lines.
const (
	// SourceFunction is the function's process: its standard output and standard
	// error in the order in which it wrote, as Lambda's log streams have them.
	SourceFunction Source = "function"
	// SourcePlatform is Lambda: START, END, REPORT, init errors.
	SourcePlatform Source = "platform"
	// SourceTrouble is Lambda, about losses and problems to correct: a dropped event, a
	// destination that refused its record.
	SourceTrouble Source = "trouble"
)

// Result is the outcome of an invoke that reached the function.
type Result struct {
	RequestID string
	// FunctionError is "Unhandled" if the function failed, timed out or crashed, and
	// Payload is then the error's JSON; "" otherwise.
	FunctionError string
	// Payload is what the function returned.
	Payload []byte
	// Log is the end, at most 4 KiB, of what the instance wrote during the invoke.
	Log []byte
}

// Error is an invoke that did not reach the function, as the Invoke API reports it.
type Error struct {
	Status  int    // HTTP status
	Code    string // such as "ResourceNotFoundException"
	Message string
	Reason  string // of a throttle, such as "ReservedFunctionConcurrentInvocationLimitExceeded"; "" otherwise
}

// Error returns the code and the message.
func (e *Error) Error() string { return e.Code + ": " + e.Message }
