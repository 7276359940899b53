package forward

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/reprise-sqs/reprise"
)

// Verdict is what an answer that is no success means for the message.
type Verdict uint8

// The verdicts.
const (
	// Retry: tried again by the policy.
	Retry Verdict = iota
	// Unavailable: something is wrong with the target, and nothing with the message:
	// tried again by the policy, and when nearly all messages end so, the consumer's
	// circuit breaker opens and holds them without counting attempts.
	Unavailable
	// Permanent: dead-lettered now. The same message would be refused again.
	Permanent
	// Release: given back without counting an attempt.
	Release
)

// apply makes err steer the consumer as v says.
func (v Verdict) apply(err error) error {
	switch v {
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
// verdict. Errors name the flag.
func ExitCodes(changes ...Change) (Codes, error) {
	return read(changes, 1, 255, "an exit code from 1 to 255, or a range like 64-78")
}

// Change gives codes a verdict.
type Change struct {
	// Flag is the flag that asks for it, for errors.
	Flag    string
	Verdict Verdict
	// Codes are numbers, classes (4xx) and ranges (500-504).
	Codes []string
}

func read(changes []Change, least, most int, remedy string) (Codes, error) {
	var codes Codes
	flags := make(map[int]string)
	for _, change := range changes {
		for _, text := range change.Codes {
			first, last, ok := codeRange(strings.TrimSpace(text))
			if !ok || first < least || last > most || first > last {
				return nil, fmt.Errorf("%s: %q is not a code that can be changed: pass %s", change.Flag, text, remedy)
			}
			for code := first; code <= last; code++ {
				if verdict, found := codes[code]; found && verdict != change.Verdict {
					return nil, fmt.Errorf("%d is in %s and in %s: leave it out of one of them", code, flags[code], change.Flag)
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

// onStatus is the verdict on an answer with a status other than 2xx.
func (c Codes) onStatus(status int) Verdict {
	if verdict, changed := c[status]; changed {
		return verdict
	}
	switch status {
	case 408, // the request took too long to arrive
		425: // too early
		return Retry
	case 401, 402, 403, 407, // who calls, which is the same for every message
		404, 405, 410, 421, // what is called
		406, 411, 414, 415, 426, // how, which is the same for every message too
		429:
		return Unavailable
	}
	if status >= 400 && status < 500 {
		return Permanent
	}
	return Unavailable // 5xx; a redirect, which is not followed; what is not HTTP
}

// The exit codes with which a command steers. Zero deletes the message, and every
// code that is not here, or death by a signal, is a failure that is retried by the
// policy.
const (
	// ExitPermanent dead-letters the message now, as qmail's delivery programs say
	// that a failure is permanent.
	ExitPermanent = 100
	// ExitRelease gives the message back without counting an attempt.
	ExitRelease = 101

	exitUnavailable   = 69  // EX_UNAVAILABLE of sysexits.h: a service is unavailable
	exitTemporary     = 75  // EX_TEMPFAIL: to be tried again
	exitConfiguration = 78  // EX_CONFIG: something is misconfigured
	exitNotExecutable = 126 // the shell's: the command is not executable
	exitNotFound      = 127 // the shell's: there is no such command
)

// onExit is the verdict on a command's exit code other than 0.
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
