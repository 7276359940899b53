package playground

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/simreport"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/simulate"
)

// Answer is what a form asks about.
type Answer struct {
	// Schedule is when the attempts of a message come of which each fails.
	Schedule plan.Schedule
	// Findings are the conflicts with the queue; none without one.
	Findings []plan.Finding
	// Retries are those of Drawn messages that fail together: a picture of how many begin in each minute.
	Retries string
	Drawn   int
	// Attempts is how many attempts a message needs on average, GivenUp the share of those that are
	// given up, both with the failing share of the form.
	Attempts, GivenUp float64
	// Runs are the simulations, each with a label if there are several; Figures has a row for each
	// figure, and Picture shows them over time.
	Runs    []simreport.Run
	Figures []simreport.Figure
	Picture string
	// Notes say what a reader should know, such as that a simulation was cut short.
	Notes []string
	Paste Paste
}

const (
	// drawn is how many messages the picture of retries has.
	drawn = 2000
	// maxAttempts is how many attempts all simulations of a form may run, as far as that can be told before: each
	// takes some microseconds, and messages that wait for their next take some kilobytes.
	maxAttempts = 400_000
	// defaultLimit is how long the simulations of a form may take.
	defaultLimit = 5 * time.Second
)

// Settings are what is known beside the form.
type Settings struct {
	// Queue has the settings of the form's queue; Known reports whether they are known.
	Queue plan.Queue
	Known bool
	// Limit is how long all simulations of the form may take. Default: 5s.
	Limit time.Duration
}

// Ask answers a form. The error names what is wrong with it, or is that of ctx.
func Ask(ctx context.Context, f Form, of Settings) (*Answer, error) {
	a := &Answer{Paste: f.paste(), Drawn: drawn}
	settings := plan.Settings{Lease: time.Minute, Rate: f.Rate, ByName: true}
	a.Schedule = plan.NewSchedule(f.Policy, of.Queue, settings)
	if of.Known {
		a.Findings = plan.Check(f.Policy, of.Queue, settings)
	}
	if err := a.drawRetries(ctx, f); err != nil {
		return nil, err
	}
	forms := simulate.NewForms(f.Policy, f.Fails)
	a.Attempts, a.GivenUp = forms.Attempts, forms.DeadLettered
	if err := a.simulate(ctx, f, of); err != nil {
		return nil, err
	}
	return a, nil
}

// drawRetries draws how the retries of messages that fail together are spread, of each policy.
func (a *Answer) drawRetries(ctx context.Context, f Form) error {
	policies := []Form{f}
	if f.HasAgainst {
		other := f
		other.Policy = f.Against
		policies = append(policies, other)
	}
	var all simreport.Schedules
	for _, one := range policies {
		s, err := simulate.NewSchedule(ctx, simulate.Alone{Policy: one.Policy, Messages: drawn, Seed: f.Seed})
		if err != nil {
			return err
		}
		all = append(all, simreport.Alone{Policy: one.PolicyText(), Messages: drawn, Schedule: s})
	}
	a.Retries = all.SVG()
	return nil
}

// simulate runs what is compared.
func (a *Answer) simulate(ctx context.Context, f Form, of Settings) error {
	variants := f.variants(of)
	for _, v := range variants {
		if err := v.Scenario.Validate(); err != nil {
			return fmt.Errorf("the scenario cannot be simulated: %w", err)
		}
	}
	if n := f.mostAttempts(of); n > maxAttempts {
		return fmt.Errorf("up to %.0f attempts may have to be simulated, and a page simulates %d at most: ask for fewer messages, attempts or failures, or use the command, which has no such limit", n, maxAttempts)
	}
	limit := cmp.Or(of.Limit, defaultLimit)
	limited, cancel := context.WithTimeoutCause(ctx, limit, errLong)
	defer cancel()
	for _, v := range variants {
		result, err := simulate.Run(limited, v.Scenario, nil)
		if err != nil && (ctx.Err() != nil || result == nil) {
			return err
		}
		a.Runs = append(a.Runs, simreport.Run{Label: v.Label, Result: result})
		a.Notes = append(a.Notes, result.Notes...)
		if err != nil {
			a.Notes = append(a.Notes, fmt.Sprintf("the simulation was cut short after %v: the figures are those until %v of its own time; the command goes on to the end", limit, result.Ended.Round(time.Second)))
			break
		}
	}
	report := simreport.Report{Runs: a.Runs}
	a.Figures, a.Picture = report.Figures(), report.SVG()
	return nil
}

