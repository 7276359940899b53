package operate

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// maxPattern is how many bytes of an error are compared.
const maxPattern = 300

// changing are the parts of a text that differ between errors of the same cause. Regular
// expressions take most of the time of a million letters: possible reports quickly whether one can
// match at all.
var changing = []struct {
	pattern  *regexp.Regexp
	name     string
	possible func(text string) bool
}{
	{regexp.MustCompile(`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b`), "<id>", func(text string) bool {
		return strings.Count(text, "-") >= 4
	}},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)?`), "<time>", func(text string) bool {
		return strings.Count(text, "-") >= 2 && strings.Count(text, ":") >= 2
	}},
	{regexp.MustCompile(`\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}(:\d+)?\b|\[[0-9a-fA-F:]+\](:\d+)?`), "<address>", func(text string) bool {
		return strings.Count(text, ".") >= 3 || strings.Contains(text, "[")
	}},
	{regexp.MustCompile(`\b0x[0-9a-fA-F]+\b`), "<id>", func(text string) bool { return strings.Contains(text, "0x") }},
	{regexp.MustCompile(`\b[0-9a-zA-Z]*(?:\d[a-zA-Z]+\d|[a-zA-Z]\d[0-9a-zA-Z]*\d)[0-9a-zA-Z]{4,}\b`), "<id>", mixesDigits},
}

// mixesDigits reports whether text has a word, of ASCII letters and digits, with two digits and a letter
// that is long enough for the last of the expressions.
func mixesDigits(text string) bool {
	const shortest = 7
	letters, digits := 0, 0
	for i := range len(text) + 1 {
		switch {
		case i < len(text) && isDigit(text[i]):
			digits++
		case i < len(text) && isLetter(text[i]):
			letters++
		case digits >= 2 && letters >= 1 && digits+letters >= shortest:
			return true
		default:
			letters, digits = 0, 0
		}
	}
	return false
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// Pattern returns an error's text without the parts that differ between errors of the same
// cause: ids, times, addresses, numbers other than codes.
func Pattern(err string) string { return string(appendPattern(nil, err)) }

func appendPattern(dst []byte, err string) []byte {
	if err = terminal.Shorten(err, maxPattern); !isSpacedOnce(err) {
		err = strings.Join(strings.Fields(err), " ")
	}
	for err != "" {
		next, end := len(err), len(err)
		if from, to, found := findCode(err); found {
			next, end = from, to
		}
		dst = append(appendWithoutChanging(dst, err[:next]), err[next:end]...)
		err = err[end:]
	}
	return dst
}

// isSpacedOnce reports whether text is ASCII with one space at most between its words: then it need not be
// put together anew.
func isSpacedOnce(text string) bool {
	last := byte(' ')
	for i := range len(text) {
		c := text[i]
		if c >= utf8.RuneSelf || c < ' ' || c == ' ' && last == ' ' {
			return false
		}
		last = c
	}
	return last != ' ' || text == ""
}

func appendWithoutChanging(dst []byte, text string) []byte {
	for _, c := range changing {
		if c.possible(text) {
			text = c.pattern.ReplaceAllString(text, c.name)
		}
	}
	return appendWithoutNumbers(dst, text)
}

// appendWithoutNumbers appends text with <n> in the place of numbers and their fractions.
func appendWithoutNumbers(dst []byte, text string) []byte {
	digits := func(from int) int {
		for from < len(text) && isDigit(text[from]) {
			from++
		}
		return from
	}
	for i := 0; i < len(text); {
		end := digits(i)
		if end == i {
			dst = append(dst, text[i])
			i++
			continue
		}
		if end < len(text) && text[end] == '.' {
			if fraction := digits(end + 1); fraction > end+1 {
				end = fraction
			}
		}
		dst = append(dst, "<n>"...)
		i = end
	}
	return dst
}
