package awsjson

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"
	"unsafe"
)

// Most bytes of a JSON string stand for themselves. These functions find those
// that do not, eight at a time, and copy the others along the way: bodies that
// are JSON themselves have something to escape every few bytes, too few for a
// call of memmove to pay.

// plainPrefix returns the number of bytes before the first that cannot stand for
// itself in a JSON string: a quote, a backslash or a control character.
func plainPrefix(s []byte) int {
	i := 0
	for ; len(s)-i >= 8; i += 8 {
		if special := specialBytes(binary.LittleEndian.Uint64(s[i:])); special != 0 {
			return i + bits.TrailingZeros64(special)/8
		}
	}
	for i < len(s) && !isSpecial(s[i]) {
		i++
	}
	return i
}

// appendPlain appends the plain prefix of s to dst and returns its length.
func appendPlain(dst, s []byte) ([]byte, int) {
	i := 0
	for ; len(s)-i >= 8; i += 8 {
		word := binary.LittleEndian.Uint64(s[i:])
		dst = binary.LittleEndian.AppendUint64(dst, word)
		if special := specialBytes(word); special != 0 {
			n := bits.TrailingZeros64(special) / 8
			return dst[:len(dst)-8+n], i + n
		}
	}
	for i < len(s) && !isSpecial(s[i]) {
		dst = append(dst, s[i])
		i++
	}
	return dst, i
}

func isSpecial(c byte) bool { return c < ' ' || c == '"' || c == '\\' }

// specialBytes sets the high bit of the first byte of word that isSpecial, and
// clears those of the bytes before. A byte below 0x80 is special if subtracting
// ' ' from it, or 1 from its difference to a quote or a backslash, makes it
// negative; only such a byte borrows from those after it.
func specialBytes(word uint64) uint64 {
	const ones, highBits = 0x0101010101010101, 0x8080808080808080
	control := word - ones*' '
	quote := (word ^ ones*'"') - ones
	backslash := (word ^ ones*'\\') - ones
	return (control | quote | backslash) &^ word & highBits
}

// AppendText appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD, one by one.
func AppendText(dst []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = string([]rune(s))
	}
	dst = append(dst, '"')
	text, n := bytesOf(s), 0
	for {
		dst, n = appendPlain(dst, text)
		if n == len(text) {
			return append(dst, '"')
		}
		if c := escaped[text[n]]; c != 0 {
			dst = append(dst, '\\', c)
		} else {
			dst = fmt.Appendf(dst, `\u%04x`, text[n])
		}
		text = text[n+1:]
	}
}

// escaped holds the character that is written, after a backslash, for a byte that isSpecial. The
// control characters that it leaves out cannot be sent in a body.
var escaped = [256]byte{'"': '"', '\\': '\\', '\n': 'n', '\r': 'r', '\t': 't'}

// Unescape returns the text of a JSON string that a [Reader] has read; s is its form between the
// quotes.
func Unescape(quoted string) string {
	rest := bytesOf(quoted)
	n := plainPrefix(rest)
	text := append(make([]byte, 0, len(rest)), rest[:n]...)
	text, _, _ = appendUnescaped(text, rest[n:]) // it was read before
	return string(text)
}

// appendUnescaped appends to dst the text that s stands for, up to the end of the JSON string; s
// begins with a backslash. It returns how much of s it has read and, if an escape sequence is
// wrong, the problem.
func appendUnescaped(dst, s []byte) (text []byte, n int, problem string) {
	for n < len(s) && s[n] == '\\' {
		if n++; n == len(s) {
			return dst, n, "a string ends in a backslash"
		}
		switch plain := unescaped[s[n]]; {
		case plain != 0:
			dst = append(dst, plain)
			n++
		case s[n] == 'u':
			c, size := decodeUnicode(s[n+1:])
			if size == 0 {
				return dst, n, `\u needs four hexadecimal digits`
			}
			dst = appendRune(dst, c)
			n += 1 + size
		default:
			return dst, n, "an unknown escape sequence is in a string"
		}
		var size int
		dst, size = appendPlain(dst, s[n:])
		n += size
	}
	return dst, n, ""
}

// unescaped holds the character that an escape stands for, by the character after the backslash.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// decodeUnicode reads the digits after \u and, where they are the first half of a
// surrogate pair and \u and the second half follow, these too. It returns how
// much it has read, 0 if there are no four digits.
func decodeUnicode(s []byte) (c rune, n int) {
	c, ok := hex4(s)
	if !ok {
		return 0, 0
	}
	if isFirstHalf := 0xD800 <= c && c <= 0xDBFF; !isFirstHalf || len(s) < 6 || s[4] != '\\' || s[5] != 'u' {
		return c, 4
	}
	low, ok := hex4(s[6:])
	if !ok || low < 0xDC00 || low > 0xDFFF {
		return c, 4
	}
	return (c-0xD800)<<10 | (low - 0xDC00) + 0x10000, 10
}

func hex4(s []byte) (c rune, ok bool) {
	if len(s) < 4 {
		return 0, false
	}
	for _, digit := range s[:4] {
		value := hexDigit(digit)
		if value < 0 {
			return 0, false
		}
		c = c<<4 | rune(value)
	}
	return c, true
}

// hexDigit returns the value of a hexadecimal digit, or -1.
func hexDigit(c byte) int {
	switch lower := c | 0x20; {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= lower && lower <= 'f':
		return int(lower-'a') + 10
	}
	return -1
}

// appendRune appends c as UTF-8. Half of a surrogate pair, which utf8.AppendRune would replace by
// U+FFFD, becomes the three bytes that UTF-8 would use for it.
func appendRune(dst []byte, c rune) []byte {
	if c < 0xD800 || c > 0xDFFF {
		return utf8.AppendRune(dst, c)
	}
	return append(dst, 0xE0|byte(c>>12), 0x80|byte(c>>6)&0x3F, 0x80|byte(c)&0x3F)
}

// bytesOf returns the bytes of s without copying them; they must not be written.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
