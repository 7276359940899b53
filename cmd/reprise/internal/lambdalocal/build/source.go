package build

import (
	"context"
	"fmt"
	"hash/fnv"
	"io/fs"
	"path/filepath"
	"strings"
)

// Source is a folder with code.
type Source struct {
	Dir string
	// Deep says that folders in it count, too, except hidden ones and those that
	// package managers fill.
	Deep bool
}

// Fingerprint changes when a file of the sources is written, added or taken away.
// Files that cannot be read do not count: they are seen when they can.
func Fingerprint(sources []Source) uint64 {
	hash := fnv.New64a()
	for _, source := range sources {
		_ = filepath.WalkDir(source.Dir, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return nil //nolint:nilerr // see above
			case entry.IsDir() && path != source.Dir && (!source.Deep || skipped(entry.Name())):
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

// addPackages adds the folders of the packages that the Go program in built.Dir is
// made of, as far as they can change: those of the standard library and of modules
// of others cannot.
func (b *Builder) addPackages(ctx context.Context, built *Built) error {
	if !b.Watch {
		return nil
	}
	const own = "{{if not .Standard}}{{if or (not .Module) .Module.Main .Module.Replace}}{{.Dir}}{{end}}{{end}}"
	list, err := output(ctx, built.Dir, nil, "go", "list", "-deps", "-f", own, ".")
	if err != nil {
		return err
	}
	for folder := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == '\n' }) {
		built.Sources = append(built.Sources, Source{Dir: folder})
	}
	return nil
}
