// Package build makes the functions of a template ready to run on this machine: Go is compiled,
// or built by the project's own Makefile, for this machine's processor; Python and Node run from
// their folder, with AWS's runtime clients if those are installed, otherwise with small ones that
// are part of this program.
package build

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/children"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/lambda/template"
)

// Builder builds functions of one template.
type Builder struct {
	// Root is the template's folder, to which paths are relative.
	Root string
	// Dir is an empty folder for built files; it must exist as long as the functions run.
	Dir string
	// Watch asks for Built.Sources.
	Watch bool
	// AllowOutside permits code, and working directories of builds, outside of Root.
	AllowOutside bool
}

// Built is a function that is ready to run.
type Built struct {
	// Command starts it, in the folder Dir.
	Command []string
	Dir     string
	// Made is the folder that this build has made for itself; empty: none.
	Made string
	// Notes are differences from AWS.
	Notes []string
	// Sources are the files and folders that it was built from, and Fingerprint is theirs at that
	// time: when it changes, the function must be built again. Set only with Builder.Watch.
	Sources     []Source
	Fingerprint uint64

	makeDir string // where make runs; empty: without make
}

// Build builds f. It may be called for several functions at once.
func (b *Builder) Build(ctx context.Context, f *template.Function) (Built, error) {
	built, err := b.build(ctx, f)
	if err != nil {
		return Built{}, fmt.Errorf("function %s: %w", f.ID, err)
	}
	return built, nil
}

func (b *Builder) build(ctx context.Context, f *template.Function) (Built, error) {
	if f.Code.Inline != "" {
		return b.inline(ctx, f)
	}
	code, err := b.path("CodeUri", f.Code.Path)
	if err != nil {
		return Built{}, err
	}
	info, err := os.Stat(code)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Built{}, fmt.Errorf("there is no folder %s: correct CodeUri, which is relative to the template", code)
	case err != nil:
		return Built{}, err
	case !info.IsDir():
		return Built{}, fmt.Errorf("%s is not a folder: write the folder that the code is in", code)
	}
	built := Built{Dir: code}
	isGo := strings.HasPrefix(f.Runtime, "provided")
	if f.Code.BuildMethod == makeMethod {
		if built.makeDir, err = b.makeDir(f, code); err != nil {
			return Built{}, err
		}
	}
	asItIs := isGo && f.Code.BuildMethod != makeMethod && f.Code.BuildMethod != goMethod && exists(filepath.Join(code, bootstrap))
	if b.Watch {
		if err := b.watch(ctx, f, &built); err != nil {
			return Built{}, err
		}
	}
	switch {
	case f.Code.BuildMethod == makeMethod:
		err = b.make(ctx, f, &built)
	case asItIs:
		if _, err = b.path("the program", filepath.Join(code, bootstrap)); err != nil {
			break
		}
		built.Notes = append(built.Notes, filepath.Join(code, bootstrap)+" is run as it is: nothing was built")
	case isGo:
		err = b.compile(ctx, f, &built)
	}
	if err != nil {
		return Built{}, err
	}
	if isGo {
		return built, b.finishBinary(f, &built)
	}
	return built, b.interpret(ctx, f, &built)
}

// path returns the absolute path that a property of the template gives. Unless AllowOutside
// permits it, a path outside of Root, by its name or by symbolic links, is an error: the
// template's author must not choose other files of this machine.
func (b *Builder) path(property, name string) (string, error) {
	path := filepath.Clean(name)
	if !filepath.IsAbs(name) {
		path = filepath.Join(b.Root, name)
	}
	if b.AllowOutside {
		return path, nil
	}
	root, err := filepath.EvalSymlinks(b.Root)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) && within(b.Root, path) {
		return path, nil // its user reports it better
	}
	if err == nil && within(root, real) {
		return path, nil
	}
	return "", errors.Join(fmt.Errorf("%s %s is outside of the template's folder %s: move the code or the template, "+
		"or pass --allow-outside if that code is to be run", property, name, b.Root), err)
}

