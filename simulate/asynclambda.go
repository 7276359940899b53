package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// AsyncLambda is an asynchronous Lambda function whose failures are retried from a queue, as package
// repriselambda does with envelopes: Lambda sends a record of each failure to a retry queue; the
// retry handler receives it, hides it until the policy says that the function is due, receives it
// again, invokes the function, and deletes the record. An event that is given up goes to the
// dead-letter queue. Events do not wait for each other: nothing is throttled.
type AsyncLambda struct {
	// Events is how many events the function is invoked for, up to [MaxMessages]. Default: 1,000.
	Events int
	// Over is the time over which they come, at random instants, up to [MaxHorizon]. Default: all at once.
	Over time.Duration

	// Takes is how long a run of the function takes. Default: 100 ms.
	Takes Times
	// Fails is the chance that a run fails outside of outages, from 0 to 1. Default: none fails.
	Fails float64
	// Outages are times in which the runs that begin fail, all or a share. Default: none.
	Outages []Outage

	// LambdaRetries is how often Lambda itself runs the function again before it sends a record, after
	// one minute and after two more: its MaximumRetryAttempts, 0 to 2. All these runs are one attempt
	// of the policy. Default: 0, as the retry handler wants it; Lambda's own default is 2.
	LambdaRetries int

	// Policy is that of the retry handler. Its age counts from the first record. Default, if all of it
	// is zero: that of a retry handler, a wait between 1 s and 2^(n-1) s before the n-th retry, at most
	// 12 h, for 24 h.
	Policy retry.Policy
	// ArticleAge treats the policy's MaxAge as the program does that was published with the article
	// "Async Lambda Function Retries with Backoff and Jitter". It takes max(86400, MAX_AGE), so that an
	// age below 24 h counts as 24 h; and it compares the age only when it receives a record, so that a
	// wait that ends beyond the age is waited out, and then the event is given up without a last run.
	// Default: as [retry.Policy] describes MaxAge.
	ArticleAge bool

	// Receive is how long a message that is visible in the retry queue waits until the retry handler
	// receives it. Default: 1 s. The article measured some 16 s in a quiet queue with a batching window.
	Receive Times
	// Horizon ends the simulation, up to [MaxHorizon]. Default: 48 h.
	Horizon time.Duration
	// Seed selects the draws.
	Seed uint64
	// Progress is called now and then, with how many events were simulated. Default: nothing is called.
	Progress func(events int)
}

// AsyncLambdaResult is what comes of an [AsyncLambda].
type AsyncLambdaResult struct {
	// Simulated is what was simulated, with every default filled in, and without its Progress.
	Simulated AsyncLambda
	// Events is how many were simulated. Each is one of the four below.
	Events int
	// Succeeded had a run without a failure.
	Succeeded int
	// Exhausted used up the policy's attempts and Expired its age: they went to the dead-letter queue.
	Exhausted, Expired int
	// Waiting were to be run again after the horizon.
	Waiting int

	// Runs are those of the function, and Failed how many of them failed.
	Runs, Failed int
	// Minutes has how many runs begin in each minute, up to that of the last run.
	Minutes []int
	// Last is when the last run begins.
	Last time.Duration
	// Done is the time from an event's invocation to the end of the run that succeeds, GivenUp that
	// from its first record to the dead-letter queue.
	Done, GivenUp Quantiles

	// Requests are those to SQS, each about one message: batches would share some. Empty receives are
	// left out.
	Requests int
	// HandlerRuns are the invocations of the retry handler, with one record each, and HandlerTime their
	// duration: 50 ms each, and longer if a record is due within 2 s, which the handler waits for.
	HandlerRuns int
	HandlerTime time.Duration
}

// The prices in US dollars of a million Lambda requests, and of a million GB-seconds of arm64.
const (
	LambdaRequestPrice = 0.20
	LambdaTimePrice    = 13.3334
)

const (
	handlerTakes    = 50 * time.Millisecond
	handlerMemory   = 0.125 // GB
	handlerWaits    = 2 * time.Second
	mostOwnRetries  = 2
	firstOwnWait    = time.Minute
	secondOwnWait   = 2 * time.Minute
	articleLeastAge = 24 * time.Hour
)

