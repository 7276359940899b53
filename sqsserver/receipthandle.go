package sqsserver

import (
	"encoding/base64"
	"encoding/binary"
	"strings"
)

// receiptHandle is the content of a receipt handle, with a checksum: it distinguishes a handle of
// another queue from text that no server ever issued, to which SQS answers differently. It hides
// nothing and proves nothing.
type receiptHandle struct {
	queue      uint64 // the queue that issued it
	number     uint64 // of the message in its queue
	generation uint32 // of the receive
	message    UUID
}

const (
	handleVersion = 1
	checksumSize  = 4
	handleSize    = 1 + 8 + 8 + 4 + len(UUID{}) + checksumSize

	handleTextSize = (handleSize*8 + 5) / 6 // in base64 without padding
)

// handleEncoding has exactly one text for each handle. It uses the alphabet of SQS's own handles:
// the one for URLs has a hyphen, at which AWS's extended client for Python cuts handles.
var handleEncoding = base64.RawStdEncoding.Strict()

// append appends the handle as text.
func (h receiptHandle) append(dst []byte) []byte {
	var buffer [handleSize]byte
	b := append(buffer[:0], handleVersion)
	b = binary.BigEndian.AppendUint64(b, h.queue)
	b = binary.BigEndian.AppendUint64(b, h.number)
	b = binary.BigEndian.AppendUint32(b, h.generation)
	b = append(b, h.message[:]...)
	b = binary.BigEndian.AppendUint32(b, handleChecksum(b))
	return handleEncoding.AppendEncode(dst, b)
}

// String returns the handle as text.
func (h receiptHandle) String() string {
	return string(h.append(make([]byte, 0, handleTextSize)))
}

// handleTexts converts handles that are needed together to text, in one allocation.
type handleTexts struct{ all strings.Builder }

// grow makes room for n handles.
func (t *handleTexts) grow(n int) { t.all.Grow(n * handleTextSize) }

// of returns a handle as text.
func (t *handleTexts) of(h receiptHandle) string {
	var buffer [handleTextSize]byte
	start := t.all.Len()
	t.all.Write(h.append(buffer[:0]))
	return t.all.String()[start:]
}

// parseReceiptHandle reads a handle of the queue. Its errors are those of SQS for text that is
// not a handle and for a handle of another queue.
func parseReceiptHandle(text string, queue uint64) (receiptHandle, error) {
	if text == "" {
		return receiptHandle{}, errMissingParameter("ReceiptHandle")
	}
	var buffer [handleSize]byte
	if len(text) != handleTextSize {
		return receiptHandle{}, errReceiptHandle(text)
	}
	if _, err := handleEncoding.Decode(buffer[:], []byte(text)); err != nil || buffer[0] != handleVersion {
		return receiptHandle{}, errReceiptHandle(text)
	}
	sealed, checksum := buffer[:handleSize-checksumSize], buffer[handleSize-checksumSize:]
	if binary.BigEndian.Uint32(checksum) != handleChecksum(sealed) {
		return receiptHandle{}, errReceiptHandle(text)
	}
	h := receiptHandle{
		queue:      binary.BigEndian.Uint64(sealed[1:]),
		number:     binary.BigEndian.Uint64(sealed[9:]),
		generation: binary.BigEndian.Uint32(sealed[17:]),
		message:    UUID(sealed[21:]),
	}
	if h.queue != queue {
		return receiptHandle{}, errReceiptHandleQueue(text)
	}
	return h, nil
}

// handleChecksum is FNV-1a over words of eight bytes and the rest. Each step is folded, because
// differences in high bits would stay there. The checksums of the standard library make their
// argument escape to the heap, an allocation for each message received; byte by byte a handle takes
// one and a half times as long.
func handleChecksum(b []byte) uint32 {
	const offset, prime = 14695981039346656037, 1099511628211
	sum := uint64(offset)
	for ; len(b) >= 8; b = b[8:] {
		sum = (sum ^ binary.LittleEndian.Uint64(b)) * prime
		sum ^= sum >> 32
	}
	for _, c := range b {
		sum = (sum ^ uint64(c)) * prime
	}
	return uint32(sum>>32) ^ uint32(sum) //nolint:gosec // G115: both halves count
}
