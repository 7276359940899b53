package simreport

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/retry"
	"github.com/reprise-sqs/reprise/simulate"
)

// Variant is a scenario with a label that tells it from the others.
type Variant struct {
	Label    string
	Scenario simulate.Scenario
}

// parameter is what a variant may change.
type parameter struct {
	name string
	set  func(*simulate.Scenario, string) error
}

var parameters = []parameter{
	{"base", ofBackoff(func(base, _ *time.Duration, v time.Duration) { *base = v })},
	{"max", ofBackoff(func(_, most *time.Duration, v time.Duration) { *most = v })},
	{"jitter", func(s *simulate.Scenario, v string) error {
		var p retry.Policy
		err := p.UnmarshalText([]byte("jitter=" + v))
		s.Policy.Jitter = p.Jitter
		return err
	}},
	{"attempts", func(s *simulate.Scenario, v string) error {
		var p retry.Policy
		err := p.UnmarshalText([]byte("attempts=" + v))
		s.Policy.MaxAttempts = p.MaxAttempts
		return err
	}},
	{"age", func(s *simulate.Scenario, v string) error {
		var p retry.Policy
		err := p.UnmarshalText([]byte("age=" + v))
		s.Policy.MaxAge = p.MaxAge
		return err
	}},
	{"messages", whole(func(s *simulate.Scenario) *int { return &s.Traffic.Backlog })},
	{"rate", real(func(s *simulate.Scenario) *float64 { return &s.Traffic.Rate })},
	{"takes", func(s *simulate.Scenario, v string) error { return s.Handler.Takes.UnmarshalText([]byte(v)) }},
	{"failing", func(s *simulate.Scenario, v string) error { return ReadFailing(&s.Handler, v) }},
	{"capacity", real(func(s *simulate.Scenario) *float64 { return &s.Dependency.Capacity })},
	{"consumers", whole(func(s *simulate.Scenario) *int { return &s.Fleet.Consumers })},
	{"concurrency", whole(func(s *simulate.Scenario) *int { return &s.Fleet.Concurrency })},
	{"prefetch", whole(func(s *simulate.Scenario) *int { return &s.Fleet.Prefetch })},
	{"lease", duration(func(s *simulate.Scenario) *time.Duration { return &s.Fleet.Lease })},
	{"batch", whole(func(s *simulate.Scenario) *int { return &s.Fleet.Batch.Size })},
	{"retry-lane", whole(func(s *simulate.Scenario) *int { return &s.Fleet.RetryLane.Weight })},
	{"max-receives", whole(func(s *simulate.Scenario) *int { return &s.Queue.MaxReceives })},
	{"breaker", func(s *simulate.Scenario, v string) error {
		var on bool
		err := onOff(&on, v)
		s.Fleet.NoBreaker = !on
		return err
	}},
	{"fluid", func(s *simulate.Scenario, v string) error { return onOff(&s.Fluid, v) }},
	{"seed", func(s *simulate.Scenario, v string) (err error) {
		s.Seed, err = strconv.ParseUint(v, 10, 64)
		return err
	}},
}

