package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// goEnvironment overrides all Go settings of this machine that could change a build.
var goEnvironment = []string{
	"GOENV=off", "GOWORK=off", "GOFLAGS=-modcacherw", "GOPRIVATE=", "GONOPROXY=", "GOBIN=", "GO111MODULE=",
	"CGO_ENABLED=0", "GOEXPERIMENT=", "GOAMD64=v1", "GOARM64=v8.0",
}

// output runs a command in dir, with env added to the environment, and returns its standard
// output. If the command fails, the error contains both of its outputs.
func output(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(withoutGit(os.Environ()), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, stderr.String()+stdout.String())
	}
	return strings.TrimSpace(stdout.String()), nil
}

// withoutGit removes git's own variables. Git sets them for hooks, and they win over the
// current directory: in a hook, our git commands would change the hook's repository.
func withoutGit(env []string) []string {
	return slices.DeleteFunc(env, func(variable string) bool { return strings.HasPrefix(variable, "GIT_") })
}

// tool returns the path of a program of others, which is called NAME-VERSION.
func (r *release) tool(name string) (string, error) {
	found, err := filepath.Glob(filepath.Join(r.tools, name+"-v*"))
	if err != nil {
		return "", err
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", fmt.Errorf("%s has no %s: run make release, which builds it", r.tools, name)
	}
	return "", fmt.Errorf("%s has several versions of %s, %v: remove all but the one in the Makefile", r.tools, name, found)
}

// copyFile makes the file to of the file from.
func copyFile(to, from string, mode os.FileMode) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if _, err := os.Stat(to); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s exists already: %w", to, os.ErrExist)
	}
	return os.WriteFile(to, text, mode)
}
