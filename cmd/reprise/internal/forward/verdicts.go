package forward

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/reprise-sqs/reprise"
)

// Verdict is what a failure means for the message.
type Verdict uint8

// The verdicts.
const (
	// Retry: the policy decides about the next attempt.
	Retry Verdict = iota
	// Unavailable: the target is at fault, not the message. The policy decides about the next
	// attempt; when nearly all messages end this way, the consumer's circuit breaker opens and
	// holds messages without counting attempts.
	Unavailable
	// Permanent: dead-lettered now. The same message would be refused again.
	Permanent
	// Release: given back without counting an attempt.
	Release
	// Delete: done, although the answer says otherwise.
	Delete
)

// apply returns err in the form by which the consumer acts on v.
func (v Verdict) apply(err error) error {
	switch v {
	case Delete:
		return nil
	case Unavailable:
		return reprise.Unavailable(err)
	case Permanent:
		return reprise.Permanent(err)
	case Release:
		return reprise.Release(0, err) // the consumer's escalating minimum applies
	}
	return err
}

// Codes are the verdicts on statuses of HTTP, or on exit codes, that differ from the
// defaults. Nil: none does.
type Codes map[int]Verdict

// Statuses reads changes to the verdicts on statuses; see [ExitCodes].
func Statuses(changes ...Change) (Codes, error) {
	return read(changes, 300, 599, "a status from 300 to 599, a class like 4xx, or a range like 500-504")
}

// ExitCodes reads changes to the verdicts on exit codes. Each code may have one
// verdict. Errors are a [*CodeError].
func ExitCodes(changes ...Change) (Codes, error) {
	return read(changes, 1, 255, "an exit code from 1 to 255, or a range like 64-78")
}

// Change sets the verdict of some codes.
type Change struct {
	// Flag is the flag with the change, for errors.
	Flag    string
	Verdict Verdict
	// Codes are numbers, classes (4xx) and ranges (500-504).
	Codes []string
}

// CodeError is a mistake in one flag that gives codes a verdict.
type CodeError struct {
	Flag    string
	Problem string
}

func (e *CodeError) Error() string { return e.Flag + ": " + e.Problem }

func read(changes []Change, least, most int, remedy string) (Codes, error) {
	var codes Codes
	flags := make(map[int]string)
	for _, change := range changes {
		for _, text := range change.Codes {
			first, last, ok := codeRange(strings.TrimSpace(text))
			if !ok || first < least || last > most || first > last {
				return nil, &CodeError{change.Flag, fmt.Sprintf("%q is not a code that can be changed: pass %s", text, remedy)}
			}
			for code := first; code <= last; code++ {
				if verdict, found := codes[code]; found && verdict != change.Verdict {
					return nil, &CodeError{change.Flag, fmt.Sprintf("%d is in %s too: leave it out of one of them", code, flags[code])}
				}
				if codes == nil {
					codes = make(Codes)
				}
				codes[code], flags[code] = change.Verdict, change.Flag
			}
		}
	}
	return codes, nil
}

// codeRange reads 404, 4xx or 500-504.
func codeRange(text string) (first, last int, ok bool) {
	if class, found := strings.CutSuffix(strings.ToLower(text), "xx"); found {
		n, err := strconv.Atoi(class)
		return 100 * n, 100*n + 99, err == nil
	}
	from, to, isRange := strings.Cut(text, "-")
	first, err := strconv.Atoi(from)
	if err != nil {
		return 0, 0, false
	}
	if !isRange {
		return first, first, true
	}
	last, err = strconv.Atoi(to)
	return first, last, err == nil
}

// onStatus returns the verdict on a status other than 2xx.
func (c Codes) onStatus(status int) Verdict {
	if verdict, changed := c[status]; changed {
		return verdict
	}
	switch status {
	case 408, // the request took too long to arrive
		425: // too early
		return Retry
	case 401, 402, 403, 407, // the caller, the same for every message
		404, 405, 410, 421, // the URL
		406, 411, 414, 415, 426, // the form of the request, the same for every message
		429:
		return Unavailable
	}
	if status >= 400 && status < 500 {
		return Permanent
	}
	return Unavailable // 5xx; a redirect, which is not followed; not HTTP
}

// The exit codes by which a command decides what happens to the message. Zero deletes the
// message, and every code that is not here, or death by a signal, is a failure that is retried by
// the policy.
const (
	// ExitPermanent dead-letters the message now. qmail's delivery programs use the same code for
	// a permanent failure.
	ExitPermanent = 100
	// ExitRelease gives the message back without counting an attempt.
	ExitRelease = 101

	exitUnavailable   = 69  // EX_UNAVAILABLE of sysexits.h: a service is unavailable
	exitTemporary     = 75  // EX_TEMPFAIL: to be tried again
	exitConfiguration = 78  // EX_CONFIG: something is misconfigured
	exitNotExecutable = 126 // the shell's: the command is not executable
	exitNotFound      = 127 // the shell's: there is no such command
)

// onExit returns the verdict on an exit code other than 0.
func (c Codes) onExit(code int) Verdict {
	if verdict, changed := c[code]; changed {
		return verdict
	}
	switch code {
	case ExitPermanent:
		return Permanent
	case ExitRelease:
		return Release
	case exitUnavailable, exitConfiguration, exitNotExecutable, exitNotFound:
		return Unavailable
	case exitTemporary:
		return Retry
	}
	return Retry
}
