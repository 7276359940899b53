package retry

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MarshalText returns the policy on one line:
//
//	exponential(base=2s,factor=2,max=12h) jitter=full attempts=20 age=24h since=sent
//
// Fields that are zero are left out and mean the default, except that the jitter
// always shows; a negative limit is "unlimited". [Policy.UnmarshalText] reads an equal policy from
// the text. A policy with Rules, or with a backoff that is a Func or from another package, has no
// text, and the error says so.
func (p Policy) MarshalText() ([]byte, error) {
	if len(p.Rules) > 0 {
		return nil, errors.New("retry: Policy.Rules has no text form: keep a policy with rules in code")
	}
	if err := p.Validate(); err != nil {
		return nil, err
	}
	var words []string
	if p.Backoff != nil {
		word, err := formatBackoff(p.Backoff)
		if err != nil {
			return nil, err
		}
		words = append(words, word)
	}
	words = append(words, "jitter="+p.Jitter.String())
	switch {
	case p.MaxAttempts > 0:
		words = append(words, "attempts="+strconv.Itoa(p.MaxAttempts))
	case p.MaxAttempts < 0:
		words = append(words, "attempts="+unlimited)
	}
	switch {
	case p.MaxAge > 0:
		words = append(words, "age="+formatDuration(p.MaxAge))
	case p.MaxAge < 0:
		words = append(words, "age="+unlimited)
	}
	if p.AgeFrom == Sent {
		words = append(words, "since=sent")
	}
	return []byte(strings.Join(words, " ")), nil
}

func formatBackoff(b Backoff) (string, error) {
	switch b := b.(type) {
	case Exponential:
		return formatFields("exponential", durationField("base", b.Base), floatField("factor", b.Factor), durationField("max", b.Max)), nil
	case Linear:
		return formatFields("linear", durationField("base", b.Base), durationField("step", b.Step), durationField("max", b.Max)), nil
	case Polynomial:
		return formatFields("polynomial", durationField("base", b.Base), floatField("exponent", b.Exponent), durationField("max", b.Max)), nil
	case Constant:
		return "constant(" + formatDuration(time.Duration(b)) + ")", nil
	case List:
		waits := make([]string, len(b))
		for i, wait := range b {
			waits[i] = formatDuration(wait)
		}
		return "list(" + strings.Join(waits, ",") + ")", nil
	}
	return "", fmt.Errorf("retry: Policy.Backoff, a %T, has no text form: text knows %s", b, knownBackoffs)
}

// formatFields joins the fields that are set: empty ones have their default.
func formatFields(name string, fields ...string) string {
	fields = slices.DeleteFunc(fields, func(f string) bool { return f == "" })
	if len(fields) == 0 {
		return name
	}
	return name + "(" + strings.Join(fields, ",") + ")"
}

func durationField(key string, d time.Duration) string {
	if d == 0 {
		return ""
	}
	return key + "=" + formatDuration(d)
}

func floatField(key string, x float64) string {
	if x == 0 {
		return ""
	}
	return key + "=" + strconv.FormatFloat(x, 'g', -1, 64)
}

// formatDuration is d.String() without the zero minutes and seconds: 12h, not
// 12h0m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-len("0s")]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-len("0m")]
	}
	return s
}
