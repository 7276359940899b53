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
	// Deep says that folders in it count, too, except hidden ones and those that
	// package managers fill.
	Deep bool
}

// Fingerprint changes when a file of the sources is written, added or taken away.
// Files that cannot be read do not count: they are seen when they can. Without
// sources it is 0.
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

// watch finds out what f is built from, and how that is now.
func (b *Builder) watch(ctx context.Context, f *template.Function, built *Built) error {
	built.Sources = []Source{{Path: built.Dir, Deep: true}}
	isGo := len(goFiles(built.Dir)) > 0
	switch {
	case f.Code.BuildMethod == makeMethod:
		built.Sources = append(built.Sources, Source{Path: built.makeDir, Deep: true})
	case isGo:
		built.Sources = nil // its packages: the folder may hold whole other programs
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

// goPackages are the folders of the packages that the Go program in dir is made of, the
// files that they embed and the go.mod of their modules, as far as they can change: those
// of the standard library and of modules of others cannot.
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
