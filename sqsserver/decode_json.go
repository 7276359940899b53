package sqsserver

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"iter"
	"math"
	"unicode/utf8"
)

// maxDepth bounds the nesting of the values that a request may carry in members
// that SQS does not know. What it knows is five levels deep.
const maxDepth = 100

// jsonReader reads one JSON value from a request body, in a single pass and
// without an intermediate tree. It is made for inputs of AWS's JSON 1.0
// protocol:
//
//   - a member that is null is absent; null elsewhere has the wrong type;
//   - member names are case-sensitive and the last of equal ones wins;
//   - unknown members must be well-formed JSON and are ignored;
//   - text must be UTF-8. An escaped half of a surrogate pair, which UTF-8 cannot
//     express, is kept in the three bytes that UTF-8 would use for it, so that
//     whoever validates the text finds it invalid.
//
// The first problem is kept in err, after which every method does nothing.
type jsonReader struct {
	data    []byte
	pos     int
	depth   int    // of skipped values
	scratch []byte // the last string that had escapes
	entries int    // how many the batch has
	err     *Error
}

// members reads an object. The value of each name yielded must be read by the
// loop's body; the name is valid until then.
func (r *jsonReader) members() iter.Seq[[]byte] {
	return func(yield func(name []byte) bool) {
		if !r.open('{', "an object") {
			return
		}
		for first := true; r.next('}', first); first = false {
			name := r.text("a member name")
			if r.space(); r.peek() != ':' {
				r.fail("a colon is missing")
				return
			}
			r.pos++
			if r.null() {
				continue
			}
			if r.err != nil || !yield(name) {
				return
			}
		}
	}
}

// elements reads an array and yields the index of each element, whose value must
// be read by the loop's body.
func (r *jsonReader) elements() iter.Seq[int] {
	return func(yield func(i int) bool) {
		if !r.open('[', "an array") {
			return
		}
		for i := 0; r.next(']', i == 0); i++ {
			if !yield(i) {
				return
			}
		}
	}
}

// string reads a string.
func (r *jsonReader) string() string { return string(r.text("a string")) }

// strings reads an array of strings and appends them to list.
func (r *jsonReader) strings(list []string) []string {
	for range r.elements() {
		list = append(list, r.string())
	}
	return list
}

// stringMap reads an object of strings. It is nil if the object is empty.
func (r *jsonReader) stringMap() map[string]string {
	var m map[string]string
	for name := range r.members() {
		key := string(name)
		if m == nil {
			m = make(map[string]string)
		}
		m[key] = r.string()
	}
	return m
}

// blob reads a string of base64 and decodes it.
func (r *jsonReader) blob() []byte {
	text := r.text("a string of base64")
	if len(text) == 0 {
		return nil
	}
	blob := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(blob, text)
	if err != nil {
		r.fail("the string before is not base64")
		return nil
	}
	return blob[:n]
}

// int32 reads an integer.
func (r *jsonReader) int32() OptionalInt {
	r.space()
	start := r.pos
	if !r.number() {
		r.fail("an integer is expected")
		return OptionalInt{}
	}
	digits := r.data[start:r.pos]
	negative := digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	n := int64(0)
	for _, c := range digits {
		if c < '0' || c > '9' {
			r.fail("the number before is not an integer")
			return OptionalInt{}
		}
		if n = n*10 + int64(c-'0'); n > math.MaxInt32+1 {
			break
		}
	}
	if negative {
		n = -n
	}
	if n < math.MinInt32 || n > math.MaxInt32 {
		r.fail("the number before is out of range")
		return OptionalInt{}
	}
	return Int(int32(n))
}

// skip reads any value and forgets it.
func (r *jsonReader) skip() {
	if r.depth++; r.depth > maxDepth {
		r.fail(fmt.Sprintf("values are nested more than %d deep", maxDepth))
		return
	}
	switch r.space(); r.peek() {
	case '{':
		for range r.members() {
			r.skip()
		}
	case '[':
		for range r.elements() {
			r.skip()
		}
	case '"':
		r.text("a string")
	default:
		if !r.null() && !r.literal("true") && !r.literal("false") && !r.number() {
			r.fail("a value is expected")
		}
	}
	r.depth--
}