// Cost returns the estimated price in US dollars of the retries: of the requests to SQS, and of a
// retry handler with 128 MB. The function's own runs are left out, which cost the same however they
// are retried, and so are the polls of an idle queue.
func (r *AsyncLambdaResult) Cost() float64 {
	gigabyteSeconds := r.HandlerTime.Seconds() * handlerMemory
	return (float64(r.Requests)*StandardPrice + float64(r.HandlerRuns)*LambdaRequestPrice + gigabyteSeconds*LambdaTimePrice) / 1e6
}

// asyncRun is a simulation under way.
type asyncRun struct {
	AsyncLambda
	result        *AsyncLambdaResult
	age           time.Duration // of ArticleAge; negative: unlimited
	done, givenUp []time.Duration
}

// RunAsyncLambda simulates a. Invalid fields are reported in one error, each with its remedy. If ctx ends,
// it returns what came of the events until then, with the context's cause. The decisions are those
// of [retry.Policy.Decide]; each record has the id of its own invocation, and so a jitter of its own.
func RunAsyncLambda(ctx context.Context, a AsyncLambda) (*AsyncLambdaResult, error) {
	a.defaults()
	if err := a.validate(); err != nil {
		return nil, fmt.Errorf("the simulation is invalid:\n%w", err)
	}
	s := asyncRun{AsyncLambda: a, result: &AsyncLambdaResult{Simulated: a}}
	s.result.Simulated.Progress = nil
	if a.ArticleAge {
		if s.age = a.Policy.MaxAge; s.age >= 0 {
			s.age = max(s.age, articleLeastAge)
		}
		s.Policy.MaxAge = -1
	}
	var err error
	for i := range a.Events {
		if i%64 == 0 {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
				break
			}
			if a.Progress != nil {
				a.Progress(i)
			}
		}
		s.event(i)
		s.result.Events++
	}
	s.result.Done, s.result.GivenUp = quantilesOf(s.done), quantilesOf(s.givenUp)
	return s.result, err
}

func (a *AsyncLambda) defaults() {
	fill(&a.Events, 1000)
	fill(&a.Takes, Constant(100*time.Millisecond))
	fill(&a.Receive, Constant(time.Second))
	fill(&a.Horizon, 48*time.Hour)
	a.Outages = append([]Outage(nil), a.Outages...)
	for i := range a.Outages {
		fill(&a.Outages[i].Share, 1)
	}
	if p := &a.Policy; p.Backoff == nil && p.Jitter == 0 && p.MaxAttempts == 0 && p.MaxAge == 0 && p.AgeFrom == 0 && p.Rules == nil {
		*p = retry.Policy{
			Backoff: retry.Exponential{Base: time.Second, Max: retry.MaxVisibility}, Jitter: retry.FromBase, MaxAttempts: -1, MaxAge: 24 * time.Hour,
		}
	}
}

func (a *AsyncLambda) validate() error {
	var c checks
	c.count("the number of events", a.Events, 1, MaxMessages)
	c.between("the time over which they come", a.Over, 0, MaxHorizon)
	if problem := a.Takes.check(); problem != "" {
		c.add("the time of a run", a.Takes, problem)
	}
	c.share("the share of runs that fail", a.Fails)
	c.outages("outages", a.Outages)
	c.count("the number of Lambda's own retries", a.LambdaRetries, 0, mostOwnRetries)
	if problem := a.Receive.check(); problem != "" {
		c.add("the time until a message is received", a.Receive, problem)
	}
	c.between("the horizon", a.Horizon, time.Minute, MaxHorizon)
	err := a.Policy.Validate()
	a.Policy = a.Policy.WithDefaults()
	return errors.Join(append(c, err)...)
}

// event simulates one event, to its end or the horizon.
func (s *asyncRun) event(i int) {
	sent := time.Duration(unit(draw(s.Seed, forArrival, uint64(i), 0)) * float64(s.Over))
	at, runs := sent, 0
	var first time.Duration // the first record
	for attempt := 1; ; attempt++ {
		ended, failed := s.invoke(i, &runs, at)
		switch {
		case ended > s.Horizon:
			s.result.Waiting++
			return
		case !failed:
			s.result.Succeeded++
			s.done = append(s.done, ended-sent)
			return
		case attempt == 1:
			first = ended
		}
		var why retry.Reason
		at, why = s.handle(i, attempt, first, ended)
		switch {
		case at > s.Horizon:
			s.result.Waiting++
			return
		case why != 0:
			s.result.Requests += 2 // a copy is sent to the dead-letter queue, and the record deleted
			s.givenUp = append(s.givenUp, at-first)
			if why == retry.ReasonAge {
				s.result.Expired++
			} else {
				s.result.Exhausted++
			}
			return
		}
		s.result.Requests++                 // the record is deleted
		first = first.Truncate(time.Second) // an envelope has it in whole seconds
	}
}

