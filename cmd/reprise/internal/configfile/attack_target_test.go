package configfile_test

// Holds off the author of a configuration or of a file of faults that is small enough to be
// read through: it must not exhaust the memory of the server that reads it.

import (
	"runtime"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/configfile"
)

// TestAttackDeepConfig: a deeply nested file is refused by its line before the YAML parser
// recurses into it, whose memory grows with the square of the depth.
func TestAttackDeepConfig(t *testing.T) {
	const deep = 20_000
	for name, text := range map[string]string{
		"mappings": "queues:\n  " + strings.Repeat("{a: ", deep),
		"lists":    "queues:\n  " + strings.Repeat("[", deep),
		"dashes":   "queues:\n  " + strings.Repeat("- ", deep),
	} {
		for what, read := range map[string]func(string) error{
			"configuration": func(name string) error { _, err := configfile.Read(name, keys); return err },
			"faults":        func(name string) error { _, err := configfile.ReadFaults(name); return err },
		} {
			t.Run(name+" in "+what, func(t *testing.T) {
				name := file(t, text)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				err := read(name)
				runtime.ReadMemStats(&after)
				if want := ": this is nested more than 100 deep"; err == nil || !strings.HasPrefix(err.Error(), name+":2:") || !strings.Contains(err.Error(), want) {
					t.Errorf("%.300v, want %s", err, want)
				}
				if allocated, most := after.TotalAlloc-before.TotalAlloc, uint64(1000*len(text)); allocated > most {
					t.Errorf("%d bytes allocated for %d, want at most %d", allocated, len(text), most)
				}
			})
		}
	}
}
