package build

import (
	"context"
	_ "embed" // the bootstraps
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/template"
)

// Our own runtimes, used if AWS's are not installed.
var (
	//go:embed bootstrap.py
	pythonBootstrap []byte
	//go:embed bootstrap.mjs
	nodeBootstrap []byte
)

func isNode(runtime string) bool { return strings.HasPrefix(runtime, "nodejs") }

// interpret finds the interpreter for the code in built.Dir, and its runtime.
func (b *Builder) interpret(ctx context.Context, f *template.Function, built *Built) error {
	if isNode(f.Runtime) {
		return b.node(ctx, f, built)
	}
	return b.python(ctx, f, built)
}

// python asks the interpreter for its own path, since the command on the PATH may be a script
// that searches for the interpreter at every start; for its version; and for AWS's runtime.
func (b *Builder) python(ctx context.Context, f *template.Function, built *Built) error {
	const script = "import sys, importlib.util as u; print(sys.executable); print('%d.%d' % sys.version_info[:2]); print(bool(u.find_spec('awslambdaric')))"
	text, err := output(ctx, built.Dir, nil, "python3", "-c", script)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != 3 {
		return fmt.Errorf("python3 answers %q when asked for its version: correct the installation", text)
	}
	built.note(f, "python"+lines[1], "Python "+lines[1])
	if exists(filepath.Join(built.Dir, "requirements.txt")) {
		built.Notes = append(built.Notes, "requirements.txt is not installed: modules are those of "+lines[0]+" and of the folder")
	}
	if lines[2] == "True" {
		built.Command = []string{lines[0], "-u", "-m", "awslambdaric", f.Handler}
		return nil
	}
	file, err := b.bootstrap("bootstrap.py", pythonBootstrap)
	built.Command = []string{lines[0], "-u", file}
	return err
}

func (b *Builder) node(ctx context.Context, f *template.Function, built *Built) error {
	text, err := output(ctx, built.Dir, nil, "node", "-p", "process.execPath + '\\n' + process.versions.node.split('.')[0]")
	if err != nil {
		return err
	}
	program, major, _ := strings.Cut(strings.TrimSpace(text), "\n")
	built.note(f, "nodejs"+major+".x", "Node "+major)
	if exists(filepath.Join(built.Dir, "package.json")) && !exists(filepath.Join(built.Dir, "node_modules")) {
		built.Notes = append(built.Notes, "there is no node_modules beside package.json: run npm install if it names dependencies")
	}
	if client := filepath.Join(built.Dir, "node_modules", "aws-lambda-ric", "bin", "index.mjs"); exists(client) {
		built.Command = []string{program, client, f.Handler}
		return nil
	}
	file, err := b.bootstrap("bootstrap.mjs", nodeBootstrap)
	built.Command = []string{program, file}
	return err
}

// note notes that the interpreter's version is not the template's, if so.
func (built *Built) note(f *template.Function, runtime, name string) {
	if f.Runtime != runtime {
		built.Notes = append(built.Notes, fmt.Sprintf("run by %s, the one on the PATH, not by %s", name, f.Runtime))
	}
}

// bootstrap writes one of our runtimes to a file, and returns its path.
func (b *Builder) bootstrap(name string, text []byte) (string, error) {
	dir := filepath.Join(b.Dir, "runtime")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	file := filepath.Join(dir, name)
	// Another function may be writing the same text; a reader never sees half of it.
	temporary, err := os.CreateTemp(dir, name)
	if err != nil {
		return "", err
	}
	_, err = temporary.Write(text)
	if err = errors.Join(err, temporary.Close()); err != nil {
		return "", err
	}
	return file, os.Rename(temporary.Name(), file)
}