// within reports whether path is root or below it; both are absolute and clean.
func within(root, path string) bool {
	to, err := filepath.Rel(root, path)
	return err == nil && filepath.IsLocal(to)
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// artifacts makes a new folder for the files built for f, since those of an earlier build may
// still run.
func (b *Builder) artifacts(f *template.Function) (string, error) {
	return os.MkdirTemp(b.Dir, f.ID+"-")
}

// inline writes code from the template's text into a folder of its own.
func (b *Builder) inline(ctx context.Context, f *template.Function) (Built, error) {
	dir, err := b.artifacts(f)
	if err != nil {
		return Built{}, err
	}
	name := "index.py"
	if isNode(f.Runtime) {
		name = "index.js"
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(f.Code.Inline), 0o600); err != nil {
		return Built{}, err
	}
	built := Built{Dir: dir, Made: dir}
	return built, b.interpret(ctx, f, &built)
}

const (
	// bootstrap is the name of the program that provided runtimes start.
	bootstrap = "bootstrap"
	// The values of BuildMethod that matter beside the runtime: for Go, whatever the runtime is,
	// and for a Makefile.
	goMethod   = "go1.x"
	makeMethod = "makefile"
)

// make builds f as SAM does: by the target build-ID of its Makefile, which puts its results into
// ARTIFACTS_DIR.
func (b *Builder) make(ctx context.Context, f *template.Function, built *Built) error {
	dir, err := b.artifacts(f)
	if err != nil {
		return err
	}
	if err := run(ctx, built.makeDir, []string{"ARTIFACTS_DIR=" + dir}, "make", "build-"+f.ID); err != nil {
		return err
	}
	if b.Watch {
		// Makefiles may write beside their sources, which must not cause another build.
		built.Fingerprint = Fingerprint(built.Sources)
	}
	built.Dir, built.Made = dir, dir
	return nil
}

// makeDir is the folder in which make runs for f, whose code is in the folder code.
func (b *Builder) makeDir(f *template.Function, code string) (string, error) {
	if f.Code.WorkingDir != "" {
		return b.path("WorkingDirectory", f.Code.WorkingDir)
	}
	return code, nil
}

// compile builds the Go program in the folder of f.
func (b *Builder) compile(ctx context.Context, f *template.Function, built *Built) error {
	if len(goFiles(built.Dir)) == 0 {
		return fmt.Errorf("%s has neither a program called %s nor Go files: build the one, or correct CodeUri", built.Dir, bootstrap)
	}
	dir, err := b.artifacts(f)
	if err != nil {
		return err
	}
	// For this machine, otherwise with the user's settings: a static program would have packages
	// compiled again that are compiled already.
	err = run(ctx, built.Dir, []string{"GOOS=" + runtime.GOOS, "GOARCH=" + runtime.GOARCH},
		"go", "build", "-tags", "lambda.norpc", "-o", filepath.Join(dir, bootstrap), ".")
	built.Dir, built.Made = dir, dir
	return err
}

func goFiles(dir string) []string {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil // the folder's name is not a valid pattern; make or go will report the problem
	}
	return files
}

// finishBinary checks that the program can run here, and notes differences from AWS.
func (b *Builder) finishBinary(f *template.Function, built *Built) error {
	program := filepath.Join(built.Dir, bootstrap)
	if !exists(program) {
		return fmt.Errorf("the build made no %s in %s: Makefiles put it into $(ARTIFACTS_DIR)", bootstrap, built.Dir)
	}
	if machine := foreign(program); machine != "" {
		return fmt.Errorf("%s is for %s, and this machine is %s: build it without GOARCH, or with this machine's", program, machine, runtime.GOARCH)
	}
	if name := architectures[runtime.GOARCH]; name != f.Architecture {
		built.Notes = append(built.Notes, fmt.Sprintf("built for this machine (%s), not for %s", cmp.Or(name, runtime.GOARCH), f.Architecture))
	}
	built.Command = []string{program}
	return nil
}

// architectures are Lambda's names of processors.
var architectures = map[string]string{"amd64": "x86_64", "arm64": "arm64"}

// stopGrace is how long a build may take to end after it was asked to.
const stopGrace = time.Second

// run runs a command in dir, and fails with its output.
func run(ctx context.Context, dir string, environment []string, name string, args ...string) error {
	_, err := output(ctx, dir, environment, name, args...)
	return err
}

// output runs a command in dir and returns what it writes to its standard output.
func output(ctx context.Context, dir string, environment []string, name string, args ...string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is not installed, or not on the PATH: install it", name)
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = dir
	mark := children.NewMark()
	cmd.Env = append(append(os.Environ(), environment...), mark)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = 2 * stopGrace // processes that do not end then may keep the output open
	if err := children.New(cmd, mark, stopGrace).Run(); err != nil {
		if ctx.Err() != nil {
			return "", context.Cause(ctx)
		}
		said := strings.TrimSpace(stdout.String() + stderr.String())
		return "", fmt.Errorf("%s %s in %s: %w\n%s", name, strings.Join(args, " "), dir, err, said)
	}
	return stdout.String(), nil
}
