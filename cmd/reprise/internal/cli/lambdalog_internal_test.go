package cli

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/emulator"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/template"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// TestFunctionLog: names are aligned, each line of a text has one, and only a terminal gets
// colours.
func TestFunctionLog(t *testing.T) {
	var out bytes.Buffer
	log := newFunctionLog(terminal.Plain(&out, 80, true), []template.Function{{Name: "F"}, {Name: "RetryHandler"}})
	for _, line := range []emulator.Line{
		{Function: "F", Source: emulator.SourceFunction, Text: "one"},
		{Function: "RetryHandler", Source: emulator.SourceTrouble, Text: "two\nthree"},
		{Source: emulator.SourcePlatform, Text: "four"},
	} {
		log.print(line)
	}
	want := "F            | one\nRetryHandler | two\nRetryHandler | three\nreprise      | four\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("the log (-want +got):\n%s", diff)
	}
}
