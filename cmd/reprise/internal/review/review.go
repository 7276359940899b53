// Package review compares a retry policy with queues, wherever their attributes come from, and
// writes the result as text, JSON, SARIF or Markdown. [plan] decides; this package gathers its
// input and shows its findings. It makes no calls and reads no files.
package review

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
)

// Subject is a queue to review.
type Subject struct {
	Name string
	// Source is the queue's URL, or the file that declares it, which Line is in; Line 0: no line.
	Source string
	Line   int
	// Attributes are as GetQueueAttributes returns them.
	Attributes map[string]string
	// DeadLetter are those of the dead-letter queue; nil: not known.
	DeadLetter map[string]string
	// Unknown are the names of attributes whose values are known only once the queue exists.
	Unknown []string
	// FunctionTimeout is the timeout of the Lambda function that handles the messages; zero: none does.
	FunctionTimeout time.Duration
	// Wholesale are the event source mappings of the queue that ignore which messages the function
	// calls failed, by the names that the file has for them.
	Wholesale []string
	// OnFailure reports that the queue is where failed asynchronous invokes of a function go.
	OnFailure bool
	// Deployed reports that the queue exists: Attributes are its own.
	Deployed bool
	// Assumed reports that there is no queue: a policy is reviewed on its own.
	Assumed bool
}

// Review describes the effect of a policy on one queue.
type Review struct {
	Subject
	Queue    plan.Queue
	Schedule plan.Schedule
	Findings []plan.Finding
	// Permissions are the least that a consumer needs; nil: there is no queue.
	Permissions *plan.Document
}

// Report is the whole output.
type Report struct {
	Policy  retry.Policy
	Reviews []Review
	// Notes name the parts that could not be read.
	Notes []Note
}

// Note is something that the author of a file should know.
type Note struct {
	File string
	Line int // 0: no line of its own
	Text string
}

// The codes of findings about what a file declares around a queue.
const (
	// CodeUnknown is about attributes that are not known.
	CodeUnknown = "attribute-unknown"
	// CodeWholesale is about mappings to Lambda functions without ReportBatchItemFailures.
	CodeWholesale = "batch-item-failures-ignored"
)

// assumed is the queue for a policy on its own: none of its settings gets in the way.
var assumed = plan.Queue{
	Visibility: 30 * time.Second, Retention: plan.MaxRetention,
	DeadLetterARN: "arn:aws:sqs:REGION:ACCOUNT:dead-letters", DeadLetterRetention: plan.MaxRetention,
}

// New reviews p on a queue. The error names attributes that cannot be understood.
func New(p retry.Policy, s Subject, settings plan.Settings) (Review, error) {
	r := Review{Subject: s, Queue: assumed}
	if settings.FunctionTimeout = s.FunctionTimeout; s.FunctionTimeout > 0 {
		settings.HandlerTimeout = s.FunctionTimeout
	}
	if !s.Assumed {
		var err error
		if r.Queue, err = plan.ReadQueue(s.Attributes); err != nil && !slices.Contains(s.Unknown, "RedrivePolicy") {
			return Review{}, fmt.Errorf("queue %s: %w", s.Name, err)
		}
		if err := r.Queue.ReadDeadLetter(s.DeadLetter); err != nil {
			return Review{}, fmt.Errorf("the dead-letter queue of %s: %w", s.Name, err)
		}
	}
	r.Schedule = plan.NewSchedule(p, r.Queue, settings)
	r.Findings = s.findings(plan.Check(p, r.Queue, settings))
	if features, err := plan.Features(r.Queue, settings); err == nil && !s.Assumed {
		document := plan.IAM(features)
		r.Permissions = &document
	}
	return r, nil
}

// findings returns those of the plan that apply to s, with one about unknown attributes.
func (s Subject) findings(found []plan.Finding) []plan.Finding {
	if s.Deployed {
		return found
	}
	unknown := func(name string) bool { return s.Assumed || slices.Contains(s.Unknown, name) }
	found = slices.DeleteFunc(found, func(f plan.Finding) bool {
		return f.Code == plan.CodeNoDeadLetterQueue && unknown("RedrivePolicy") ||
			f.Code == plan.CodeRetentionUnknown && unknown("MessageRetentionPeriod") ||
			s.Assumed && f.Code == plan.CodeDeadLetterRetention
	})
	for i := range found {
		if found[i].Code == plan.CodeDeadLetterQueueUnknown {
			found[i].Remedy = "review the queue once it is deployed: the dead-letter queue is declared elsewhere."
		}
	}
	if len(s.Unknown) > 0 {
		found = append(found, plan.Finding{
			Severity: plan.Warning, Code: CodeUnknown,
			Problem: fmt.Sprintf("not known before the queue is deployed: %s; this plan leaves out everything that depends on them.", strings.Join(s.Unknown, ", ")),
			Remedy:  "review the queue once it is deployed; of a template, pass the parameters with --param.",
		})
	}
	if len(s.Wholesale) > 0 {
		found = append(found, s.wholesale())
	}
	slices.SortStableFunc(found, func(a, b plan.Finding) int { return int(b.Severity) - int(a.Severity) })
	return found
}

