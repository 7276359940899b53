// Package variants compiles many versions of a program into one, so that a test of a deliberate
// mistake costs a run but no build.
//
// A variant is the program with other texts in some files. If they differ only inside bodies of
// functions, the merged program has all the bodies, and an environment variable chooses among them
// at run time. Only tests and internal/mutation use this package.
package variants

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Environment is the environment variable that names the variant that a merged program
// runs. If it is unset, or names none, the original runs.
const Environment = "REPRISE_VARIANT"

// Variant is a program in which some files have other texts.
type Variant struct {
	Name  string            // letters, digits and hyphens
	Files map[string][]byte // by the path of the original file: its text in this variant
}

// Merge returns the files of a program that can run as any of the variants, except for
// those in alone: each of those changes more than bodies of functions, as the reason explains, and
// needs a build of its own. It returns an error for an original that cannot be read, and for a file
// that is not Go.
func Merge(variants []Variant) (merged Overlay, alone map[string]string, err error) {
	files := make(map[string]*original)
	alone = make(map[string]string)
	for _, v := range variants {
		reason, err := add(files, v)
		if err != nil {
			return nil, nil, fmt.Errorf("variant %s: %w", v.Name, err)
		}
		if reason != "" {
			alone[v.Name] = reason
		}
	}
	merged = make(Overlay)
	for path, f := range files {
		if len(f.bodies) > 0 {
			merged[path] = f.merged()
			merged[filepath.Join(filepath.Dir(path), "variant_overlay.go")] = fmt.Appendf(nil, chooser, f.tree.Name.Name, Environment)
		}
	}
	return merged, alone, nil
}

// chooser is the text of the file that is added to each package.
const chooser = `package %s

import "os"

var variant_ = os.Getenv(%q)
`

// add adds v's bodies to the originals of its files, all or none. It returns the reason
// why v cannot be merged; empty if it was.
func add(files map[string]*original, v Variant) (reason string, err error) {
	bodies := make(map[string][]body)
	for _, path := range slices.Sorted(maps.Keys(v.Files)) {
		f := files[path]
		if f == nil {
			text, err := os.ReadFile(path) //nolint:gosec // G304: as the caller said
			if err != nil {
				return "", err
			}
			parsed, err := parse(path, text)
			if err != nil {
				return "", err
			}
			f = &original{source: parsed, bodies: make(map[string][]body)}
			files[path] = f
		}
		changed, err := parse(path, v.Files[path])
		if err != nil {
			return "", err
		}
		if reason := f.differs(changed); reason != "" {
			return filepath.Base(path) + ": " + reason, nil
		}
		bodies[path] = f.changes(changed, v.Name)
	}
	for path, changed := range bodies {
		for _, b := range changed {
			files[path].bodies[b.function] = append(files[path].bodies[b.function], b)
		}
	}
	return "", nil
}
