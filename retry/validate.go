package retry

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"
)

// Validate reports every invalid field, joined in one error. An invalid policy still decides
// safely: no panic, no negative wait.
func (p Policy) Validate() error {
	errs := []error{
		validateSchedule("", p.Backoff, p.Jitter),
		validateAgeFrom(p.AgeFrom),
	}
	for i, r := range p.Rules {
		field := fmt.Sprintf("Rules[%d].", i)
		if r.Match == nil {
			errs = append(errs, problem(field+"Match", "nil", "it matches nothing", "set a func(error) bool, or use retry.On or retry.OnType"))
		}
		errs = append(errs, validateSchedule(field, r.Backoff, r.Jitter))
	}
	return errors.Join(errs...)
}

// problem formats an error about one field.
func problem(field string, value any, what, remedy string) error {
	return fmt.Errorf("retry: %s is %v: %s; %s", field, value, what, remedy)
}

func validateAgeFrom(from AgeFrom) error {
	if from > Sent {
		return problem("AgeFrom", uint8(from), "no such instant", "use retry.FirstReceive or retry.Sent")
	}
	return nil
}

func validateSchedule(field string, b Backoff, j Jitter) error {
	errs := []error{validateBackoff(field+"Backoff", b)}
	if _, ok := j.hundredths(); !ok && j >= Jitter(len(jitterNames)) {
		value := any(uint32(j))
		if j == invalidJitter {
			value = "a Percent out of range"
		}
		errs = append(errs, problem(field+"Jitter", value, "no such jitter",
			"use retry.Full, None, Equal, FromBase, Decorrelated, or Percent(p) with p from 0 to 100"))
	}
	return errors.Join(errs...)
}

func validateBackoff(field string, b Backoff) error {
	switch b := b.(type) {
	case Exponential:
		return errors.Join(
			validateRange(field, b.Base, b.Max),
			validateNumber(field+".Factor", b.Factor, 1, DefaultFactor),
		)
	case Linear:
		return errors.Join(
			validateRange(field, b.Base, b.Max),
			validateStep(field+".Step", b.Step),
		)
	case Polynomial:
		return errors.Join(
			validateRange(field, b.Base, b.Max),
			validateNumber(field+".Exponent", b.Exponent, 0, DefaultExponent),
		)
	case Constant:
		return validateWait(field, time.Duration(b))
	case List:
		return validateList(field, b)
	case Func:
		if b == nil {
			return problem(field, "a nil retry.Func", "it gives no wait", "set a function, or leave Backoff nil for the default")
		}
	}
	return nil
}

// validateRange checks the wait before the first retry and the longest wait.
func validateRange(field string, base, limit time.Duration) error {
	var errs []error
	if base < 0 {
		errs = append(errs, problem(field+".Base", base, "a wait cannot be negative", "leave it zero for the default, "+formatDuration(DefaultBase)))
	}
	if limit < 0 {
		errs = append(errs, problem(field+".Max", limit, "a wait cannot be negative", "leave it zero for the default, "+formatDuration(DefaultMax)))
	}
	base, limit = cmp.Or(base, DefaultBase), cmp.Or(limit, DefaultMax)
	if len(errs) == 0 && base > limit {
		errs = append(errs, problem(field+".Max", formatDuration(limit), "it is less than Base, "+formatDuration(base), "raise Max or lower Base"))
	}
	return errors.Join(errs...)
}

func validateNumber(field string, x, least, standard float64) error {
	remedy := fmt.Sprintf("use a number of at least %v, or zero for the default, %v", least, standard)
	switch {
	case math.IsNaN(x) || math.IsInf(x, 0):
		return problem(field, x, "not a finite number", remedy)
	case x < least && x != 0:
		return problem(field, x, "waits would shrink", remedy)
	}
	return nil
}

func validateStep(field string, step time.Duration) error {
	if step < 0 {
		return problem(field, step, "waits would shrink", "leave it zero for the default, Base")
	}
	return nil
}

func validateWait(field string, wait time.Duration) error {
	if wait < 0 {
		return problem(field, wait, "a wait cannot be negative", "use 0 or more")
	}
	return nil
}

func validateList(field string, l List) error {
	if len(l) == 0 {
		return problem(field, "an empty retry.List", "it gives no wait", "list at least one, or leave Backoff nil for the default")
	}
	var errs []error
	for i, wait := range l {
		errs = append(errs, validateWait(fmt.Sprintf("%s[%d]", field, i), wait))
	}
	return errors.Join(errs...)
}