// ParameterNames lists what may be varied.
func ParameterNames() string {
	var names []string
	for _, p := range parameters {
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
}

// ofBackoff changes an exponential backoff, which the default is too.
func ofBackoff(set func(base, most *time.Duration, v time.Duration)) func(*simulate.Scenario, string) error {
	return func(s *simulate.Scenario, text string) error {
		v, err := time.ParseDuration(text)
		if err != nil {
			return err
		}
		switch b := s.Policy.Backoff.(type) {
		case nil:
			e := retry.Exponential{}
			set(&e.Base, &e.Max, v)
			s.Policy.Backoff = e
		case retry.Exponential:
			set(&b.Base, &b.Max, v)
			s.Policy.Backoff = b
		case retry.Linear:
			set(&b.Base, &b.Max, v)
			s.Policy.Backoff = b
		case retry.Polynomial:
			set(&b.Base, &b.Max, v)
			s.Policy.Backoff = b
		default:
			return errors.New("the policy's backoff has none: use exponential, linear or polynomial")
		}
		return nil
	}
}

func onOff(field *bool, v string) error {
	if v != "on" && v != "off" {
		return errors.New("write on or off")
	}
	*field = v == "on"
	return nil
}

func whole(field func(*simulate.Scenario) *int) func(*simulate.Scenario, string) error {
	return func(s *simulate.Scenario, v string) (err error) {
		*field(s), err = strconv.Atoi(v)
		return err
	}
}

func real(field func(*simulate.Scenario) *float64) func(*simulate.Scenario, string) error {
	return func(s *simulate.Scenario, v string) (err error) {
		*field(s), err = strconv.ParseFloat(strings.TrimSuffix(v, "/s"), 64)
		return err
	}
}

func duration(field func(*simulate.Scenario) *time.Duration) func(*simulate.Scenario, string) error {
	return func(s *simulate.Scenario, v string) (err error) {
		*field(s), err = time.ParseDuration(v)
		return err
	}
}

// ReadShare reads a share such as 20% or 0.2.
func ReadShare(text string) (float64, error) {
	number, isPercent := strings.CutSuffix(strings.TrimSpace(text), "%")
	p, err := strconv.ParseFloat(number, 64)
	if isPercent {
		p /= 100
	}
	if err != nil || !(p >= 0 && p <= 1) {
		return 0, fmt.Errorf("%q is no share: write one such as 20%%, from 0%% to 100%%", text)
	}
	return p, nil
}

// set changes one parameter; known is false if there is none of this name.
func set(s *simulate.Scenario, name, value string) (known bool, err error) {
	for _, p := range parameters {
		if p.name == name {
			if err := p.set(s, value); err != nil {
				return true, fmt.Errorf("%s=%s: %w", name, value, err)
			}
			return true, nil
		}
	}
	return false, nil
}

// Vary returns s with a change: a policy, or parameters such as breaker=off, separated by semicolons.
func Vary(s simulate.Scenario, change string) (Variant, error) {
	v := Variant{Label: change, Scenario: s}
	for part := range strings.SplitSeq(change, ";") {
		part = strings.TrimSpace(part)
		name, value, isPair := strings.Cut(part, "=")
		if isPair && !strings.ContainsAny(part, " (") {
			if known, err := set(&v.Scenario, name, value); known || err != nil {
				if err != nil {
					return v, err
				}
				continue
			}
		}
		if err := v.Scenario.Policy.UnmarshalText([]byte(part)); err != nil {
			return v, fmt.Errorf("%q is neither a policy nor one of the parameters %s: %w", part, ParameterNames(), err)
		}
	}
	return v, nil
}

// steps is how many values a range of a sweep has.
const steps = 7

// Sweep returns variants of s from a text such as base=1s..1m, whose values grow by equal factors, or
// concurrency=10,20,50.
func Sweep(s simulate.Scenario, text string) ([]Variant, error) {
	name, list, ok := strings.Cut(text, "=")
	if !ok || list == "" {
		return nil, fmt.Errorf("%q: write what to vary and its values, such as base=1s..1m or concurrency=10,20,50; what to vary is one of %s", text, ParameterNames())
	}
	values := strings.Split(list, ",")
	if from, to, isRange := strings.Cut(list, ".."); isRange {
		var err error
		if values, err = between(from, to); err != nil {
			return nil, fmt.Errorf("%q: %w", text, err)
		}
	}
	var all []Variant
	for _, value := range values {
		v := Variant{Label: name + "=" + value, Scenario: s}
		known, err := set(&v.Scenario, name, value)
		if !known {
			return nil, fmt.Errorf("%q cannot be varied: use one of %s", name, ParameterNames())
		}
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// between returns values from one to another: durations, numbers or shares.
func between(from, to string) ([]string, error) {
	suffix := ""
	if strings.HasSuffix(to, "%") {
		suffix = "%"
	}
	a, errA := strconv.ParseFloat(strings.TrimSuffix(from, suffix), 64)
	b, errB := strconv.ParseFloat(strings.TrimSuffix(to, suffix), 64)
	format := func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) + suffix }
	if errA != nil || errB != nil {
		x, err := time.ParseDuration(from)
		y, err2 := time.ParseDuration(to)
		if err = errors.Join(err, err2); err != nil {
			return nil, err
		}
		a, b = x.Seconds(), y.Seconds()
		format = func(x float64) string {
			return short(time.Duration(x * float64(time.Second)).Round(time.Millisecond))
		}
	}
	if a <= 0 || b <= a {
		return nil, errors.New("the range has to go from something positive to something larger")
	}
	var values []string
	for i := range steps {
		x := a * math.Pow(b/a, float64(i)/(steps-1))
		if i == 0 || i == steps-1 {
			x = []float64{a, b}[min(i, 1)]
		} else {
			x = twoDigits(x)
		}
		if errA == nil && a == math.Trunc(a) && b == math.Trunc(b) {
			x = math.Round(x)
		}
		if text := format(x); !slices.Contains(values, text) {
			values = append(values, text)
		}
	}
	return values, nil
}

// twoDigits rounds to two significant digits.
func twoDigits(x float64) float64 {
	scale := math.Pow(10, math.Floor(math.Log10(x))-1)
	if scale < 1 && x >= 1 {
		scale = 1
	}
	return math.Round(x/scale) * scale
}
