package sqsserver

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

func appendText[T string | []byte](dst []byte, text T) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

func appendTexts(dst []byte, texts map[string]string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(texts)))
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		dst = appendText(appendText(dst, name), texts[name])
	}
	return dst
}

func appendFlag(dst []byte, flag bool) []byte {
	if flag {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// instantOf returns a time as records have it, and timeOf is its inverse.
func instantOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func timeOf(instant int64) time.Time {
	if instant == 0 {
		return time.Time{}
	}
	return time.Unix(0, instant)
}

// record reads a value. After its first error it reads zeros, and end reports
// that error.
type record struct {
	version byte
	rest    []byte
	err     error
}

var errShortRecord = errors.New("it ends early")

// newRecord is small enough for the compiler to keep the record out of the heap.
func newRecord(value []byte) *record {
	r := &record{rest: value}
	r.begin()
	return r
}

func (r *record) begin() {
	r.version = r.byte()
	if r.err == nil && r.version != recordVersion && r.version != previousVersion {
		r.fail(fmt.Errorf("its version is %d, this program reads versions %d and %d: open it with the program that wrote it", r.version, previousVersion, recordVersion))
	}
}

func (r *record) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.rest = nil
}

func (r *record) end() error {
	if r.err == nil && len(r.rest) > 0 {
		r.err = fmt.Errorf("%d bytes follow its end", len(r.rest))
	}
	return r.err
}

func (r *record) bytes(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.fail(errShortRecord)
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *record) byte() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *record) flag() bool {
	b := r.byte()
	if b > 1 {
		r.fail(fmt.Errorf("%d is not a boolean, 0 or 1", b))
	}
	return b == 1
}

func (r *record) uvarint() uint64 {
	n, size := binary.Uvarint(r.rest)
	switch {
	case size == 0:
		r.fail(errShortRecord)
		return 0
	case size < 0 || size > 1 && r.rest[size-1] == 0:
		r.fail(errors.New("a number has more digits than it needs"))
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *record) varint() int64 {
	n := r.uvarint()
	return int64(n>>1) ^ -int64(n&1)
}

func (r *record) uint32() uint32 {
	n := r.uvarint()
	if uint64(uint32(n)) != n {
		r.fail(fmt.Errorf("the number %d is too large", n))
	}
	return uint32(n)
}

func (r *record) int32() int32 {
	n := r.varint()
	if int64(int32(n)) != n {
		r.fail(fmt.Errorf("the number %d is too large", n))
	}
	return int32(n)
}

// length reads the length of a text that follows.
func (r *record) length() int {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.fail(errShortRecord)
		return 0
	}
	return int(n)
}

// count reads the number of entries that follow, of a byte at least.
func (r *record) count() int { return r.length() }

func (r *record) text() string { return string(r.bytes(r.length())) }

func (r *record) texts() map[string]string {
	var texts map[string]string
	before := ""
	for i := range r.count() {
		name, value := r.text(), r.text()
		if i > 0 && name <= before {
			r.fail(fmt.Errorf("%q comes after %q", name, before))
		}
		if texts == nil {
			texts = make(map[string]string)
		}
		texts[name], before = value, name
	}
	return texts
}
