package main

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
)

// libraryPath is the path of the library's module; those of all others begin with it.
const libraryPath = "github.com/reprise-sqs/reprise"

// programPath is the path of the program's module and package.
const programPath = libraryPath + "/cmd/reprise"

// unreleased are the folders of modules without packages to import: benchmarks, and tests
// of the library that need database drivers.
var unreleased = []string{"bench", "adapters/sqldrivers"}

// module is a released module.
type module struct {
	path     string
	folder   string   // in the repository, with slashes; "." is the library
	requires []string // the paths of the other released modules that it requires
}

// tag returns the name of the tag that makes version of m.
func (m module) tag(version string) string { return path.Join(m.folder, version) }

// clone makes a clone of the repository at its commit, with the version required by all
// modules of the workspace.
func (r *release) clone(ctx context.Context) error {
	status, err := output(ctx, r.repository, nil, "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if status != "" {
		return fmt.Errorf("%s has changes that are not committed: commit or stash them\n%s", r.repository, status)
	}
	commit, err := output(ctx, r.repository, nil, "git", "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	// Does the version exist already? Then this must be its commit, to be built again.
	if tagged, err := output(ctx, r.repository, nil, "git", "rev-parse", "--verify", "--quiet", "refs/tags/"+r.version+"^{commit}"); err == nil && tagged != commit {
		return fmt.Errorf("%s is the version of commit %.12s, and %.12s is checked out: choose the next version, or check out %s to build that again", r.version, tagged, commit, r.version)
	}
	date, err := output(ctx, r.repository, nil, "git", "show", "--no-patch", "--format=%cI", "HEAD")
	if err != nil {
		return err
	}
	if r.made, err = time.Parse(time.RFC3339, date); err != nil {
		return err
	}
	r.source = filepath.Join(r.work, "source")
	if _, err := output(ctx, r.work, nil, "git", "clone", "--quiet", "--shared", "--no-checkout", r.repository, r.source); err != nil {
		return err
	}
	if _, err := output(ctx, r.source, nil, "git", "checkout", "--quiet", "--detach", commit); err != nil {
		return err
	}
	if r.modules, err = readModules(r.source); err != nil {
		return err
	}
	return requireVersion(r.source, r.version)
}

// readModules returns the released modules of the workspace, each after those that it
// requires.
func readModules(source string) ([]module, error) {
	workspace, err := readWorkspace(source)
	if err != nil {
		return nil, err
	}
	var modules []module
	for _, use := range workspace.Use {
		folder := path.Clean(use.Path)
		if slices.Contains(unreleased, folder) {
			continue
		}
		file, err := readModule(filepath.Join(source, filepath.FromSlash(folder), "go.mod"))
		if err != nil {
			return nil, err
		}
		m := module{path: file.Module.Mod.Path, folder: folder}
		for _, require := range file.Require {
			if isOurs(require.Mod.Path) {
				m.requires = append(m.requires, require.Mod.Path)
			}
		}
		modules = append(modules, m)
	}
	return inOrder(modules)
}

// inOrder sorts modules so that each stands after those that it requires.
func inOrder(modules []module) (sorted []module, err error) {
	done := make(map[string]bool)
	for len(sorted) < len(modules) {
		before := len(sorted)
		for _, m := range modules {
			ready := !slices.ContainsFunc(m.requires, func(path string) bool { return !done[path] })
			if ready && !done[m.path] {
				done[m.path] = true
				sorted = append(sorted, m)
			}
		}
		if len(sorted) == before {
			return nil, fmt.Errorf("the modules require each other in a circle, or one that is not released: %v are done, of %v", sorted, modules)
		}
	}
	return sorted, nil
}

// requireVersion writes version into every requirement of the workspace's own modules. In a
// go.mod it takes the place of where they are: go install refuses a module that replaces
// another. The workspace keeps the replacement, of that version: the go command asks for the
// go.mod of a requirement even where the workspace has the module.
func requireVersion(source, version string) error {
	workspace, err := readWorkspace(source)
	if err != nil {
		return err
	}
	for _, use := range workspace.Use {
		name := filepath.Join(source, filepath.FromSlash(use.Path), "go.mod")
		file, err := readModule(name)
		if err != nil {
			return err
		}
		for _, require := range slices.Clone(file.Require) {
			if !isOurs(require.Mod.Path) {
				continue
			}
			if err := file.AddRequire(require.Mod.Path, version); err != nil {
				return err
			}
		}
		for _, line := range slices.Clone(file.Replace) {
			replace := *line // DropReplace clears the line
			if !isOurs(replace.Old.Path) {
				continue
			}
			if err := file.DropReplace(replace.Old.Path, replace.Old.Version); err != nil {
				return err
			}
			folder := path.Join(use.Path, replace.New.Path)
			if folder != "." {
				folder = "./" + folder
			}
			if err := workspace.AddReplace(replace.Old.Path, version, folder, ""); err != nil {
				return err
			}
		}
		file.Cleanup()
		text, err := file.Format()
		if err != nil {
			return err
		}
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return err
		}
	}
	workspace.Cleanup()
	return os.WriteFile(filepath.Join(source, "go.work"), modfile.Format(workspace.Syntax), 0o644)
}

func isOurs(modulePath string) bool {
	return modulePath == libraryPath || strings.HasPrefix(modulePath, libraryPath+"/")
}

func readModule(name string) (*modfile.File, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return modfile.Parse(name, text, nil)
}

func readWorkspace(source string) (*modfile.WorkFile, error) {
	name := filepath.Join(source, "go.work")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return modfile.ParseWork(name, text, nil)
}
