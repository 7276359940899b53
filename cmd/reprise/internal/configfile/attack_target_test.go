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

// TestAttackPoolName: a pool's name has no characters that would make what config show, logs and errors print something else than text.
func TestAttackPoolName(t *testing.T) {
	for name, refused := range map[string]bool{
		`"shop"`: false, `"Zahlungen für heute"`: false,
		`"a\x07b"`: true, `"a\nb"`: true, `"a\r"`: true, `"\e[2J"`: true, `"\u202egnp"`: true, `"\u2028"`: true, `"\0"`: true, `""`: true,
	} {
		at := file(t, "queues:\n  - name: q\npools:\n  "+name+": {concurrency: 3}\n")
		if _, err := configfile.Read(at, keys); (err != nil) != refused || refused && !strings.Contains(err.Error(), "use printable ones") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
