package repriselambda

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/retry"
)

// RetryConfig are the settings of a [RetryHandler]. Client and Lambda must be set and, in direct
// mode, Timeout.
type RetryConfig struct {
	// Client makes the requests to SQS, as [Config].Client does.
	Client reprise.Client

	// Lambda invokes the functions: a *lambda.Client.
	Lambda Invoker

	// Mode is how they are invoked. Default: [ModeEnvelope].
	Mode Mode

	// Retry decides when a function is run again and when its event is given up.
	// Attempts are runs of the function, Lambda's own first one included. The age
	// counts from the first failure. A rule for [*FunctionError] sees the function's error.
	// Default, if all of it is zero: [DefaultRetry].
	Retry retry.Policy

	// Functions have policies of their own, by ARN or name, with a version or an
	// alias or, for all of them, without. Zero fields of such a policy have the defaults of package
	// retry, not the values of Retry. Default: all functions have Retry.
	Functions map[string]retry.Policy

	// AllowedFunctions are the functions that may be invoked, by ARN or name, with a
	// version or an alias or, for all of them, without; a name covers functions of every account
	// that the handler's role may invoke. A record of another one is given up for the reason
	// not-allowed. The records themselves name the function, and anybody who may send to the retry
	// queue can write one. Default, if it is empty: all functions that the role may invoke, so the
	// role should have no other permissions.
	AllowedFunctions []string

	// Permanent are the types of errors ([FunctionError].Type) that no retry can fix: their events
	// are given up at once. Default: none.
	Permanent []string

	// Timeout is the longest timeout of the functions, in direct mode. The retry handler's own must
	// be 30 s longer: it waits that long for a function, and does not repeat an invocation with an
	// unknown outcome earlier.
	Timeout time.Duration

	// DeadLetterURL is the queue that receives messages that are given up. Default: the target of
	// the queue's own RedrivePolicy.
	DeadLetterURL string

	// Middleware is put around each invocation of a function. It sees the message of the retry
	// queue with the event as its Body, the function in the attribute [FunctionAttribute] and the
	// id of the failed request as its OriginID. It is not called for messages that are not due or
	// are given up. An idempotency middleware prevents a second invocation if the retry handler
	// dies before its message is deleted. Default: none.
	Middleware func(reprise.Handler) reprise.Handler

	// Concurrency is how many functions are invoked at once by one invocation of the
	// retry handler. Default: 10.
	Concurrency int

	// Name is the author in a dead letter's story. Default: the host's name.
	Name string

	// SigningKeys are those of [Config]. Default: none.
	SigningKeys []reprise.SigningKey

	// Observer is called for the messages of the retry queue. In envelope mode their attempts are
	// those of the retry handler, not of a function. Default: none.
	Observer reprise.Observer

	// Logger gets problems that an operator must know. Default: slog.Default().
	Logger *slog.Logger
}

// Mode is how a [RetryHandler] runs a function again.
type Mode uint8

const (
	// ModeEnvelope invokes the function asynchronously, with its payload in an
	// envelope that counts the retries: the function must open it, as [Async] does. The
	// retry handler does not wait for the function.
	ModeEnvelope Mode = iota
	// ModeDirect invokes the function synchronously with its unchanged payload, and counts the
	// attempts on the message in the retry queue: any function can be retried unchanged. The retry
	// handler runs, and costs, as long as the function does.
	ModeDirect
)

var modeNames = [...]string{ModeEnvelope: "envelope", ModeDirect: "direct"}

// String returns the mode's name.
func (m Mode) String() string {
	if int(m) >= len(modeNames) {
		return fmt.Sprintf("Mode(%d)", uint8(m))
	}
	return modeNames[m]
}

// Invoker is the part of *lambda.Client that a retry handler needs.
type Invoker interface {
	Invoke(ctx context.Context, in *lambda.InvokeInput, options ...func(*lambda.Options)) (*lambda.InvokeOutput, error)
}

// DefaultRetry is the policy of a [RetryConfig] without one: before the n-th retry a wait between 1
// s and 2^(n-1) s, at most 12 h, for 24 hours.
func DefaultRetry() retry.Policy {
	return retry.Policy{
		Backoff:     retry.Exponential{Base: time.Second, Max: retry.MaxVisibility},
		Jitter:      retry.FromBase,
		MaxAttempts: -1,
		MaxAge:      24 * time.Hour,
	}
}

