package repriselambda

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/retry"
)

// shortWait is the longest wait in the process for a record that is not yet due; others are given
// back: SQS counts in seconds, and Lambda's next poll takes a while.
const shortWait = 2 * time.Second

// opinion is the retrier's decision about a message.
type opinion struct {
	err    error     // nil: the function was invoked and, in direct mode, succeeded
	again  time.Time // the earliest time; zero: it is given up
	failed bool      // an attempt has failed
}

// Handle implements [reprise.Handler].
func (r *retrier) Handle(ctx context.Context, m *reprise.Message) error {
	b := batchFrom(ctx)
	o := r.decide(ctx, m, b)
	b.gather(ctx, o)
	switch wait := time.Until(o.again); {
	case o.err == nil:
		return nil
	case o.again.IsZero():
		r.logGivenUp(ctx, m, b)
		return reprise.Permanent(o.err)
	case o.failed || r.cfg.Mode == ModeEnvelope:
		return reprise.RetryAfter(wait, o.err)
	default:
		return reprise.Release(wait, o.err) // not counted as an attempt
	}
}

// logGivenUp logs which event is given up: nothing else in a function does.
func (r *retrier) logGivenUp(ctx context.Context, m *reprise.Message, b *batch) {
	l, _ := b.noted(m.ID, m.Body, "")
	r.cfg.Logger.WarnContext(ctx, "an event is given up, and goes to the dead-letter queue",
		"function", l.function, "request", l.request, "reason", l.reason, "attempts", l.attempts, "error", shorten(joined(l.err.Type, l.err.Message), maxErrorText))
}

// afterPanic is how long a message waits after the middleware, or a policy, has panicked.
const afterPanic = time.Minute

// decide calls work, and handles a panic of the user's code in it. The consumer logs the panic.
func (r *retrier) decide(ctx context.Context, m *reprise.Message, b *batch) (o opinion) {
	b.begin()
	defer b.end()
	defer func() {
		if v := recover(); v != nil {
			o = opinion{err: &reprise.PanicError{Value: v, Stack: debug.Stack()}, again: time.Now().Add(afterPanic)}
		}
	}()
	return r.work(ctx, m, b)
}

// work runs the function of m, if it is due.
func (r *retrier) work(ctx context.Context, m *reprise.Message, b *batch) opinion {
	f, err := readFailure(m)
	p := r.policyOf(f.function)
	made := f.runs()
	if r.cfg.Mode == ModeDirect {
		made += m.Attempt - 1 // its own
	}
	l := letter{failure: f, attempts: made, last: f.failed, err: f.err}
	if bad, ok := errors.AsType[*poison](err); ok {
		return b.giveUp(m, l, bad.reason, bad)
	}
	if !r.allowed(f.function) {
		err := fmt.Errorf("function %.200q is not one of RetryConfig.AllowedFunctions", f.function)
		b.complain(func() {
			r.cfg.Logger.Warn("a function is not invoked, since it is not allowed", "message", m, "error", err, "remedy", "add it to RetryConfig.AllowedFunctions, or find out who sends such records")
		})
		return b.giveUp(m, l, reasonNotAllowed, err)
	}
	b.note(m, l)
	if !f.redriven && made == f.runs() { // otherwise its message has waited already
		d := p.afterRecord(f, r.cfg.Permanent)
		if d.Action == retry.ActionDeadLetter {
			return b.giveUp(m, l, d.Reason.String(), f.err)
		}
		if opinion, waits := awaitDue(ctx, d.At); waits {
			return opinion
		}
	}
	if p.tooOld(f.first) {
		return b.giveUp(m, l, retry.ReasonAge.String(), errTooOld)
	}
	return r.run(ctx, m, b, l, p)
}

// policy is a [retry.Policy] of a function.
type policy struct{ retry.Policy }

