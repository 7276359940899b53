package main

import (
	"context"
	"debug/buildinfo"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// allTargets are the systems that a release has programs for.
const allTargets = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

// target is a system that a program is built for, in Go's names.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

// exe is the name of the program's file.
func (t target) exe() string {
	if t.os == "windows" {
		return "reprise.exe"
	}
	return "reprise"
}

func parseTargets(list string) (targets []target, err error) {
	for text := range strings.SplitSeq(list, ",") {
		system, arch, _ := strings.Cut(text, "/")
		t := target{system, arch}
		if !slices.Contains(strings.Split(allTargets, ","), text) {
			return nil, fmt.Errorf("-targets has %q: pass some of %s", text, allTargets)
		}
		if !slices.Contains(targets, t) {
			targets = append(targets, t)
		}
	}
	return targets, nil
}

// buildPrograms installs the program from the release's module proxy, so archives contain
// exactly the program that go install gives users.
func (r *release) buildPrograms(ctx context.Context) error {
	sums, err := readSums(filepath.Join(r.source, "cmd", "reprise", "go.sum"))
	if err != nil {
		return err
	}
	r.programs = make(map[target]string)
	for _, t := range r.targets {
		places := filepath.Join(r.work, "installed", t.os+"_"+t.arch)
		env := append(r.proxied(), "GOPATH="+places, "GOOS="+t.os, "GOARCH="+t.arch)
		if _, err := output(ctx, r.work, env, "go", "install", "-trimpath", "-ldflags=-s -w", programPath+"@"+r.version); err != nil {
			return err
		}
		name := filepath.Join(places, "bin", t.os+"_"+t.arch, t.exe())
		if t.os == runtime.GOOS && t.arch == runtime.GOARCH {
			name = filepath.Join(places, "bin", t.exe())
		}
		if err := r.checkProgram(name, t, sums); err != nil {
			return fmt.Errorf("the program for %s: %w", t, err)
		}
		r.programs[t] = name
		if t.os == "linux" { // the Dockerfile takes it from here
			if err := copyFile(filepath.Join(r.out, "image", "out", t.os, t.arch, t.exe()), name, 0o755); err != nil {
				return err
			}
		}
	}
	return nil
}

// proxied returns an environment in which the Go command downloads the project's modules
// from the release, and all others from the machine's module cache or, failing that, the
// network. The checksum database does not know the release: checkProgram compares sums
// with go.sum instead.
func (r *release) proxied() []string {
	files := func(dir string) string { return "file://" + filepath.ToSlash(dir) }
	proxies := []string{files(r.proxy()), files(filepath.Join(r.moduleCache, "cache", "download")), r.moduleProxy}
	return append(slices.Clone(goEnvironment), "GOPROXY="+strings.Join(proxies, ","), "GOSUMDB=off",
		"GOMODCACHE="+filepath.Join(r.work, "modules"))
}

// readSums returns the sums of a go.sum, by "path version".
func readSums(name string) (map[string]string, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	sums := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 {
			sums[fields[0]+" "+fields[1]] = fields[2]
		}
	}
	return sums, nil
}

// checkProgram checks the build information that the Go command has written into a program:
// its version, its system, the flags that make builds reproducible, and that each module's
// sum is the one in go.sum.
func (r *release) checkProgram(name string, t target, sums map[string]string) error {
	info, err := buildinfo.ReadFile(name)
	if err != nil {
		return err
	}
	var problems []error
	differs := func(what, is, want string) {
		if is != want {
			problems = append(problems, fmt.Errorf("%s is %q, want %q", what, is, want))
		}
	}
	differs("its package", info.Path, programPath)
	differs("its version", info.Main.Version, r.version)
	settings := make(map[string]string)
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	for key, want := range map[string]string{"CGO_ENABLED": "0", "-trimpath": "true", "GOOS": t.os, "GOARCH": t.arch} {
		differs(key, settings[key], want)
	}
	if len(info.Deps) == 0 {
		problems = append(problems, errors.New("it lists no modules"))
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			problems = append(problems, fmt.Errorf("%s is replaced", m.Path))
			continue
		}
		differs("the sum of "+m.Path, m.Sum, sums[m.Path+" "+m.Version])
	}
	if t.os == "linux" {
		problems = append(problems, checkStatic(name))
	}
	return errors.Join(problems...)
}

// checkStatic checks that a program needs no libraries of the system that it runs on.
func checkStatic(name string) error {
	file, err := elf.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			return fmt.Errorf("it is linked dynamically (%s)", p.Type)
		}
	}
	return nil
}
