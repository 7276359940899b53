package sqsserver

// Holds off: a producer, who may send to one queue, and nothing else.

import (
	"testing"

	"github.com/reprise-sqs/reprise/internal/engine"
)

// TestAttackTraceHeaderOfAnOldJournal: a journal may hold trace headers from before they
// had a limit. The message is received, without it.
func TestAttackTraceHeaderOfAnOldJournal(t *testing.T) {
	for _, c := range []struct {
		size, want int
	}{{maxTraceHeader, maxTraceHeader}, {7 << 20, 0}} {
		kept := appendContent(nil, &content{body: body{text: "x"}, traceHeader: string(make([]byte, c.size))})
		read, err := decodeContent(kept)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(systemAttributesOf(&engine.Delivery{Message: engine.Message{Payload: read}}).AWSTraceHeader); got != c.want {
			t.Errorf("of a trace header of %d bytes %d are received, want %d", c.size, got, c.want)
		}
	}
}
