// Package emulator runs AWS Lambda functions on this machine: each function as
// processes of its own behind the real Runtime API, invoked through the real
// Invoke API, with the asynchronous invokes that Lambda retries by itself and the
// records that it writes to destinations. Functions are the binaries and bootstraps
// that are deployed; nothing in them knows that they run here.
package emulator

import (
	"context"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// Function is one function as it is to be run.
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
	// Runtime is the identifier that the template gives, such as "provided.al2023".
	// It is only told, in AWS_EXECUTION_ENV and in answers. Default: "provided.al2023".
	Runtime string
	// Environment is the function's own. It wins over Config.Environment, and loses
	// to the variables that Lambda reserves.
	Environment map[string]string
	// Timeout is how long an invoke may take before its instance is killed, up to
	// 15 minutes. Default: 3 s.
	Timeout time.Duration
	// MemorySize is told to the process, in MiB; it is not enforced. Default: 128.
	MemorySize int
	// Concurrency is the function's reserved concurrency: that many invokes at once,
	// and one more is throttled. Negative: none, as if 0 were reserved; asynchronous
	// events are then given up at once. Default: nothing is reserved; this machine
	// runs 10 at once, and others wait for them where Lambda would start more.
	Concurrency int
	// PerInstance is how many invokes one instance handles at once, as on Lambda
	// Managed Instances: the instance is told AWS_LAMBDA_MAX_CONCURRENCY and asks
	// for that many. Default: 1.
	PerInstance int
	// Async is what becomes of asynchronous invokes.
	Async AsyncConfig
}

// AsyncConfig is what becomes of asynchronous invokes: Lambda's EventInvokeConfig.
type AsyncConfig struct {
	// MaxRetryAttempts is how often an event is retried after the function failed:
	// 0 to 2. Default (nil): 2.
	MaxRetryAttempts *int
	// MaxEventAge is how long an event may wait and be retried: 60 s to 6 h.
	// Default: 6 h.
	MaxEventAge time.Duration
	// OnSuccess and OnFailure are the ARNs of the queues or functions that get the
	// record of an event's end. Default: nobody.
	OnSuccess, OnFailure string
	// DeadLetter is the ARN of the queue that gets the event itself when it failed
	// for good: the older DeadLetterConfig. Default: none.
	DeadLetter string
}

// Config says which functions there are and what surrounds them.
type Config struct {
	// Functions are those that there are from the start; see also [Lambda.Replace].
	Functions []Function
	// Region and AccountID, 12 digits, are those of the functions' ARNs. Default:
	// us-east-1 and 000000000000.
	Region, AccountID string
	// Environment is given to every instance: AWS_ENDPOINT_URL_SQS and the like.
	// Nothing else of this process's environment is, except PATH, where temporary files
	// go and PassEnvironment, and no credentials but made-up ones.
	Environment map[string]string
	// PassEnvironment names variables of this process that every instance gets as they
	// are, those of made-up credentials among them. Environment, a function's own and
	// what Lambda reserves win. Default: none.
	PassEnvironment []string
	// Send sends a message to the queue that an ARN names: destinations and dead
	// letters are sent so. Required if a function has such a queue. It is retried
	// until it succeeds or says, by an [*sqsserver.Error] whose sender is at fault and
	// which is no throttle, that it never will. It has to return when ctx ends.
	Send func(ctx context.Context, queueARN, body string, attributes []sqsserver.MessageAttribute) error
	// Journal keeps asynchronous events from before they are accepted until they have
	// ended, so that no crash loses one; see also [Lambda.Resume]. One whose end was
	// not kept in time is invoked again. Default: they are in memory only.
	Journal Journal
	// TimeScale is by how much AWS's own minutes are shortened: the waits before an
	// event is retried and the age at which it is given up. At 60 a minute of AWS's
	// is a second. Timeouts of functions are not scaled. Default: 1.
	TimeScale float64
	// IdleTimeout is how long an instance without an invoke is kept. Default: 10 min.
	IdleTimeout time.Duration
	// Log gets every line that instances write, and what is to be known about them
	// and about events. Many goroutines call it; it must not call the Lambda. Default:
	// discarded.
	Log func(Line)
}

// Line is a line of a function's log.
type Line struct {
	Time     time.Time
	Function string
	// RequestID is the invoke during which the line was written; "" if none ran, or
	// if several did and it cannot be told.
	RequestID string
	// Instance tells instances apart: 1, 2, ... as they were started. 0: about none.
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
	// SourceTrouble is Lambda, when something is lost or has to be put right: an
	// event dropped, a destination that refused its record.
	SourceTrouble Source = "trouble"
)

// Result is what became of an invoke that reached the function.
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