// afterRecord decides about the run that f records. A run that never happened uses up no attempt,
// but takes time: the policy's wait stays that of the same attempt, so the next try is delayed for
// about as long as the event has been waiting, if that is longer. Nor is it the last run in the last
// part of the age: then that delay alone counts.
func (p policy) afterRecord(f failure, permanent []string) retry.Decision {
	if !f.ran {
		p.MaxAttempts = -1
	}
	a := retry.Failure{N: f.runs(), Seed: f.request, Sent: f.first, First: f.first, Ended: f.failed, Err: f.err}
	if f.err.isOf(permanent) {
		a.Err = retry.Permanent(a.Err)
	}
	d := p.Decide(a)
	if f.ran || d.Reason == retry.ReasonPermanent {
		return d
	}
	p.Backoff, p.Jitter, p.Rules = putOff.Backoff, putOff.Jitter, nil
	a.N = doublings(f.failed.Sub(f.first))
	if later := p.Decide(a); d.Action != retry.ActionRetry || later.Action == retry.ActionRetry && later.At.After(d.At) {
		return later
	}
	return d
}

// tooOld reports whether an event whose first run failed at first must not run any more.
func (p policy) tooOld(first time.Time) bool {
	p.MaxAttempts = -1
	_, exhausted := p.Exhausted(2, first, first, time.Now())
	return exhausted
}

// policyOf is the policy of a function: its own, that of all its versions, or that
// of all functions.
func (r *retrier) policyOf(function string) policy {
	for _, key := range keysOf(function) {
		if p, ok := r.cfg.Functions[key]; ok {
			return policy{p}
		}
	}
	return policy{r.cfg.Retry}
}

// allowed reports whether a function may be invoked.
func (r *retrier) allowed(function string) bool {
	if len(r.cfg.AllowedFunctions) == 0 {
		return true
	}
	for _, key := range keysOf(function) {
		if slices.Contains(r.cfg.AllowedFunctions, key) {
			return true
		}
	}
	return false
}

// keysOf are the names that a configuration can use for a function: its ARN or its name, with its
// version or alias and without.
func keysOf(function string) [4]string {
	name := function
	if i := strings.LastIndex(function, ":function:"); i >= 0 {
		name = function[i+len(":function:"):]
	}
	base, qualifier, _ := strings.Cut(name, ":")
	return [...]string{function, name, strings.TrimSuffix(function, ":"+qualifier), base}
}

var (
	errNotDue = errors.New("it is not yet due")
	errTooOld = errors.New("its age was used up before it could be run again")
)

// awaitDue waits until due if that is soon. Otherwise it returns that the message should be given
// back until then.
func awaitDue(ctx context.Context, due time.Time) (o opinion, waits bool) {
	wait := time.Until(due)
	if wait <= 0 {
		return opinion{}, false
	}
	if end, ok := ctx.Deadline(); wait > shortWait || ok && end.Before(due) {
		return opinion{err: errNotDue, again: due}, true
	}
	waiting, cancel := context.WithDeadline(ctx, due)
	defer cancel()
	<-waiting.Done()
	if err := ctx.Err(); err != nil {
		return opinion{err: err, again: due}, true
	}
	return opinion{}, false
}

// run invokes the function of l, and decides by the outcome.
func (r *retrier) run(ctx context.Context, m *reprise.Message, b *batch, l letter, p policy) opinion {
	if end, ok := ctx.Deadline(); ok && r.cfg.Mode == ModeDirect && time.Until(end) < r.cfg.Timeout {
		return opinion{err: errNoTime, again: time.Now()}
	}
	err := r.invokeOnce(ctx, m, &l.failure)
	now := time.Now()
	if err == nil {
		return opinion{}
	}
	if bad, ok := errors.AsType[*poison](err); ok {
		return b.giveUp(m, l, bad.reason, bad)
	}
	failed, isFailure := errors.AsType[*FunctionError](err)
	unknown := errors.Is(err, ErrUnknownOutcome)
	if r.cfg.Mode == ModeEnvelope || !isFailure && !unknown {
		return r.tryLater(m, b, l, err, now)
	}
	if unknown {
		failed = &FunctionError{Function: l.function, Type: "UnknownOutcome", Message: err.Error()}
	}
	if failed.isOf(r.cfg.Permanent) {
		err = retry.Permanent(err)
	}
	d := p.Decide(retry.Failure{N: l.attempts + 1, Seed: l.request, Sent: l.first, First: l.first, Ended: now, Err: err})
	if unknown && d.At.Before(now.Add(r.cfg.Timeout)) {
		d.At = now.Add(r.cfg.Timeout) // it may still be running
	}
	if d.Action == retry.ActionRelease { // by the middleware
		return opinion{err: err, again: d.At}
	}
	l.attempts++
	l.last, l.err = now, failed
	if d.Action != retry.ActionRetry {
		return b.giveUp(m, l, d.Reason.String(), l.err)
	}
	b.note(m, l)
	return opinion{err: err, again: d.At, failed: true}
}

