package cli

import (
	"strconv"
	"testing"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/emulator"
)

// TestLinesOfFunctions: the last thousand lines are kept, and shown in their order, however many there were.
func TestLinesOfFunctions(t *testing.T) {
	var p functionPages
	for n := range 2*keptLines + 300 {
		p.keep(emulator.Line{Text: strconv.Itoa(n)})
		if n != 4 && n != keptLines-1 && n != keptLines && n != 2*keptLines+299 {
			continue
		}
		lines := p.Lines()
		first := max(0, n+1-keptLines)
		if len(lines) != n+1-first {
			t.Errorf("after %d lines there are %d", n+1, len(lines))
		}
		for i, line := range lines {
			if line.Text != strconv.Itoa(first+i) {
				t.Errorf("after %d lines the one at %d is %s, want %d", n+1, i, line.Text, first+i)
				break
			}
		}
	}
}
