package build

import (
	"context"
	"fmt"
	"hash/fnv"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/template"
)

// Source is a folder with code, or a file.
type Source struct {
	Path string
	// Deep includes folders in it, except hidden ones and those that package managers fill.
	Deep bool
}

// Fingerprint returns a number that changes when a file of the sources is written, added or
// removed. Files that cannot be read do not count until they can. Without sources it is 0.
func Fingerprint(sources []Source) uint64 {
	if len(sources) == 0 {
		return 0
	}
	hash := fnv.New64a()
	for _, source := range sources {
		_ = filepath.WalkDir(source.Path, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil //nolint:nilerr // see above
			case entry.IsDir() && path != source.Path && (!source.Deep || skipped(entry.Name())):
				return filepath.SkipDir
			case entry.IsDir():
				return nil
			}
			info, err := entry.Info()
			if err != nil {
				return nil //nolint:nilerr // see above
			}
			fmt.Fprintf(hash, "%s %d %d\n", path, info.ModTime().UnixNano(), info.Size())
			return nil
		})
	}
	return hash.Sum64()
}

func skipped(folder string) bool {
	return strings.HasPrefix(folder, ".") || folder == "node_modules" || folder == "__pycache__"
}

// watch sets the sources that f is built from, and their present fingerprint.
func (b *Builder) watch(ctx context.Context, f *template.Function, built *Built) error {
	built.Sources = []Source{{Path: built.Dir, Deep: true}}
	isGo := len(goFiles(built.Dir)) > 0
	switch {
	case f.Code.BuildMethod == makeMethod:
		built.Sources = append(built.Sources, Source{Path: built.makeDir, Deep: true})
	case isGo:
		built.Sources = nil // only its packages: the folder may contain other programs
	}
	if isGo {
		packages, err := goPackages(ctx, built.Dir)
		if err != nil {
			return err
		}
		built.Sources = append(built.Sources, packages...)
	}
	built.Fingerprint = Fingerprint(built.Sources)
	return nil
}

// goPackages returns the folders of the packages of the Go program in dir, the files that they
// embed and the go.mod of their modules. It leaves out the standard library and downloaded
// modules, which do not change.
func goPackages(ctx context.Context, dir string) ([]Source, error) {
	const own = "{{if not .Standard}}{{if or (not .Module) .Module.Main .Module.Replace}}" +
		"{{$dir := .Dir}}{{$dir}}{{range .EmbedFiles}}\n{{$dir}}/{{.}}{{end}}{{with .Module}}\n{{.GoMod}}{{end}}" +
		"{{end}}{{end}}"
	list, err := output(ctx, dir, nil, "go", "list", "-deps", "-f", own, ".")
	if err != nil {
		return nil, err
	}
	paths := strings.FieldsFunc(list, func(r rune) bool { return r == '\n' })
	slices.Sort(paths)
	var sources []Source
	for _, path := range slices.Compact(paths) {
		sources = append(sources, Source{Path: path})
	}
	return sources, nil
}