var errLong = errors.New("the simulation took too long")

// mostAttempts estimates how many attempts all simulations of the form run at most: its messages, times the
// attempts of each.
func (f Form) mostAttempts(of Settings) float64 {
	each := f.attemptsOf(f.Policy, of, true)
	if f.HasAgainst {
		each += f.attemptsOf(f.Against, of, true)
	}
	if f.WithoutBreaker {
		each += f.attemptsOf(f.Policy, of, false)
	}
	return (float64(f.Messages) + f.Rate*f.For.Seconds()) * each
}

// attemptsOf estimates how many attempts a message has of a policy.
func (f Form) attemptsOf(p retry.Policy, of Settings, breaker bool) float64 {
	all := simulate.NewForms(p, 1).Attempts // infinite: without a limit
	schedule := plan.NewSchedule(p, of.Queue, plan.Settings{Lease: time.Minute, Rate: f.Rate, ByName: true}).Attempts
	if len(schedule) < plan.MaxListed { // the age, or the queue, ends them before
		all = min(all, float64(len(schedule)))
	}
	if f.Capacity > 0 { // an overloaded dependency may fail each attempt
		return all
	}
	n := min(simulate.NewForms(p, f.Fails).Attempts, all)
	if down := slices.IndexFunc(schedule, func(a plan.ScheduledAttempt) bool { return a.Since.Expected > f.Outage }); !breaker && down > 0 {
		return max(n, float64(down)) // those that begin while the dependency is down
	} else if !breaker {
		return all
	}
	return n
}

// variants are the scenarios that a form compares, the first its own.
func (f Form) variants(of Settings) []simreport.Variant {
	all := []simreport.Variant{{Scenario: f.scenario(of)}}
	if f.HasAgainst {
		other := f
		other.Policy = f.Against
		all = append(all, simreport.Variant{Label: other.PolicyText(), Scenario: other.scenario(of)})
	}
	if f.WithoutBreaker {
		v := simreport.Variant{Label: "without a circuit breaker", Scenario: f.scenario(of)}
		v.Scenario.Fleet.NoBreaker = true
		all = append(all, v)
	}
	if len(all) > 1 {
		all[0].Label = f.PolicyText()
	}
	return all
}

// scenario is what is simulated of a form.
func (f Form) scenario(of Settings) simulate.Scenario {
	s := simulate.Scenario{
		Traffic: simulate.Traffic{Backlog: f.Messages, Rate: f.Rate},
		Policy:  f.Policy,
		Handler: simulate.Handler{Takes: simulate.Constant(f.Takes)},
		Fleet:   simulate.Fleet{Consumers: f.Consumers, Concurrency: f.Concurrency},
		Seed:    f.Seed,
	}
	if f.Rate > 0 {
		s.Traffic.For = f.For
	}
	if f.Fails > 0 {
		s.Handler.Fails = []float64{f.Fails}
	}
	s.Dependency.Capacity = f.Capacity
	if f.Outage > 0 {
		s.Dependency.Outages = []simulate.Outage{{At: f.OutageAt, For: f.Outage}}
	}
	if of.Known {
		q := of.Queue
		s.Queue = simulate.Queue{FIFO: q.FIFO, Retention: q.Retention, Delay: q.Delay, MaxReceives: q.MaxReceives, NoDeadLetters: q.DeadLetterARN == ""}
	}
	return s
}
