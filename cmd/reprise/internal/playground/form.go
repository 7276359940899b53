// Package playground answers a form about a retry policy: when the attempts of a message come, how the
// retries of many fall together, what an outage does to a queue and its consumers, and how the
// policy is written in Go, in the file of the program, and on its command line. It makes no calls,
// reads no files and keeps nothing: a form is the query of a link.
package playground

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/simreport"
	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/simulate"
)

// Form is what is asked. Its zero value is not useful: [Read] fills in the defaults.
type Form struct {
	Policy retry.Policy
	// Against is a policy to compare with; HasAgainst reports whether there is one.
	Against    retry.Policy
	HasAgainst bool
	// WithoutBreaker compares with consumers that have no circuit breaker.
	WithoutBreaker bool

	// Messages are in the queue at the start; Rate arrive each second For a time.
	Messages int
	Rate     float64
	For      time.Duration
	// Fails is the share of attempts that fail, Takes how long each takes.
	Fails float64
	Takes time.Duration
	// Outage is how long the dependency is down, from OutageAt on; zero: never.
	Outage, OutageAt time.Duration
	// Capacity is how many requests a second the dependency takes; zero: any number.
	Capacity float64
	// Consumers is how many processes there are, Concurrency how many handlers each runs at once.
	Consumers, Concurrency int
	// Queue is the queue whose settings the policy is checked against. Default: none.
	Queue string
	// Seed selects the draws.
	Seed uint64
}

// MaxMessages is how many messages a form may ask for: what is simulated on a page is to take less
// than a second or two of a processor that also consumes queues. The command has no such limit.
const MaxMessages = 50_000

// maxOfPolicy is how many attempts a policy may have: the answer looks at each.
const maxOfPolicy = 100_000

// Problem is a field that cannot be used, with the reason and the remedy.
type Problem struct{ Field, Text string }

func (p Problem) Error() string { return p.Field + ": " + p.Text }

// defaults is the form that nobody has filled in.
func defaults() Form {
	return Form{
		Policy:   retry.Policy{Backoff: retry.Exponential{Base: time.Second, Factor: 2, Max: time.Hour}}.WithDefaults(),
		Messages: 1000, Rate: 10, For: 30 * time.Minute,
		Fails: 0.05, Takes: 200 * time.Millisecond,
		Outage: 10 * time.Minute, OutageAt: 10 * time.Minute,
		Consumers: 2, Concurrency: 10,
	}
}

// Read reads a form from the values of its fields. Fields that are absent have their defaults, and so
// do those with a problem. If the field "by" is "sliders", the policy is that of the sliders, else
// that of its text.
func Read(values url.Values) (Form, []Problem) {
	f := defaults()
	r := reader{values: values}
	if values.Get("by") == "sliders" {
		r.policy("policy", sliderText(values), &f.Policy)
	} else if text := r.text("policy"); text != "" {
		r.policy("policy", text, &f.Policy)
	}
	if text := r.text("against"); text != "" {
		f.HasAgainst = r.policy("against", text, &f.Against)
	}
	f.WithoutBreaker = r.text("breaker") == "compare"
	r.count("messages", &f.Messages, 0, MaxMessages)
	r.number("rate", &f.Rate, 0, MaxMessages)
	r.duration("for", &f.For, simulate.MaxHorizon)
	r.share("failing", &f.Fails)
	r.duration("takes", &f.Takes, time.Hour)
	r.duration("outage", &f.Outage, 48*time.Hour)
	r.duration("at", &f.OutageAt, 48*time.Hour)
	r.number("capacity", &f.Capacity, 0, 1e6)
	r.count("consumers", &f.Consumers, 1, 100)
	r.count("concurrency", &f.Concurrency, 1, 1000)
	f.Queue = r.text("queue")
	if text := r.text("seed"); text != "" {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			r.problem("seed", "%q is no whole number: pass one such as 7", text)
		}
		f.Seed = seed
	}
	if arrive := float64(f.Messages) + f.Rate*f.For.Seconds(); arrive > MaxMessages {
		r.problem("messages", "%.0f messages are more than a page simulates, %d: ask for fewer, or use the command, which has no limit of this kind", arrive, MaxMessages)
		f.Messages, f.Rate, f.For = defaults().Messages, defaults().Rate, defaults().For
	}
	return f, r.problems
}

