package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// collectLicences saves the licences of everything in the programs, for each operating
// system, since each has modules of its own. go-licenses fails on one that it does not
// know, or that forbids this.
func (r *release) collectLicences(ctx context.Context) error {
	tool, err := r.tool("go-licenses")
	if err != nil {
		return err
	}
	goroot, err := output(ctx, r.work, nil, "go", "env", "GOROOT")
	if err != nil {
		return err
	}
	// It reads packages as a build in this module sees them.
	within := filepath.Join(r.work, "licensed")
	if err := os.Mkdir(within, 0o755); err != nil {
		return err
	}
	env := append(r.proxied(), "GOFLAGS=-modcacherw -mod=mod", "GOROOT="+goroot)
	if _, err := output(ctx, within, env, "go", "mod", "init", "example.org/licensed"); err != nil {
		return err
	}
	if _, err := output(ctx, within, env, "go", "get", programPath+"@"+r.version); err != nil {
		return err
	}
	r.licences = make(map[string]string)
	for t, program := range r.programs {
		if r.licences[t.os] != "" {
			continue
		}
		saved := filepath.Join(r.work, "licences", t.os)
		_, err := output(ctx, within, append(env, "GOOS="+t.os, "GOARCH="+t.arch), tool,
			"save", programPath, "--ignore", libraryPath, "--save_path", saved)
		if err != nil {
			return err
		}
		if err := removeCode(saved); err != nil {
			return err
		}
		// Go's own packages are part of the program too.
		if err := copyFile(filepath.Join(saved, "go", "LICENSE"), filepath.Join(goroot, "LICENSE"), 0o644); err != nil {
			return err
		}
		if err := copyWebLicences(saved, r.source); err != nil {
			return err
		}
		if err := checkLicences(saved, program); err != nil {
			return err
		}
		r.licences[t.os] = saved
	}
	return nil
}

// webCode has the code of others in the dashboard's pages, each with its NAME.LICENSE.
const webCode = "cmd/reprise/internal/dashboard/assets/vendor"

// copyWebLicences saves the licences of what is no Go module: go-licenses does not know it.
func copyWebLicences(saved, source string) error {
	found, err := filepath.Glob(filepath.Join(source, filepath.FromSlash(webCode), "*.LICENSE"))
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("%s has no licences of the code of others", webCode)
	}
	for _, from := range found {
		name := strings.TrimSuffix(filepath.Base(from), ".LICENSE")
		if err := copyFile(filepath.Join(saved, "web", name, "LICENSE"), from, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// removeCode removes everything but licences: of modules under licences like the MPL
// go-licenses saves the code, which is available under the address in the bill of materials.
func removeCode(dir string) error {
	return filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || isLicence(entry.Name()) {
			return err
		}
		return os.Remove(name)
	})
}

func isLicence(name string) bool {
	name = strings.ToUpper(name)
	for _, begin := range []string{"LICENSE", "LICENCE", "UNLICENSE", "COPYING", "NOTICE", "README"} {
		if strings.HasPrefix(name, begin) {
			return true
		}
	}
	return false
}

// checkLicences checks that there is a licence for each module of the program.
func checkLicences(dir, program string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	for _, m := range info.Deps {
		if isOurs(m.Path) {
			continue
		}
		if found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(m.Path))); err != nil || len(found) == 0 {
			return fmt.Errorf("%s is in the program, and go-licenses saved no licence of it", m.Path)
		}
	}
	return nil
}
