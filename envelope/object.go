package envelope

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"
	"unicode/utf8"
)

// object is a JSON object, parsed one level deep: the values of its members are unchanged parts of
// the text. Unlike encoding/json with a struct, it distinguishes "Type" from "type", as the formats
// require.
type object struct {
	members map[string]string
	err     error // the first problem of a member that was read
}

// parse reads text if it is a JSON object that has members of all the names. Most other texts are
// recognised without parsing. If a name occurs twice, its last value counts, as everywhere.
func parse(text string, names ...string) (o *object, ok bool) {
	if !strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") {
		return nil, false
	}
	for _, name := range names {
		if !strings.Contains(text, name) {
			return nil, false
		}
	}
	if !json.Valid([]byte(text)) {
		return nil, false
	}
	all := make(map[string]string, 12)
	for name, value := range members(text) {
		all[name] = value
	}
	for _, name := range names {
		if _, has := all[name]; !has {
			return nil, false
		}
	}
	return &object{members: all}, true
}

// members returns the names and the unparsed values of a valid JSON object.
func members(text string) iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		i := skipSpace(text, strings.IndexByte(text, '{')+1)
		for text[i] != '}' {
			end := endOfString(text, i)
			name, _ := unquote(text[i:end])
			start := skipSpace(text, skipSpace(text, end)+1) // behind the colon
			end = endOfValue(text, start)
			if !yield(name, text[start:end]) {
				return
			}
			if i = skipSpace(text, end); text[i] == ',' {
				i = skipSpace(text, i+1)
			}
		}
	}
}

// elements counts the elements of a valid JSON array, up to most + 1; 0 for any other value.
func elements(text string, most int) (n int) {
	if text == "" || text[0] != '[' {
		return 0
	}
	for i := skipSpace(text, 1); text[i] != ']' && n <= most; n++ {
		if i = skipSpace(text, endOfValue(text, i)); text[i] == ',' {
			i = skipSpace(text, i+1)
		}
	}
	return n
}

// skipSpace returns the first index from i on that is not white space.
func skipSpace(text string, i int) int {
	for text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n' {
		i++
	}
	return i
}

// endOfString returns the end of the string that begins at i, in valid JSON.
func endOfString(text string, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}

// endOfValue returns the end of the value that begins at i, in valid JSON.
func endOfValue(text string, i int) int {
	for depth := 0; ; i++ {
		switch text[i] {
		case '"':
			i = endOfString(text, i) - 1
			if depth == 0 {
				return i + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i // the end of the enclosing object or array
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
	}
}

// unquote returns the text of a JSON string; ok is false for other values.
func unquote(value string) (string, bool) {
	if value[0] != '"' {
		return "", false
	}
	if plain := value[1 : len(value)-1]; strings.IndexByte(plain, '\\') < 0 && utf8.ValidString(plain) {
		return plain, true
	}
	var s string
	err := json.Unmarshal([]byte(value), &s)
	return s, err == nil
}

// raw returns a member unparsed. Null counts as absent.
func (o *object) raw(name string) (value string, ok bool) {
	value, ok = o.members[name]
	return value, ok && value != "null"
}

// fail notes the problem of a member.
func (o *object) fail(format string, args ...any) {
	if o.err == nil {
		o.err = fmt.Errorf(format, args...)
	}
}

// text returns a member that is a string, or "" if it is absent.
func (o *object) text(name string) string {
	value, ok := o.raw(name)
	if !ok {
		return ""
	}
	s, ok := unquote(value)
	if !ok {
		o.fail("%q is not a string", name)
	}
	return s
}

// required is text, for a member that must be there.
func (o *object) required(name string) string {
	s := o.text(name)
	if s == "" {
		o.fail("%q is missing or empty", name)
	}
	return s
}

// time returns a member that is a time of RFC 3339, or the zero time if it is
// absent.
func (o *object) time(name string) time.Time {
	s := o.text(name)
	if s == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		o.fail("%q is not a time of RFC 3339: %q", name, s)
	}
	return t
}