// Query is the form as the query of a link, which Read reads again.
func (f Form) Query() url.Values {
	v := url.Values{}
	v.Set("policy", policyText(f.Policy))
	if f.HasAgainst {
		v.Set("against", policyText(f.Against))
	}
	if f.WithoutBreaker {
		v.Set("breaker", "compare")
	}
	v.Set("messages", strconv.Itoa(f.Messages))
	v.Set("rate", plain(f.Rate))
	v.Set("for", shortTime(f.For))
	v.Set("failing", Percent(f.Fails))
	v.Set("takes", shortTime(f.Takes))
	v.Set("outage", shortTime(f.Outage))
	v.Set("at", shortTime(f.OutageAt))
	v.Set("capacity", plain(f.Capacity))
	v.Set("consumers", strconv.Itoa(f.Consumers))
	v.Set("concurrency", strconv.Itoa(f.Concurrency))
	if f.Queue != "" {
		v.Set("queue", f.Queue)
	}
	if f.Seed != 0 {
		v.Set("seed", strconv.FormatUint(f.Seed, 10))
	}
	return v
}

// PolicyText is the policy as it is written, with its defaults.
func (f Form) PolicyText() string { return policyText(f.Policy) }

// AgainstText is the policy to compare with as it is written; empty: none.
func (f Form) AgainstText() string {
	if !f.HasAgainst {
		return ""
	}
	return policyText(f.Against)
}

func policyText(p retry.Policy) string {
	text, err := p.WithDefaults().MarshalText()
	if err != nil {
		return err.Error() // only if a backoff is a function, which no text can make
	}
	return string(text)
}

// Percent is a share as forms show it: 5%.
func Percent(share float64) string {
	return strconv.FormatFloat(100*share, 'g', 6, 64) + "%"
}

func plain(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// reader reads fields, and keeps what is wrong with them.
type reader struct {
	values   url.Values
	problems []Problem
}

func (r *reader) text(name string) string { return strings.TrimSpace(r.values.Get(name)) }

func (r *reader) problem(name, format string, args ...any) {
	r.problems = append(r.problems, Problem{name, fmt.Sprintf(format, args...)})
}

func (r *reader) policy(name, text string, p *retry.Policy) bool {
	var read retry.Policy
	if len(text) > 4096 {
		r.problem(name, "it has %d characters: a policy has at most 4096", len(text))
		return false
	}
	if err := read.UnmarshalText([]byte(text)); err != nil {
		r.problem(name, "%v", err)
		return false
	}
	if read.MaxAttempts > maxOfPolicy {
		r.problem(name, "it has %d attempts: a page answers for up to %d, or for attempts=unlimited", read.MaxAttempts, maxOfPolicy)
		return false
	}
	*p = read
	return true
}

func (r *reader) count(name string, n *int, least, most int) {
	text := r.text(name)
	if text == "" {
		return
	}
	read, err := strconv.Atoi(text)
	if err != nil || read < least || read > most {
		r.problem(name, "%q is no whole number from %d to %d", text, least, most)
		return
	}
	*n = read
}

func (r *reader) number(name string, x *float64, least, most float64) {
	text := strings.TrimSuffix(r.text(name), "/s")
	if text == "" {
		return
	}
	read, err := strconv.ParseFloat(text, 64)
	if err != nil || !(read >= least && read <= most) { // NaN is neither
		r.problem(name, "%q is no number from %g to %g", text, least, most)
		return
	}
	*x = read
}

func (r *reader) share(name string, p *float64) {
	text := r.text(name)
	if text == "" {
		return
	}
	read, err := simreport.ReadShare(text)
	if err != nil {
		r.problem(name, "%v", err)
		return
	}
	*p = read
}

func (r *reader) duration(name string, d *time.Duration, most time.Duration) {
	text := r.text(name)
	if text == "" {
		return
	}
	if text == "0" {
		*d = 0
		return
	}
	read, err := time.ParseDuration(text)
	if err == nil && (read < 0 || read > most) {
		err = errors.New("out of range")
	}
	if err != nil {
		r.problem(name, "%q is no time up to %v: write one such as 90s or 20m", text, most)
		return
	}
	*d = read
}
