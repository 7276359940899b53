package retry

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The words of a policy's text, as errors list them.
const (
	knownWords    = "a backoff, jitter=, attempts=, age=, since="
	knownBackoffs = "exponential(base=,factor=,max=), linear(base=,step=,max=), polynomial(base=,exponent=,max=), constant(WAIT), list(WAIT,WAIT,...)"
	knownJitters  = "full, none, equal, from-base, decorrelated, or a percentage such as 20%"
	durationForm  = "write a number with its unit, such as 500ms, 30s, 15m or 12h"
	orDefault     = ", or leave it out for the default"
	unlimited     = "unlimited"
)

// UnmarshalText reads a policy from the form that [Policy.MarshalText] documents:
// words in any order, separated by spaces, each at most once. Omitted fields keep their defaults,
// so empty text is the default policy. The resulting policy has passed [Policy.Validate]. After an
// error p is unchanged.
func (p *Policy) UnmarshalText(text []byte) error {
	var read Policy
	seen := make(map[string]bool)
	for rest := strings.TrimSpace(string(text)); rest != ""; {
		var word string
		var err error
		if word, rest, err = nextWord(rest); err != nil {
			return err
		}
		kind, err := read.readWord(word)
		if err != nil {
			return err
		}
		if seen[kind] {
			return wordError(word, "the "+kind+" is given twice", "keep one")
		}
		seen[kind] = true
	}
	if err := read.Validate(); err != nil {
		return fmt.Errorf("policy text %q: %w", text, err)
	}
	*p = read
	return nil
}

// wordError words an error about one word of a policy's text.
func wordError(word, what, remedy string) error {
	return fmt.Errorf("policy text: %q: %s; %s", word, what, remedy)
}

// nextWord cuts the first word off text, which begins with one. Inside the
// parentheses of a backoff, spaces do not end a word.
func nextWord(text string) (word, rest string, err error) {
	end := strings.IndexAny(text, "( \t\r\n")
	if end >= 0 && text[end] == '(' {
		length := strings.IndexByte(text[end:], ')') + 1
		if length == 0 {
			return "", "", wordError(text, "the parenthesis is not closed", "end the backoff with )")
		}
		end += length
		if end < len(text) && !strings.ContainsRune(" \t\r\n", rune(text[end])) {
			return "", "", wordError(text, "something follows the )", "put a space between words")
		}
	}
	if end < 0 {
		end = len(text)
	}
	return text[:end], strings.TrimSpace(text[end:]), nil
}

// readWord sets the field that word names, and returns what kind of word it is.
func (p *Policy) readWord(word string) (kind string, err error) {
	name, list, isCall := strings.Cut(word, "(")
	if key, value, ok := strings.Cut(name, "="); ok && !isCall {
		return key, p.readSetting(word, key, value)
	}
	args, err := splitArguments(word, strings.TrimSuffix(list, ")"))
	if err != nil {
		return "", err
	}
	p.Backoff, err = readBackoff(name, args)
	return "backoff", err
}

func readBackoff(name string, args *arguments) (Backoff, error) {
	var b Backoff
	switch name {
	case "exponential":
		b = Exponential{Base: args.duration("base"), Factor: args.number("factor"), Max: args.duration("max")}
	case "linear":
		b = Linear{Base: args.duration("base"), Step: args.duration("step"), Max: args.duration("max")}
	case "polynomial":
		b = Polynomial{Base: args.duration("base"), Exponent: args.number("exponent"), Max: args.duration("max")}
	case "constant":
		waits := args.waits()
		if len(waits) != 1 {
			return nil, wordError(args.word, "a constant has one wait", "write one such as constant(30s), or a list")
		}
		b = Constant(waits[0])
	case "list":
		b = args.waits()
	default:
		return nil, wordError(args.word, "unknown word", "known are "+knownWords+"; known backoffs are "+knownBackoffs)
	}
	return b, args.done()
}

func (p *Policy) readSetting(word, key, value string) (err error) {
	switch key {
	case "jitter":
		p.Jitter, err = readJitter(word, value)
	case "attempts":
		p.MaxAttempts, err = readAttempts(word, value)
	case "age":
		p.MaxAge, err = readAge(word, value)
	case "since":
		p.AgeFrom, err = readAgeFrom(word, value)
	default:
		err = wordError(word, "unknown setting "+strconv.Quote(key), "known are "+knownWords)
	}
	return err
}

