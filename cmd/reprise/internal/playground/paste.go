package playground

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/retry"
)

// Paste is the policy and the simulation as text to paste.
type Paste struct {
	// Go is the policy of a Config, YAML that of a file of the program, Run the command that
	// consumes a queue with it, and Simulate the command that repeats the simulation.
	Go, YAML, Run, Simulate string
}

func (f Form) paste() Paste {
	text := f.PolicyText()
	return Paste{
		Go:       goSource(f.Policy.WithDefaults()),
		YAML:     "retry: " + text + "\n",
		Run:      "reprise run --queue " + quoted(f.queueOr("orders")) + " --url http://127.0.0.1:8080/ \\\n  --retry " + quoted(text) + "\n",
		Simulate: f.command(),
	}
}

func (f Form) queueOr(other string) string {
	if f.Queue == "" {
		return other
	}
	return f.Queue
}

// command is the command that simulates the same.
func (f Form) command() string {
	words := []string{"reprise simulate", "--retry " + quoted(f.PolicyText())}
	add := func(flag, value string) { words = append(words, "--"+flag+" "+value) }
	if f.Messages > 0 {
		add("messages", strconv.Itoa(f.Messages))
	}
	if f.Rate > 0 {
		add("rate", plain(f.Rate))
		add("for", shortTime(f.For))
	}
	if f.Fails > 0 {
		add("failing", Percent(f.Fails))
	}
	add("takes", shortTime(f.Takes))
	if f.Outage > 0 {
		add("outage", shortTime(f.Outage)+"@"+shortTime(f.OutageAt))
	}
	if f.Capacity > 0 {
		add("capacity", plain(f.Capacity)+"/s")
	}
	add("consumers", strconv.Itoa(f.Consumers))
	add("concurrency", strconv.Itoa(f.Concurrency))
	if f.Seed != 0 {
		add("seed", strconv.FormatUint(f.Seed, 10))
	}
	if f.HasAgainst || f.WithoutBreaker {
		words = append(words, "--compare breaker=on")
		if f.HasAgainst {
			words = append(words, quoted(f.AgainstText()))
		}
		if f.WithoutBreaker {
			words = append(words, "breaker=off")
		}
	}
	return strings.Join(words, " \\\n  ") + "\n"
}

// quoted is text as one word of a shell.
func quoted(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// goSource is the policy, which has its defaults, as Go's source.
func goSource(p retry.Policy) string {
	fields := []string{
		"Backoff:     " + goBackoff(p.Backoff) + ",",
		"Jitter:      " + goJitter(p.Jitter) + ",",
		"MaxAttempts: " + goLimit(p.MaxAttempts > 0, strconv.Itoa(p.MaxAttempts)),
		"MaxAge:      " + goLimit(p.MaxAge > 0, goTime(p.MaxAge)),
	}
	if p.AgeFrom == retry.Sent {
		fields = append(fields, "AgeFrom:     retry.Sent,")
	}
	return "retry.Policy{\n\t" + strings.Join(fields, "\n\t") + "\n}\n"
}

func goLimit(limited bool, text string) string {
	if !limited {
		return "-1, // unlimited"
	}
	return text + ","
}

func goBackoff(b retry.Backoff) string {
	switch b := b.(type) {
	case retry.Exponential:
		return fmt.Sprintf("retry.Exponential{Base: %s, Factor: %s, Max: %s}", goTime(b.Base), plain(b.Factor), goTime(b.Max))
	case retry.Linear:
		return fmt.Sprintf("retry.Linear{Base: %s, Step: %s, Max: %s}", goTime(b.Base), goTime(b.Step), goTime(b.Max))
	case retry.Polynomial:
		return fmt.Sprintf("retry.Polynomial{Base: %s, Exponent: %s, Max: %s}", goTime(b.Base), plain(b.Exponent), goTime(b.Max))
	case retry.Constant:
		return fmt.Sprintf("retry.Constant(%s)", goTime(time.Duration(b)))
	case retry.List:
		waits := make([]string, len(b))
		for i, wait := range b {
			waits[i] = goTime(wait)
		}
		return "retry.List{" + strings.Join(waits, ", ") + "}"
	}
	return fmt.Sprintf("%#v", b) // no text makes another
}

func goJitter(j retry.Jitter) string {
	for known, name := range map[retry.Jitter]string{retry.Full: "Full", retry.None: "None", retry.Equal: "Equal", retry.FromBase: "FromBase", retry.Decorrelated: "Decorrelated"} {
		if j == known {
			return "retry." + name
		}
	}
	return "retry.Percent(" + strings.TrimSuffix(j.String(), "%") + ")"
}

// goTime is a time in the largest unit of which it is a whole number.
func goTime(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{time.Hour, "time.Hour"}, {time.Minute, "time.Minute"}, {time.Second, "time.Second"}, {time.Millisecond, "time.Millisecond"}, {time.Microsecond, "time.Microsecond"}} {
		if n := d / unit.length; d%unit.length == 0 {
			if n == 1 {
				return unit.name
			}
			return fmt.Sprintf("%d * %s", n, unit.name)
		}
	}
	return fmt.Sprintf("%d * time.Nanosecond", d)
}