// invoke is Lambda with an event at a time: it runs the function, up to LambdaRetries times more if it
// fails, and returns the end of the last run, or a time beyond the horizon.
func (s *asyncRun) invoke(i int, runs *int, at time.Duration) (ended time.Duration, failed bool) {
	for again := 0; at <= s.Horizon; again++ {
		*runs++
		s.began(at)
		var takes time.Duration
		if takes, failed = s.run(i, *runs, at); failed {
			s.result.Failed++
		}
		ended = at + takes
		if !failed || again == s.LambdaRetries {
			return ended, failed
		}
		at = ended + secondOwnWait
		if again == 0 {
			at = ended + firstOwnWait
		}
	}
	return at, true
}

// began counts a run.
func (s *asyncRun) began(at time.Duration) {
	r := s.result
	minute := int(at / time.Minute)
	for len(r.Minutes) <= minute {
		r.Minutes = append(r.Minutes, 0)
	}
	r.Minutes[minute]++
	r.Runs++
	r.Last = max(r.Last, at)
}

// run is a run that begins at a time: how long it takes, and whether it fails.
func (s *asyncRun) run(i, run int, at time.Duration) (takes time.Duration, failed bool) {
	takes = s.Takes.draw(draw(s.Seed, forTakes, uint64(i), uint64(run)))
	for _, o := range s.Outages {
		if at >= o.At && at < o.At+o.For && unit(draw(s.Seed, forOutage, uint64(i), uint64(run))) < o.Share {
			return cmp.Or(o.Takes, takes), true
		}
	}
	return takes, unit(draw(s.Seed, forFailure, uint64(i), uint64(run))) < s.Fails
}

// handle is the retry handler with the record of a failed attempt: it returns when the function is
// invoked again, or when and why the event is given up.
func (s *asyncRun) handle(i, attempt int, first, failed time.Duration) (at time.Duration, why retry.Reason) {
	s.result.Requests++ // Lambda sends the record
	receives := 0
	now := s.receive(i, attempt, &receives, failed)
	if s.ArticleAge && s.tooOld(first, now) {
		return now, retry.ReasonAge
	}
	d := s.Policy.Decide(retry.Failure{
		N: attempt, Seed: idOf(draw(s.Seed, forRequest, uint64(attempt), 0), i).String(),
		Sent: epoch.Add(first), First: epoch.Add(first), Ended: epoch.Add(failed),
	})
	if d.Action == retry.ActionDeadLetter {
		return now, d.Reason
	}
	due := d.At.Sub(epoch)
	for due-now > handlerWaits && now <= s.Horizon {
		s.result.Requests++ // it is hidden, if twelve hours are not enough once more
		hidden, _ := retry.Visibility(epoch.Add(now), epoch.Add(now), d.At)
		now = s.receive(i, attempt, &receives, now+time.Duration(hidden)*time.Second)
	}
	if now > s.Horizon {
		return now, 0
	}
	if due > now {
		s.result.HandlerTime += due - now
		now = due
	}
	if s.tooOld(first, now) {
		return now, retry.ReasonAge
	}
	return now, 0
}

// receive has the retry handler receive a message that is visible, and returns when.
func (s *asyncRun) receive(i, attempt int, receives *int, visible time.Duration) time.Duration {
	*receives++
	s.result.Requests++
	s.result.HandlerRuns++
	s.result.HandlerTime += handlerTakes
	return visible + s.Receive.draw(draw(draw(s.Seed, forReceive, uint64(*receives), 0), forReceive, uint64(i), uint64(attempt)))
}

// tooOld reports whether an event whose first record is that old must not run again.
func (s *asyncRun) tooOld(first, now time.Duration) bool {
	if s.ArticleAge {
		return s.age >= 0 && (now-first).Truncate(time.Second) > s.age
	}
	p := s.Policy
	p.MaxAttempts = -1
	_, old := p.Exhausted(2, epoch.Add(first), epoch.Add(first), epoch.Add(now))
	return old
}
