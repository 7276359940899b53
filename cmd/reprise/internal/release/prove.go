package main

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
)

// prove shows that the modules can be used, with the release as their only source: in an
// empty module it gets the library and each adapter, and builds a program that imports all
// of them. If the release has a program for this machine, prove runs it.
func (r *release) prove(ctx context.Context) error {
	env := append(r.proxied(), "GOFLAGS=-modcacherw -mod=mod")
	empty := filepath.Join(r.work, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		return err
	}
	if _, err := output(ctx, empty, env, "go", "mod", "init", "example.org/empty"); err != nil {
		return err
	}
	args := []string{"get"}
	var imports strings.Builder
	for _, m := range r.modules {
		if m.path == programPath {
			continue // a program is installed, not imported
		}
		args = append(args, m.path+"@"+r.version)
		fmt.Fprintf(&imports, "\t_ %q\n", m.path)
	}
	if _, err := output(ctx, empty, env, "go", args...); err != nil {
		return err
	}
	program := "package main\n\nimport (\n" + imports.String() + ")\n\nfunc main() {}\n"
	if err := os.WriteFile(filepath.Join(empty, "main.go"), []byte(program), 0o644); err != nil {
		return err
	}
	if _, err := output(ctx, empty, env, "go", "build", "-trimpath", "-o", os.DevNull, "."); err != nil {
		return err
	}
	for _, m := range r.modules {
		fmt.Fprintf(r.log, "  %s@%s\n", m.path, r.version)
	}

	here := target{runtime.GOOS, runtime.GOARCH}
	name, built := r.programs[here]
	if !built {
		fmt.Fprintf(r.log, "  no program was built for %s: none is run\n", here)
		return nil
	}
	line, err := output(ctx, r.work, nil, name, "version")
	if err != nil {
		return err
	}
	want := fmt.Sprintf("reprise %s, %s, %s", r.version, runtime.Version(), here)
	if line != want {
		return fmt.Errorf("%s version prints %q, want %q", path.Base(name), line, want)
	}
	fmt.Fprintf(r.log, "  %s\n", line)
	return nil
}
