package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// pack is a package to mutate.
type pack struct {
	ImportPath, Dir, Root string
	Module                struct{ Path, Dir string }
	GoFiles               []string

	fset  *token.FileSet
	types *types.Package
	info  *types.Info
	files []*source
}

// source is a file of a package, with the edits that put the mutants into it.
type source struct {
	path  string
	text  []byte
	tree  *ast.File
	edits []edit
}

// load reads a package and its types.
func load(pattern string) (*pack, error) {
	out, err := goList("-json=ImportPath,Dir,Root,Module,GoFiles", pattern)
	if err != nil {
		return nil, err
	}
	p := &pack{fset: token.NewFileSet(), info: &types.Info{Types: make(map[ast.Expr]types.TypeAndValue)}}
	if err := json.Unmarshal(out, p); err != nil {
		return nil, fmt.Errorf("go list does not name exactly one package: %w", err)
	}
	var trees []*ast.File
	for _, name := range p.GoFiles {
		f := &source{path: filepath.Join(p.Dir, name)}
		if f.text, err = os.ReadFile(f.path); err != nil {
			return nil, err
		}
		if f.tree, err = parser.ParseFile(p.fset, f.path, f.text, parser.SkipObjectResolution); err != nil {
			return nil, err
		}
		p.files = append(p.files, f)
		trees = append(trees, f.tree)
	}
	exports, err := exportsOf(pattern)
	if err != nil {
		return nil, err
	}
	conf := types.Config{Importer: importer.ForCompiler(p.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })}
	p.types, err = conf.Check(p.ImportPath, p.fset, trees, p.info)
	return p, err
}

// exportsOf are the files with the compiled declarations of what a package imports.
func exportsOf(pattern string) (map[string]string, error) {
	out, err := goList("-deps", "-export", "-f", "{{.ImportPath}}\t{{.Export}}", pattern)
	if err != nil {
		return nil, err
	}
	exports := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		exports[path] = file
	}
	return exports, nil
}

func goList(args ...string) ([]byte, error) {
	cmd := exec.CommandContext(context.Background(), "go", append([]string{"list"}, args...)...) //nolint:gosec // G204: as the caller said
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, problem.Bytes())
	}
	return out, nil
}

// name is the package's path inside the module, or the module's last word.
func (p *pack) name() string {
	return cmp.Or(strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, p.Module.Path), "/"), path.Base(p.ImportPath))
}

// reasonsFile lists the survivors that change nothing.
func (p *pack) reasonsFile() string {
	return filepath.Join("internal", "mutation", "testdata", "survivors", strings.ReplaceAll(p.name(), "/", "-")+".txt")
}

// readReasons reads lines of the form "MUTANT -- reason", with the names that -list prints.
func readReasons(p *pack) (map[string]string, error) {
	reasons := make(map[string]string)
	f, err := os.Open(filepath.Join(p.Module.Dir, p.reasonsFile()))
	if os.IsNotExist(err) {
		return reasons, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was read only
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, reason, ok := strings.Cut(lines.Text(), " -- ")
		if !ok || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("%s: the line %q has no reason: write \"MUTANT -- reason\"", p.reasonsFile(), lines.Text())
		}
		reasons[name] = reason
	}
	return reasons, nil
}
