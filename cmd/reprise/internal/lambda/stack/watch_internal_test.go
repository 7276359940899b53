package stack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/build"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/emulator"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/template"
)

// TestFailedBuildIsTriedOnce: sources that cannot be built are built once, when they have stayed the same for a look, and
// again only after another change: each try takes a processor, and tells why it failed.
func TestFailedBuildIsTriedOnce(t *testing.T) {
	root := t.TempDir()
	code := filepath.Join(root, "code")
	if err := os.Mkdir(code, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(code, "app.py"), []byte("x = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var log []string
	sources := []build.Source{{Path: code, Deep: true}}
	s := &Stack{
		cfg: Config{
			Template: &template.Template{Functions: []template.Function{{ID: "F", Name: "F", Runtime: "python3.13", Code: template.Code{Path: "code"}}}},
			Log:      func(line emulator.Line) { log = append(log, line.Text) },
		},
		builder: &build.Builder{Root: root, Watch: true},
		built:   []build.Built{{Sources: sources, Fingerprint: build.Fingerprint(sources)}},
	}
	w := watched{seen: s.built[0].Fingerprint, tried: s.built[0].Fingerprint}
	looks := func(n, want int, last string) {
		t.Helper()
		for range n {
			s.look(t.Context(), 0, &w)
		}
		if len(log) != want || want > 0 && !strings.Contains(log[want-1], last) {
			t.Fatalf("the log has %d lines, want %d, the last about %q: %q", len(log), want, last, log)
		}
	}
	looks(3, 0, "")
	if err := os.RemoveAll(code); err != nil {
		t.Fatal(err)
	}
	looks(1, 0, "") // it may be about to be written
	looks(1, 1, "there is no folder")
	looks(10, 1, "there is no folder")
	if err := os.WriteFile(code, []byte("x = 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	looks(10, 2, "is not a folder")
}
