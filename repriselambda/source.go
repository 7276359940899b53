package repriselambda

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/plan"
)

// source is the state of a queue that is kept for the life of the process.
type source struct {
	answers      sync.Map // *answer by URL, of the queue and its dead-letter queue
	told, logged sync.Map // findings, by kind
}

// kind tells findings from each other: a problem may have the texts of the moment in it, and denied
// permissions have one code.
type kind struct{ code, remedy string }

// answer is SQS's answer for a queue's attributes.
type answer struct {
	out   *sqs.GetQueueAttributesOutput
	err   error
	until time.Time // it is asked for again then
}

const (
	// keepAnswer is how long an answer is kept: an operator may change a queue at any time.
	keepAnswer = 10 * time.Minute
	// keepOldAnswer is how much longer it is kept if SQS could not be asked again.
	keepOldAnswer = time.Minute
)

// attributes asks SQS for a queue's attributes, unless it has answered within keepAnswer: a missing
// permission is an answer too. While SQS does not answer, what it answered before still holds.
func (s *source) attributes(ctx context.Context, client reprise.Client, query *sqs.GetQueueAttributesInput, options ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	kept, known := s.answers.Load(*query.QueueUrl)
	var last answer
	if known {
		last = *kept.(*answer)
	}
	now := time.Now()
	if known && now.Before(last.until) {
		return last.out, last.err
	}
	out, err := client.GetQueueAttributes(ctx, query, options...)
	api, said := errors.AsType[smithy.APIError](err)
	if err == nil || said && strings.HasPrefix(api.ErrorCode(), "AccessDenied") {
		s.answers.Store(*query.QueueUrl, &answer{out, err, now.Add(keepAnswer)})
		return out, err
	}
	if known {
		s.answers.Store(*query.QueueUrl, &answer{last.out, last.err, now.Add(keepOldAnswer)})
		return last.out, last.err
	}
	return nil, err
}

// longTimeout is the visibility timeout that AWS recommends for the longest function.
const longTimeout = 6 * 15 * time.Minute

// visibility returns the queue's visibility timeout; longTimeout if it is not known.
func (s *source) visibility(url string) time.Duration {
	if kept, known := s.answers.Load(url); known {
		if out := kept.(*answer).out; out != nil {
			if seconds, err := strconv.Atoi(out.Attributes[string(types.QueueAttributeNameVisibilityTimeout)]); err == nil {
				return time.Duration(seconds) * time.Second
			}
		}
	}
	return longTimeout
}

// once calls f only for the first finding of each kind; it is nil if f is.
func (s *source) once(f func(context.Context, plan.Finding)) func(context.Context, plan.Finding) {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, finding plan.Finding) {
		if _, again := s.told.LoadOrStore(kind{finding.Code, finding.Remedy}, true); !again {
			f(ctx, finding)
		}
	}
}

// occasional filters the log of a process that makes a consumer for each invocation: no starts and
// stops, and each finding once.
type occasional struct {
	slog.Handler
	queue *source
}

// Enabled implements [slog.Handler].
func (o occasional) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && o.Handler.Enabled(ctx, level)
}

// Handle implements [slog.Handler].
func (o occasional) Handle(ctx context.Context, r slog.Record) error {
	var finding kind
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "code":
			finding.code = a.Value.String()
		case "remedy":
			finding.remedy = a.Value.String()
		}
		return true
	})
	if finding.code != "" { // only findings have one
		if _, again := o.queue.logged.LoadOrStore(finding, true); again {
			return nil
		}
	}
	return o.Handler.Handle(ctx, r)
}

// WithAttrs implements [slog.Handler].
func (o occasional) WithAttrs(attrs []slog.Attr) slog.Handler {
	return occasional{o.Handler.WithAttrs(attrs), o.queue}
}

// WithGroup implements [slog.Handler].
func (o occasional) WithGroup(name string) slog.Handler {
	return occasional{o.Handler.WithGroup(name), o.queue}
}
