// Package template reads SAM and CloudFormation templates, in YAML or JSON, and returns the
// queues, functions and event source mappings that they declare as plain data. It reads no file
// and calls no service.
//
// Everything in a template is used, or known to make no difference to a local run (roles, tags,
// alarms), or reported as a [Finding]: refused if the stack would run otherwise than on AWS or
// AWS would refuse it, a warning if the rest works without it.
package template

import (
	"cmp"
	"time"
)

// Template has the resources that a template declares.
type Template struct {
	Queues    []Queue
	Functions []Function
	Mappings  []Mapping
	Tables    []Table
	// Warnings are about parts that are not run here, by line: the first 100, then the number of
	// the others.
	Warnings []Finding
}

// Queue is an AWS::SQS::Queue.
type Queue struct {
	ID   string // the logical id
	Name string // the logical id unless the template names it, with .fifo if need be
	ARN  string
	// Attributes are those of CreateQueue, except RedrivePolicy.
	Attributes map[string]string
	// DeadLetter is the name of the dead-letter queue; empty: none.
	DeadLetter string
	// MaxReceives is the maxReceiveCount of the RedrivePolicy.
	MaxReceives int
	Line        int
}

// FIFO reports whether the queue is a FIFO queue.
func (q Queue) FIFO() bool { return q.Attributes["FifoQueue"] == "true" }

// Function is an AWS::Serverless::Function or an AWS::Lambda::Function.
type Function struct {
	ID          string // the logical id
	Name        string // the logical id unless the template names it
	ARN         string
	Code        Code
	Handler     string
	Runtime     string
	Environment map[string]string
	Timeout     time.Duration
	MemorySize  int // MiB
	// Architecture is x86_64 or arm64.
	Architecture string
	// Reserved is ReservedConcurrentExecutions; 0 throttles every invoke, nil: none
	// are reserved.
	Reserved *int
	Async    Async
	Line     int
}

// Code is where a function's code is, and how it is built.
type Code struct {
	// Path is the file or folder of CodeUri, relative to the template's folder.
	Path string
	// Inline is source text, in place of Path.
	Inline string
	// BuildMethod is that of the resource's Metadata, in lower case; empty: none.
	BuildMethod string
	// WorkingDir is the folder in which make runs, relative to the template's.
	// Default: Path.
	WorkingDir string
}

// Async configures asynchronous invokes.
type Async struct {
	MaxRetryAttempts *int          // 0 to 2; nil: 2
	MaxEventAge      time.Duration // zero: six hours
	// OnSuccess, OnFailure and DeadLetter are ARNs of queues or functions of the
	// template, the last one only of queues; empty: none.
	OnSuccess, OnFailure, DeadLetter string
}

// Table is a DynamoDB table whose key is one string.
type Table struct {
	ID, Name string // logical and physical
	Key      string // the attribute that is the partition key
	Line     int
}

// Mapping is an event source mapping of an SQS queue.
type Mapping struct {
	ID       string // the logical id, or FUNCTION.EVENT
	Queue    string // the queue's name
	QueueARN string
	Function string // the function's name
	// BatchSize is the most messages of an invoke.
	BatchSize int
	Window    time.Duration
	// MaximumConcurrency is the most invokes at once; 0: unlimited.
	MaximumConcurrency int
	// ReportBatchItemFailures lets the function name the messages that failed.
	ReportBatchItemFailures bool
	// Filters are event patterns, in JSON: a message must match one of them. Empty: all messages
	// match.
	Filters  []string
	Disabled bool
	Line     int
}

// Options are values that a template does not contain.
type Options struct {
	// File is the template's name, for findings.
	File string
	// Parameters override those of the template.
	Parameters map[string]string
	// Region and AccountID are AWS::Region and AWS::AccountId.
	Region, AccountID string
	// StackName is AWS::StackName. Default: local.
	StackName string
	// QueueURL returns the URL of the queue called name, the value of a Ref to it.
	QueueURL func(name string) string
}

// Load reads the text of a template. Its error is [Findings]: everything to correct, the first
// 100 and the number of the others.
func Load(text []byte, options Options) (*Template, error) {
	options.StackName = cmp.Or(options.StackName, "local")
	root, problem := parse(text)
	if problem != nil {
		problem.File = options.File
		return nil, Findings{*problem}
	}
	l := &loader{options: options, template: &Template{}}
	l.load(root)
	if l.refusals.number > 0 {
		return nil, Findings(l.refusals.sorted(options.File))
	}
	l.template.Warnings = l.warnings.sorted(options.File)
	return l.template, nil
}
