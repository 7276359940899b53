//go:build unix

package main_test

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"golang.org/x/mod/modfile"
)

// TestDependabotSeesEveryModule: Dependabot finds the modules in go.work, and go get, which it
// runs in each of them, finds the others by replacements. go.work therefore has every module
// outside testdata, and a go.mod says where each module of ours is that it requires.
func TestDependabotSeesEveryModule(t *testing.T) {
	t.Parallel()
	var dependabot struct {
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directory   string
			Directories []string
		}
	}
	if err := yaml.Unmarshal([]byte(fileOf(t, ".github/dependabot.yml")), &dependabot); err != nil {
		t.Fatal(err)
	}
	roots := 0
	for _, update := range dependabot.Updates {
		if update.Ecosystem == "gomod" && update.Directory == "/" && update.Directories == nil {
			roots++
		}
	}
	if roots != 1 {
		t.Errorf("%d updates of Go modules are of /, where go.work is, want 1", roots)
	}

	work, err := modfile.ParseWork("go.work", []byte(fileOf(t, "go.work")), nil)
	if err != nil {
		t.Fatal(err)
	}
	var listed, found []string
	for _, use := range work.Use {
		listed = append(listed, path.Clean(use.Path))
	}
	for _, depth := range []string{"", "*", "*/*", "*/*/*"} {
		names, err := filepath.Glob(filepath.Join(root, depth, "go.mod"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			folder, err := filepath.Rel(root, filepath.Dir(name))
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, filepath.ToSlash(folder))
		}
	}
	slices.Sort(listed)
	slices.Sort(found)
	if !slices.Equal(listed, found) {
		t.Errorf("go.work lists %q, and go.mod files are in %q", listed, found)
	}

	const library = "github.com/reprise-sqs/reprise"
	for _, folder := range listed {
		file, err := modfile.Parse(folder, []byte(fileOf(t, path.Join(folder, "go.mod"))), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, require := range file.Require {
			sub, ours := strings.CutPrefix(require.Mod.Path, library)
			if !ours {
				continue
			}
			if require.Mod.Version != "v0.0.0" {
				t.Errorf("%s requires %s, want v0.0.0: a release writes its version there", folder, require.Mod)
			}
			if !slices.ContainsFunc(file.Replace, func(r *modfile.Replace) bool {
				return r.Old.Path == require.Mod.Path && path.Join(folder, r.New.Path) == path.Join(".", sub)
			}) {
				t.Errorf("%s/go.mod does not say where %s is", folder, require.Mod.Path)
			}
		}
	}
}
