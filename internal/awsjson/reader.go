// Package awsjson reads and writes the JSON of AWS's JSON 1.0 protocol: the server
// reads requests with it, the consumer replies.
package awsjson

import (
	"encoding/base64"
	"fmt"
	"iter"
	"math"
	"unicode/utf8"
)

// MaxDepth limits the nesting of values in members that are skipped. The values of SQS are at most
// five levels deep.
const MaxDepth = 100

// Reader reads one JSON value in a single pass and without an intermediate tree:
//
//   - a member that is null is absent; null elsewhere has the wrong type;
//   - member names are case-sensitive and the last of equal ones wins;
//   - unknown members must be well-formed JSON and are ignored;
//   - text must be UTF-8. An escaped half of a surrogate pair, which UTF-8 cannot
//     express, is kept in the three bytes that UTF-8 would use for it, so that validation of the text finds it invalid.
//
// The first problem is kept, after which every method does nothing. The zero Reader reads an empty
// text; see [Reader.Reset].
type Reader struct {
	data    []byte
	pos     int
	depth   int    // of skipped values
	nulls   int    // read so far
	scratch []byte // the last string that had escapes
	shared  string // data, once it was copied
	err     error
}

// SyntaxError reports that the text is not JSON, or that a value is not of the expected kind.
type SyntaxError struct {
	Offset  int // in bytes
	Problem string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("at byte %d, %s", e.Offset, e.Problem) }

// maxKeptScratch limits the memory that a reader keeps after a large string.
const maxKeptScratch = 64 << 10

// Reset makes r read data from the start. It keeps its buffer, if that is small, but nothing of the
// text that it read before.
func (r *Reader) Reset(data []byte) {
	if cap(r.scratch) > maxKeptScratch {
		r.scratch = nil
	}
	*r = Reader{data: data, scratch: r.scratch}
}

// Err returns the first problem: a [*SyntaxError], or what [Reader.Fail] was given.
func (r *Reader) Err() error { return r.err }

// Nulls returns how many nulls were read, for callers that distinguish null from absent.
func (r *Reader) Nulls() int { return r.nulls }

// Fail ends the reading for err, if there is no problem yet.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// Members reads an object. The value of each name yielded must be read by the
// loop's body; the name is valid until then.
func (r *Reader) Members() iter.Seq[[]byte] {
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

// Elements reads an array and yields the index of each element, whose value must
// be read by the loop's body.
func (r *Reader) Elements() iter.Seq[int] {
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

// Share makes texts without escapes parts of one copy of the data: for texts that are all
// short-lived.
func (r *Reader) Share() { r.shared = string(r.data) }

// Text reads a string.
func (r *Reader) Text() string {
	text, quoted := r.Bytes()
	if end := r.pos - 1; r.shared != "" && r.err == nil && len(text) == len(quoted) {
		return r.shared[end-len(text) : end]
	}
	return string(text)
}

// Texts reads an array of strings and appends them to list.
func (r *Reader) Texts(list []string) []string {
	for i := range r.Elements() {
		if i == maxTexts {
			r.fail(tooManyTexts)
			return list
		}
		list = append(list, r.Text())
	}
	return list
}

// maxTexts is more than any list or object of strings of the protocol has: three bytes
// of an empty string would take a hundred of memory.
const maxTexts = 2000

var tooManyTexts = fmt.Sprintf("there are more than %d strings", maxTexts)

// TextMap reads an object of strings. It is nil if the object is empty.
func (r *Reader) TextMap() map[string]string {
	var m map[string]string
	for name := range r.Members() {
		if len(m) == maxTexts {
			r.fail(tooManyTexts)
			return m
		}
		key := string(name)
		if m == nil {
			m = make(map[string]string)
		}
		m[key] = r.Text()
	}
	return m
}

// Blob reads a string of base64 and decodes it.
func (r *Reader) Blob() []byte {
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

// Int32 reads an integer.
func (r *Reader) Int32() int32 {
	r.space()
	start := r.pos
	if !r.number() {
		r.fail("an integer is expected")
		return 0
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
			return 0
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
		return 0
	}
	return int32(n)
}

// Skip reads any value and forgets it.
func (r *Reader) Skip() {
	if r.depth++; r.depth > MaxDepth {
		r.fail(fmt.Sprintf("values are nested more than %d deep", MaxDepth))
		return
	}
	switch r.space(); r.peek() {
	case '{':
		for range r.Members() {
			r.Skip()
		}
	case '[':
		for range r.Elements() {
			r.Skip()
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

// End reads the end of the body, after the value.
func (r *Reader) End() {
	if r.space(); r.err == nil && r.pos < len(r.data) {
		r.fail("something follows the object")
	}
}

// fail is Fail for a problem with the next byte, or the value before.
func (r *Reader) fail(problem string) { r.Fail(&SyntaxError{r.pos, problem}) }

// open reads the first byte of an object or array.
func (r *Reader) open(delimiter byte, what string) bool {
	if r.space(); r.peek() != delimiter {
		r.fail(what + " is expected")
		return false
	}
	r.pos++
	return r.err == nil
}

// next reads what precedes a member or an element and reports whether there is
// one; if not, it has read the closing delimiter, or there was a problem.
func (r *Reader) next(delimiter byte, first bool) bool {
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
func (r *Reader) peek() byte {
	if r.pos < len(r.data) {
		return r.data[r.pos]
	}
	return 0
}

func (r *Reader) space() {
	for r.pos < len(r.data) {
		switch r.data[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return
		}
	}
}

func (r *Reader) null() bool {
	if r.space(); !r.literal("null") {
		return false
	}
	r.nulls++
	return true
}

func (r *Reader) literal(word string) bool {
	rest := r.data[r.pos:]
	if len(rest) < len(word) || string(rest[:len(word)]) != word {
		return false
	}
	r.pos += len(word)
	return true
}

// number reads a number and reports whether there was one.
func (r *Reader) number() bool {
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

func (r *Reader) digits() bool {
	start := r.pos
	for c := r.peek(); '0' <= c && c <= '9'; c = r.peek() {
		r.pos++
	}
	return r.pos > start
}

// Bytes reads a string and returns its bytes, and its form between the quotes. Both are valid until
// the next call of a method.
func (r *Reader) Bytes() (text, quoted []byte) { return r.bytes("a string") }

func (r *Reader) text(what string) []byte {
	text, _ := r.bytes(what)
	return text
}

func (r *Reader) bytes(what string) (text, quoted []byte) {
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
