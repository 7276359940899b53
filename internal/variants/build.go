package variants

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
)

// Overlay are texts that the go command reads instead of files, by their paths. The files need not
// exist.
type Overlay map[string][]byte

// Write writes the texts into dir, and returns the file there that names them to the go
// command's flag -overlay.
func (o Overlay) Write(dir string) (file string, err error) {
	replace := make(map[string]string)
	for path, text := range o {
		original, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		replace[original] = filepath.Join(dir, fmt.Sprint(len(replace), ".go"))
		if err := os.WriteFile(replace[original], text, 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, text, 0o600)
}

// BuildTests compiles the tests of a package into binary, with the files that overlay
// names (see [Overlay.Write]). The error has the complete output of the compiler. For a package
// without tests it writes no binary and returns no error, as the go command does.
func BuildTests(ctx context.Context, overlay, pkg, binary string) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-gcflags=-e", "-overlay", overlay, "-o", binary, pkg) //nolint:gosec // G204: as the caller said
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go test -c %s: %w\n%s", pkg, err, out)
	}
	return nil
}

var culprit = regexp.MustCompile(`(?m)^[^\s:]+\.go@([a-zA-Z0-9-]+):\d+`)

// Culprits returns the names of the merged variants that do not compile, from an error
// of [BuildTests]. If there are none, the error has another cause.
func Culprits(err error) []string {
	var names []string
	for _, m := range culprit.FindAllStringSubmatch(err.Error(), -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}
