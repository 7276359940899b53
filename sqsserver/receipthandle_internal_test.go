package sqsserver

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReceiptHandle(t *testing.T) {
	for _, h := range []receiptHandle{
		{},
		{queue: 1, number: 2, generation: 3, message: UUID{4}},
		{queue: math.MaxUint64, number: math.MaxUint64, generation: math.MaxUint32, message: UUID{15: 0xff}},
	} {
		text := h.String()
		if len(text) > 1024 || strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/") != "" {
			t.Errorf("%q is no receipt handle", text)
		}
		got, err := parseReceiptHandle(text, h.queue)
		if err != nil || got != h {
			t.Errorf("%q became %v, %v, want %v", text, got, err, h)
		}
		want := error(&Error{codeReceiptHandleIsInvalid, `The receipt handle "` + text + `" is not valid for this queue.`})
		if _, err := parseReceiptHandle(text, h.queue+1); !cmp.Equal(err, want) {
			t.Errorf("of another queue: error %v, want %v", err, want)
		}
	}
}

func TestReceiptHandleGarbage(t *testing.T) {
	if _, err := parseReceiptHandle("", 1); !cmp.Equal(err, error(errMissingParameter("ReceiptHandle"))) {
		t.Errorf("no handle: error %v", err)
	}
	text := receiptHandle{queue: 1, number: 2, generation: 3, message: UUID{4}}.String()
	garbage := []string{"garbage", text + "A", text[1:], text + "=", strings.Repeat("A", len(text)), strings.Repeat("é", len(text)/2) + "A",
		strings.Repeat("\n", len(text))}
	for i := range text { // every character counts
		for _, c := range "ABw/" {
			if changed := text[:i] + string(c) + text[i+1:]; changed != text {
				garbage = append(garbage, changed)
			}
		}
	}
	for _, text := range garbage {
		want := error(&Error{codeReceiptHandleIsInvalid, `The input receipt handle "` + text + `" is not a valid receipt handle.`})
		if _, err := parseReceiptHandle(text, 1); !cmp.Equal(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
	}
}

// TestReceiptHandleDamagedTwice: what two damaged bytes do to the checksum does not
// cancel out.
func TestReceiptHandleDamagedTwice(t *testing.T) {
	sealed := make([]byte, handleSize-checksumSize)
	whole := handleChecksum(sealed)
	for i := range sealed {
		for j := range i {
			for bit := range 8 {
				sealed[i] ^= 1 << bit
				sealed[j] ^= 1 << bit
				if handleChecksum(sealed) == whole {
					t.Errorf("bit %d of bytes %d and %d can change together", bit, j, i)
				}
				sealed[i] ^= 1 << bit
				sealed[j] ^= 1 << bit
			}
		}
	}
}

func TestReceiptHandleAllocations(t *testing.T) {
	h := receiptHandle{queue: 1, number: 2}
	text := h.String()
	buffer := make([]byte, 0, 64)
	n := testing.AllocsPerRun(100, func() {
		buffer = h.append(buffer[:0])
		if _, err := parseReceiptHandle(text, 1); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// FuzzReceiptHandle: text is a handle exactly if a handle has that text.
func FuzzReceiptHandle(f *testing.F) {
	f.Add("", uint64(0))
	f.Add(receiptHandle{queue: 7}.String(), uint64(7))
	f.Fuzz(func(t *testing.T, text string, queue uint64) {
		if h, err := parseReceiptHandle(text, queue); err == nil && (h.queue != queue || h.String() != text) {
			t.Errorf("%q was taken for %v of queue %d", text, h, queue)
		}
	})
}

func BenchmarkReceiptHandle(b *testing.B) {
	h := receiptHandle{queue: 1, number: 2, generation: 3, message: UUID{4}}
	text := h.String()
	b.Run("append", func(b *testing.B) {
		var buffer []byte
		b.ReportAllocs()
		for b.Loop() {
			buffer = h.append(buffer[:0])
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := parseReceiptHandle(text, 1); err != nil {
				b.Fatal(err)
			}
		}
	})
}