// wholesale is the finding about mappings that delete messages which the function calls failed. It
// is an error where they are the records of failed events, which exist nowhere else.
func (s Subject) wholesale() plan.Finding {
	f := plan.Finding{
		Severity: plan.Warning, Code: CodeWholesale,
		Problem: fmt.Sprintf("without ReportBatchItemFailures Lambda ignores which messages the function's reply names as failed, and deletes them with the others: %s.", strings.Join(s.Wholesale, ", ")),
		Remedy:  "set the mapping's FunctionResponseTypes (function_response_types) to [ReportBatchItemFailures]; only a function that fails as a whole for each failed message may go without.",
	}
	if s.OnFailure {
		f.Severity = plan.Error
		f.Problem += " The messages are the records of failed events (OnFailure): the events are lost."
	}
	return f
}

// Link gives each of the subjects of one file its dead-letter queue, and leaves out those that
// only take the dead letters of others.
func Link(subjects []Subject) []Subject {
	byARN := make(map[string]*Subject)
	for i := range subjects {
		byARN[subjects[i].Attributes["QueueArn"]] = &subjects[i]
	}
	takes := make(map[string]bool) // by ARN
	for i := range subjects {
		q, _ := plan.ReadQueue(subjects[i].Attributes) // New reports the error
		if dead := byARN[q.DeadLetterARN]; dead != nil && q.DeadLetterARN != "" {
			subjects[i].DeadLetter = dead.Attributes
			takes[q.DeadLetterARN] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(subjects), func(s Subject) bool {
		return takes[s.Attributes["QueueArn"]] && s.Attributes["RedrivePolicy"] == "" && s.FunctionTimeout == 0 && len(s.Wholesale) == 0
	})
}

// Count returns how many findings have at least the severity.
func (r Report) Count(severity plan.Severity) int {
	n := 0
	for _, review := range r.Reviews {
		for _, f := range review.Findings {
			if f.Severity >= severity {
				n++
			}
		}
	}
	return n
}

// place is FILE:LINE, or the URL.
func (s Subject) place() string {
	if s.Line > 0 {
		return fmt.Sprintf("%s:%d", s.Source, s.Line)
	}
	return s.Source
}

// policyText returns p as text, with its defaults.
func policyText(p retry.Policy) string {
	text, err := p.WithDefaults().MarshalText()
	if err != nil {
		return err.Error() // only if a backoff is a function, which no text can make
	}
	return string(text)
}

// settings returns the queue's settings in words.
func (r Review) settings() string {
	q := r.Queue
	if r.Assumed {
		return "none: as on a standard queue that keeps messages for 14 days, with a dead-letter queue"
	}
	kind := "standard"
	if q.FIFO {
		kind = "FIFO"
	}
	parts := []string{kind, "visibility " + known(q.Visibility), "retention " + known(q.Retention)}
	if q.Delay > 0 {
		parts = append(parts, "delay "+known(q.Delay))
	}
	if r.FunctionTimeout > 0 {
		parts = append(parts, "Lambda function with timeout "+known(r.FunctionTimeout))
	}
	switch {
	case q.DeadLetterARN == "":
		parts = append(parts, "no dead-letter queue")
	default:
		name := q.DeadLetterARN[strings.LastIndexByte(q.DeadLetterARN, ':')+1:]
		text := "dead letters to " + name
		if q.MaxReceives > 0 {
			text += fmt.Sprintf(" after %d receives", q.MaxReceives)
		}
		if q.DeadLetterRetention > 0 {
			text += ", kept " + known(q.DeadLetterRetention)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, ", ")
}

func known(d time.Duration) string {
	if d == 0 {
		return "not known"
	}
	return short(d)
}
