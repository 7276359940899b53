package sqsserver

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// form is the parameters of a Query request, as the tree that their names spell:
// in MessageAttribute.1.Value.DataType each part is a branch. Unlike JSON, a form
// does not tell a wrong type from a wrong value.
//
// If a parameter is repeated, the last one counts; those that SQS does not know are ignored.
type form struct {
	request *formRequest
	value   string
	parts   map[string]*form
}

// formRequest is what the nodes of a form share.
type formRequest struct {
	path       string // of the queue, "" for none
	parameters int
	entries    int // how many the batch has
	problem    *Error
}

// Limits of a form, beyond what any request that can succeed needs: a batch of ten
// messages with ten attributes each has about 500 parameters, whose names have six
// parts.
const (
	maxParameters = 2000
	maxNameParts  = 8
)

func newForm(path string) *form { return &form{request: &formRequest{path: path}} }

func (f *form) err() error {
	if f.request.problem == nil {
		return nil
	}
	return f.request.problem
}

// fail keeps the first problem.
func (f *form) fail(problem *Error) {
	if f.request.problem == nil {
		f.request.problem = problem
	}
}

// parse adds parameters, in the encoding of URLs and forms. It keeps nothing of
// text.
func (f *form) parse(text []byte) {
	for len(text) > 0 && f.request.problem == nil {
		var parameter []byte
		parameter, text, _ = bytes.Cut(text, []byte{'&'})
		if len(parameter) == 0 {
			continue
		}
		if f.request.parameters++; f.request.parameters > maxParameters {
			f.fail(errMalformedForm(fmt.Sprintf("it has more than %d parameters", maxParameters)))
			return
		}
		encodedName, encodedValue, _ := bytes.Cut(parameter, []byte{'='})
		name, nameOK := unescapeForm(encodedName)
		value, valueOK := unescapeForm(encodedValue)
		if !nameOK || !valueOK {
			f.fail(errMalformedForm(`a percent sign is not followed by two hexadecimal digits, in the parameter "` + name + `"`))
			return
		}
		f.set(name, value)
	}
}

func (f *form) set(name, value string) {
	parts := strings.SplitN(name, ".", maxNameParts+1)
	if len(parts) > maxNameParts {
		return
	}
	for _, part := range parts {
		next := f.parts[part]
		if next == nil {
			if f.parts == nil {
				f.parts = make(map[string]*form)
			}
			next = &form{request: f.request}
			f.parts[part] = next
		}
		f = next
	}
	f.value = value
}

// unescapeForm decodes a name or a value; false means that an escape is wrong.
func unescapeForm(text []byte) (string, bool) {
	if bytes.IndexByte(text, '%') < 0 && bytes.IndexByte(text, '+') < 0 {
		return string(text), true
	}
	decoded := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '+':
			decoded = append(decoded, ' ')
		case '%':
			if i+2 >= len(text) {
				return string(decoded), false
			}
			var err error
			if decoded, err = hex.AppendDecode(decoded, text[i+1:i+3]); err != nil {
				return string(decoded), false
			}
			i += 2
		default:
			decoded = append(decoded, c)
		}
	}
	return string(decoded), true
}

// text returns the value of a parameter, or "".
func (f *form) text(name string) string {
	if part := f.parts[name]; part != nil {
		return part.value
	}
	return ""
}

// identifier returns the value of a parameter that may be absent but not empty.
func (f *form) identifier(name string) (value string, empty bool) {
	part := f.parts[name]
	if part == nil {
		return "", false
	}
	return part.value, part.value == ""
}

// queueURL returns the queue that the request is about.
func (f *form) queueURL() string {
	if url := f.text("QueueUrl"); url != "" {
		return url
	}
	return f.request.path
}

// int32 returns the value of a parameter that is an integer.
func (f *form) int32(name string) OptionalInt {
	text := f.text(name)
	if text == "" {
		return OptionalInt{}
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		f.fail(errMalformedForm("the parameter " + name + " must be an integer, not " + text))
	}
	return Int(int32(n))
}

// blob returns the value of a parameter that is base64.
func (f *form) blob(name string) []byte {
	text := f.text(name)
	if text == "" {
		return nil
	}
	blob, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		f.fail(errMalformedForm("the parameter " + name + " must be base64"))
	}
	return blob
}

// elements yields name.1, name.2 and so on, in the order of their numbers, some of
// which may be missing.
func (f *form) elements(name string) iter.Seq[*form] {
	return func(yield func(*form) bool) {
		list := f.parts[name]
		if list == nil {
			return
		}
		numbered := make(map[int]*form, len(list.parts))
		for part, element := range list.parts {
			n, err := strconv.Atoi(part)
			if err == nil && n > 0 && strconv.Itoa(n) == part { // 01 does not count as 1
				numbered[n] = element
			}
		}
		for _, n := range slices.Sorted(maps.Keys(numbered)) {
			if !yield(numbered[n]) {
				return
			}
		}
	}
}

// texts returns the values of name.1, name.2 and so on. Without any, a bare name is a list
// of one: a request written by hand may have AttributeName=All.
func (f *form) texts(name string) []string {
	var texts []string
	for element := range f.elements(name) {
		texts = append(texts, element.value)
	}
	if bare := f.text(name); bare != "" && texts == nil {
		texts = []string{bare}
	}
	return texts
}

// textMap returns the map of name.N.key to name.N.value. It is nil if it is empty.
func (f *form) textMap(name, key, value string) map[string]string {
	var m map[string]string
	for element := range f.elements(name) {
		if m == nil {
			m = make(map[string]string)
		}
		m[element.text(key)] = element.text(value)
	}
	return m
}
