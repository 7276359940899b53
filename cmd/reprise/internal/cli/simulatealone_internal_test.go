package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestInterruptedAlone: of what Ctrl-C interrupts, that until then is printed, in each format.
func TestInterruptedAlone(t *testing.T) {
	for name, args := range map[string][]string{
		"policy: ": {"schedule", "exponential(base=1s) attempts=1000", "--messages", "1000000"},
		"clients":  {"contention", "--clients", "20", "--trials", "1000000"},
		"events":   {"async-lambda", "--events", "1000000"},
	} {
		for _, format := range []string{"table", "json", "yaml", "csv", "svg"} {
			out, err := os.Create(filepath.Join(t.TempDir(), "out"))
			if err != nil {
				t.Fatal(err)
			}
			pressed := make(chan struct{})
			close(pressed)
			a := &app{stdout: newStream(out), stderr: newStream(out), ctx: t.Context(), drain: pressed}
			cmd := a.simulate()
			cmd.SetArgs(append(args, "-o", format))
			cmd.SetOut(out)
			cmd.SetErr(out)
			cmd.SilenceUsage, cmd.SilenceErrors = true, true
			err = cmd.ExecuteContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), "interrupted: the result is that until then") {
				t.Errorf("%s in %s: the error is %v", args[0], format, err)
			}
			text, err := os.ReadFile(out.Name())
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.TrimSuffix(name, ": "); format == "table" && !strings.Contains(string(text), want) || len(text) == 0 {
				t.Errorf("%s in %s: printed %q", args[0], format, text)
			}
			_ = out.Close()
		}
	}
}