// end reads the end of the body, after the value.
func (r *jsonReader) end() {
	if r.space(); r.err == nil && r.pos < len(r.data) {
		r.fail("something follows the object")
	}
}

// fail keeps the first problem.
func (r *jsonReader) fail(problem string) {
	if r.err == nil {
		r.err = errSerialization(r.pos, problem)
	}
}

// open reads the first byte of an object or array.
func (r *jsonReader) open(delimiter byte, what string) bool {
	if r.space(); r.peek() != delimiter {
		r.fail(what + " is expected")
		return false
	}
	r.pos++
	return r.err == nil
}

// next reads what precedes a member or an element and reports whether there is
// one; if not, it has read the closing delimiter, or there was a problem.
func (r *jsonReader) next(delimiter byte, first bool) bool {
	if r.err != nil {
		return false
	}
	r.space()
	switch c := r.peek(); {
	case c == delimiter:
		r.pos++
		return false
	case first:
		return true
	case c == ',':
		r.pos++
		return true
	}
	r.fail("a comma or '" + string(delimiter) + "' is expected")
	return false
}

// peek returns the next byte, or 0 at the end of the body; a zero byte is valid
// nowhere in JSON.
func (r *jsonReader) peek() byte {
	if r.pos < len(r.data) {
		return r.data[r.pos]
	}
	return 0
}

func (r *jsonReader) space() {
	for r.pos < len(r.data) {
		switch r.data[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return
		}
	}
}

func (r *jsonReader) null() bool {
	r.space()
	return r.literal("null")
}

func (r *jsonReader) literal(word string) bool {
	rest := r.data[r.pos:]
	if len(rest) < len(word) || string(rest[:len(word)]) != word {
		return false
	}
	r.pos += len(word)
	return true
}

// number reads a number and reports whether there was one.
func (r *jsonReader) number() bool {
	if r.peek() == '-' {
		r.pos++
	}
	if r.peek() == '0' {
		r.pos++
	} else if !r.digits() {
		return false
	}
	if r.peek() == '.' {
		if r.pos++; !r.digits() {
			return false
		}
	}
	if c := r.peek(); c == 'e' || c == 'E' {
		r.pos++
		if c := r.peek(); c == '+' || c == '-' {
			r.pos++
		}
		return r.digits()
	}
	return true
}

func (r *jsonReader) digits() bool {
	start := r.pos
	for c := r.peek(); '0' <= c && c <= '9'; c = r.peek() {
		r.pos++
	}
	return r.pos > start
}

// body reads the body of a message.
func (r *jsonReader) body() sentBody {
	plain, quoted := r.textAsItCame("a string")
	if r.err != nil {
		return sentBody{}
	}
	b := examine(plain)
	// Every escape is longer than what it stands for, those with \u by up to five times,
	// and most that are written so need none.
	if len(plain) < len(quoted) && !bytes.Contains(quoted, []byte(`\u`)) {
		b.body = body{text: string(quoted), quoted: true}
	} else {
		b.text = string(plain)
	}
	return b
}

// text reads a string and returns its bytes, which are valid until the next call.
func (r *jsonReader) text(what string) []byte {
	text, _ := r.textAsItCame(what)
	return text
}

// textAsItCame is text, which also returns what stood between the quotes.
func (r *jsonReader) textAsItCame(what string) (text, quoted []byte) {
	if r.space(); r.err != nil || r.peek() != '"' {
		r.fail(what + " is expected")
		return nil, nil
	}
	r.pos++
	start := r.pos
	r.pos += plainPrefix(r.data[start:])
	text = r.data[start:r.pos]
	if r.peek() == '\\' {
		var n int
		var problem string
		r.scratch, n, problem = appendUnescaped(append(r.scratch[:0], text...), r.data[r.pos:])
		r.pos += n
		if problem != "" {
			r.fail(problem)
			return nil, nil
		}
		text = r.scratch
	}
	if r.peek() != '"' {
		r.fail("a string has no end or holds a control character that is not escaped")
		return nil, nil
	}
	// Escapes are ASCII, so that checking the string as it came is enough.
	quoted = r.data[start:r.pos]
	if !utf8.Valid(quoted) {
		r.fail("the string before is not UTF-8")
	}
	r.pos++
	return text, quoted
}