// RetryHandler returns a function for lambda.Start of aws-lambda-go that retries asynchronous
// functions that have failed. Its events come from an event source mapping, with
// ReportBatchItemFailures, of the retry queue: the standard queue that is the on-failure
// destination of the functions. They should not be retried by Lambda itself (MaximumRetryAttempts
// 0).
//
// A record waits in the queue until its function is due: after the failure for as long as the
// policy says for that attempt, with a jitter that belongs to the failed request, however often the
// record is received meanwhile. Then the function is invoked, and the record is deleted. Throttling
// and failures of Lambda itself delay the invocation by half a second to 5 minutes, and do not
// count as attempts. Nor do events that Lambda could not run at all (EventAgeExceeded, and
// ZeroReservedConcurrency while a function is paused); their waits grow in the same way.
//
// Events that are given up go to the dead-letter queue: the function's payload as it was first
// sent, with the reason in the attributes, see [FunctionAttribute]. A dead letter that is sent back
// to the retry queue, as by a redrive, starts anew.
//
// The function returns an error only for events that no mapping sends and, in direct mode, of a
// time limit that is too short for [RetryConfig].Timeout. All messages of such an event come again.
func RetryHandler(cfg RetryConfig) (func(context.Context, Event) (Response, error), error) {
	r, err := newRetrier(cfg)
	if err != nil {
		return nil, fmt.Errorf("repriselambda.RetryHandler: %w", err)
	}
	handle, err := SQS(r, r.consumerConfig())
	if err != nil {
		return nil, fmt.Errorf("repriselambda.RetryHandler: %w", err)
	}
	return func(ctx context.Context, event Event) (Response, error) {
		if err := r.checkTime(ctx); err != nil {
			return Response{}, fmt.Errorf("repriselambda.RetryHandler: %w", err)
		}
		return handle(withBatch(ctx, cfg.Mode), event)
	}, nil
}

// retrier is the handler of the retry queue's messages.
type retrier struct {
	cfg    RetryConfig
	invoke reprise.Handler // including its middleware
}

func newRetrier(cfg RetryConfig) (*retrier, error) {
	if unset(cfg.Retry) {
		cfg.Retry = DefaultRetry()
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	var problems []error
	if cfg.Lambda == nil {
		problems = append(problems, errors.New("Config.Lambda is nil: pass what lambda.NewFromConfig returns"))
	}
	switch {
	case cfg.Mode > ModeDirect:
		problems = append(problems, fmt.Errorf("Config.Mode is %v: set ModeEnvelope or ModeDirect", cfg.Mode))
	case cfg.Mode == ModeDirect && (cfg.Timeout < time.Second || cfg.Timeout > maxTarget):
		problems = append(problems, fmt.Errorf("Config.Timeout is %v: set the longest timeout of the functions, 1s to %v, which leaves the retry handler %v of the 15 minutes that a function may take", cfg.Timeout, maxTarget, targetMargin))
	}
	problems = append(problems, cfg.Retry.Validate(), validateFunctions(cfg.Functions), validateAllowed(cfg.AllowedFunctions))
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	r := &retrier{cfg: cfg, invoke: reprise.HandlerFunc(invokeDue)}
	if cfg.Middleware != nil {
		r.invoke = cfg.Middleware(r.invoke)
	}
	return r, nil
}

// unset reports whether no field of p is set.
func unset(p retry.Policy) bool {
	return p.Backoff == nil && p.Jitter == 0 && p.MaxAttempts == 0 && p.MaxAge == 0 && p.AgeFrom == 0 && p.Rules == nil
}

const (
	// targetMargin is the time that the retry handler needs in addition to that of the function.
	targetMargin = 30 * time.Second
	maxTarget    = 15*time.Minute - targetMargin
	// startTolerance is how much of an invocation's time may have passed before its time limit is
	// checked.
	startTolerance = 5 * time.Second
)

// checkTime returns an error if the time limit is too short for the functions.
func (r *retrier) checkTime(ctx context.Context) error {
	end, ok := ctx.Deadline()
	if !ok || r.cfg.Mode != ModeDirect {
		return nil
	}
	if left := time.Until(end); left < r.cfg.Timeout+targetMargin-startTolerance {
		return fmt.Errorf("%v are left of the retry handler's time, and its functions may take Config.Timeout, %v: give the retry handler a timeout of %v",
			left.Round(time.Second), r.cfg.Timeout, r.cfg.Timeout+targetMargin)
	}
	return nil
}

// consumerConfig is how the messages of the retry queue are consumed. The retrier decides about
// them, with waits of its own: the policy only limits the consumer's own assumptions.
func (r *retrier) consumerConfig() Config {
	cfg := Config{
		Client:        retryClient{r.cfg.Client, r.cfg.SigningKeys},
		Concurrency:   r.cfg.Concurrency,
		DeadLetterURL: r.cfg.DeadLetterURL,
		Name:          r.cfg.Name,
		SigningKeys:   r.cfg.SigningKeys,
		Observer:      r.cfg.Observer,
		Logger:        r.cfg.Logger,
		Retry:         retry.Policy{Backoff: retry.Func(everySecond), Jitter: retry.None, MaxAttempts: -1, MaxAge: year},
	}
	if r.cfg.Mode == ModeDirect {
		// Attempts come only from the history of a copy: with this backoff no time is long enough
		// for a receive to count as an attempt.
		cfg.Retry.Backoff = retry.Constant(year)
		cfg.Via = reprise.ViaRequeue
	}
	if r.cfg.Client == nil {
		cfg.Client = nil // SQS reports the missing client
	}
	return cfg
}

const year = 366 * 24 * time.Hour

// everySecond is a backoff under which all receives of a message can have been attempts, so that no
// message is a suspect. From time to time it is longer than the age, so that a schedule computed
// from it, at each invocation, is short.
func everySecond(n int) time.Duration {
	if n%64 == 0 {
		return year
	}
	return time.Second
}