func readJitter(word, value string) (Jitter, error) {
	if i := slices.Index(jitterNames[:], value); i >= 0 {
		return Jitter(i), nil
	}
	if number, ok := strings.CutSuffix(value, "%"); ok {
		p, err := strconv.ParseFloat(number, 64)
		if j := Percent(p); err == nil && j != invalidJitter {
			return j, nil
		}
		return 0, wordError(word, "not a percentage from 0 to 100", "write one such as 20%")
	}
	return 0, wordError(word, "unknown jitter "+strconv.Quote(value), "known are "+knownJitters)
}

func readAttempts(word, value string) (int, error) {
	if value == unlimited {
		return -1, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return 0, wordError(word, "not a number of 1 or more",
			"write one, or unlimited, or leave the word out for the default")
	}
	return n, nil
}

func readAge(word, value string) (time.Duration, error) {
	if value == unlimited {
		return -1, nil
	}
	age, err := time.ParseDuration(value)
	if err != nil || age <= 0 {
		return 0, wordError(word, "not a positive duration",
			durationForm+", or unlimited, or leave the word out for the default")
	}
	return age, nil
}

func readAgeFrom(word, value string) (AgeFrom, error) {
	switch value {
	case "first-receive":
		return FirstReceive, nil
	case "sent":
		return Sent, nil
	}
	return 0, wordError(word, "unknown instant "+strconv.Quote(value), "known are first-receive and sent")
}

// arguments are the contents of a backoff's parentheses: key=value, or a value alone with an empty
// key.
type arguments struct {
	word string
	list []argument
	err  error
}

type argument struct{ key, value string }

func splitArguments(word, text string) (*arguments, error) {
	args := &arguments{word: word}
	if strings.TrimSpace(text) == "" {
		return args, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			key, value = "", part
		}
		arg := argument{key: strings.TrimSpace(key), value: strings.TrimSpace(value)}
		if arg.value == "" || ok && arg.key == "" {
			return nil, wordError(word, "an argument is empty", "remove it or complete it")
		}
		args.list = append(args.list, arg)
	}
	return args, nil
}

// take removes the first argument with this key and returns its value.
func (a *arguments) take(key string) (value string, ok bool) {
	i := slices.IndexFunc(a.list, func(arg argument) bool { return arg.key == key })
	if i < 0 {
		return "", false
	}
	value = a.list[i].value
	a.list = slices.Delete(a.list, i, i+1)
	return value, true
}

// duration returns the argument with this key, or 0 where there is none.
func (a *arguments) duration(key string) time.Duration {
	value, ok := a.take(key)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(value)
	if err != nil || d == 0 {
		a.fail(key+"="+value+" is not a positive duration", durationForm+orDefault)
	}
	return d
}

// number returns the argument with this key, or 0 where there is none.
func (a *arguments) number(key string) float64 {
	value, ok := a.take(key)
	if !ok {
		return 0
	}
	x, err := strconv.ParseFloat(value, 64)
	if err != nil || x == 0 {
		a.fail(key+"="+value+" is not a positive number", "write one such as 2 or 1.5"+orDefault)
	}
	return x
}

// waits returns the arguments without a key.
func (a *arguments) waits() List {
	var list List
	for value, ok := a.take(""); ok; value, ok = a.take("") {
		wait, err := time.ParseDuration(value)
		if err != nil {
			a.fail(value+" is not a duration", durationForm)
		}
		list = append(list, wait)
	}
	return list
}

// fail keeps the first error.
func (a *arguments) fail(what, remedy string) {
	if a.err == nil {
		a.err = wordError(a.word, what, remedy)
	}
}

// done returns the first error, or an error if an argument was not used.
func (a *arguments) done() error {
	if len(a.list) > 0 {
		left := a.list[0].value
		if key := a.list[0].key; key != "" {
			left = key + "=" + left
		}
		a.fail(left+" is unknown here, or given twice", "known backoffs are "+knownBackoffs)
	}
	return a.err
}