// dueInvocation is the task of invokeDue.
type dueInvocation struct {
	retrier *retrier
	failure *failure
}

type dueKey struct{}

// invokeOnce invokes f's function through the middleware. The middleware sees the requested
// invocation, but no other parts of the record, because Lambda may write a record twice, with
// different times.
func (r *retrier) invokeOnce(ctx context.Context, m *reprise.Message, f *failure) error {
	shown := *m
	shown.OriginID, shown.Body = f.request, string(f.payload)
	shown.Attributes = map[string]types.MessageAttributeValue{
		FunctionAttribute: {DataType: aws.String("String"), StringValue: &f.function},
	}
	return r.invoke.Handle(context.WithValue(ctx, dueKey{}, dueInvocation{r, f}), &shown)
}

// invokeDue is the handler inside the middleware.
func invokeDue(ctx context.Context, _ *reprise.Message) error {
	due, ok := ctx.Value(dueKey{}).(dueInvocation)
	if !ok {
		return errors.New("the middleware has not passed on its context")
	}
	return due.retrier.call(ctx, due.failure)
}

// putOff is the backoff of functions that could not run because they were throttled or paused. Its
// waits are numbered by doublings, so that no counter is needed: an envelope has no place for one.
var putOff = retry.Policy{Backoff: retry.Exponential{Base: time.Second, Max: 5 * time.Minute}, Jitter: retry.Equal}

// doublings returns the number of the wait of putOff that is about as long as the time waited so
// far.
func doublings(waited time.Duration) int {
	return 1 + bits.Len64(uint64(max(waited, 0)/time.Second))
}

// tryLater decides when to try again: after about as long as the event has been waiting, so that
// the waits double without a counter. A middleware may set the time itself.
func (r *retrier) tryLater(m *reprise.Message, b *batch, l letter, err error, now time.Time) opinion {
	asked := retry.Policy{MaxAttempts: -1, MaxAge: -1}.Decide(retry.Failure{N: 1, Ended: now, Err: err})
	switch asked.Reason {
	case retry.ReasonPermanent:
		return b.giveUp(m, l, asked.Reason.String(), err)
	case retry.ReasonRelease, retry.ReasonRetryAfter:
		return opinion{err: err, again: asked.At}
	}
	since := l.failed
	if since.IsZero() {
		since = l.first
	}
	wait := max(putOff.Wait(l.request, doublings(now.Sub(since))), retryAfter(err))
	b.complain(func() {
		r.cfg.Logger.Warn("functions cannot be invoked; trying again later, which counts as no attempt",
			"function", l.function, "message", m, "wait", wait, "error", err, "remedy", remedy(err))
	})
	return opinion{err: fmt.Errorf("the function could not be invoked: %w", err), again: now.Add(wait)}
}

// validateAllowed checks the names of functions that may be invoked.
func validateAllowed(functions []string) error {
	var problems []error
	for i, key := range functions {
		if !plausibleFunction(key) {
			problems = append(problems, fmt.Errorf("Config.AllowedFunctions[%d] is %q: %s", i, key, functionRemedy))
		}
	}
	return errors.Join(problems...)
}

// plausibleFunction reports whether key can be one of keysOf.
func plausibleFunction(key string) bool {
	return key != "" && !strings.ContainsAny(key, " /*") && !strings.HasSuffix(key, latest)
}

const functionRemedy = "use a function's ARN or name, with or without a version or an alias, which $LATEST is not"

// validateFunctions checks the policies by function.
func validateFunctions(functions map[string]retry.Policy) error {
	var problems []error
	for key, p := range functions {
		if !plausibleFunction(key) {
			problems = append(problems, fmt.Errorf("Config.Functions[%q]: %s", key, functionRemedy))
		}
		if err := p.Validate(); err != nil {
			problems = append(problems, fmt.Errorf("Config.Functions[%q]: %w", key, err))
		}
	}
	return errors.Join(problems...)
}
