// Command release makes a release of the project from the commit that is checked out:
// tagged modules, programs, archives, manuals, licences, bills of materials, checksums.
// It publishes nothing: docs/release.md describes what it makes and how to publish that.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout)
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return
	}
	fmt.Fprintln(os.Stderr, "release:", err)
	os.Exit(1)
}

// release is one release while it is made.
type release struct {
	version    string   // vMAJOR.MINOR.PATCH, with or without a pre-release
	repository string   // the checkout that is released
	out        string   // the directory of everything that is made
	tools      string   // the directory of the programs of others, NAME-VERSION each
	targets    []target // the systems that get a program
	log        io.Writer

	moduleProxy string // where modules of others come from: GOPROXY
	moduleCache string // the module cache of the machine

	work    string    // a temporary directory
	source  string    // in work: a clone, with the commit that is tagged
	made    time.Time // the time of everything that has one: that of the commit
	modules []module  // the released modules, each after those that it requires

	programs map[target]string // the path of each program
	licences map[string]string // the directory of the licences, by operating system
	manual   string            // the directory of manual pages and completions
}

// steps are the steps of a release, in their order.
var steps = []struct {
	name string
	do   func(*release, context.Context) error
}{
	{"clone the commit", (*release).clone},
	{"tag the modules", (*release).tagModules},
	{"build the programs", (*release).buildPrograms},
	{"prove that the modules install", (*release).prove},
	{"collect licences", (*release).collectLicences},
	{"write manual pages and completions", (*release).writeManual},
	{"pack archives", (*release).packArchives},
	{"list the parts of each program", (*release).listParts},
	{"pack the chart", (*release).packChart},
	{"write the formula", (*release).writeFormula},
	{"write the notes", (*release).writeNotes},
	{"write checksums", (*release).writeChecksums},
}

func run(ctx context.Context, args []string, log io.Writer) error {
	r := release{log: log}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.StringVar(&r.version, "version", "", "the version: vMAJOR.MINOR.PATCH, or with a pre-release as in v1.2.0-rc.1")
	flags.StringVar(&r.repository, "repository", ".", "the checkout to release")
	flags.StringVar(&r.out, "out", "dist", "the directory to make; an older one of a release is replaced")
	flags.StringVar(&r.tools, "tools", ".bin", "the directory of go-licenses and cyclonedx-gomod, as make release builds them")
	targets := flags.String("targets", allTargets, "the systems to build programs for")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if err = checkVersion(r.version); err != nil {
		return err
	}
	if r.targets, err = parseTargets(*targets); err != nil {
		return err
	}
	for _, dir := range []*string{&r.repository, &r.out, &r.tools} {
		if *dir, err = filepath.Abs(*dir); err != nil {
			return err
		}
	}
	for variable, value := range map[string]*string{"GOPROXY": &r.moduleProxy, "GOMODCACHE": &r.moduleCache} {
		if *value, err = output(ctx, r.repository, nil, "go", "env", variable); err != nil {
			return err
		}
	}
	return r.make(ctx)
}

// make takes all steps.
func (r *release) make(ctx context.Context) (err error) {
	if r.work, err = os.MkdirTemp("", "reprise-release-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.work)) }()
	if err := replaceDirectory(r.out); err != nil {
		return err
	}
	for _, step := range steps {
		began := time.Now()
		if err := step.do(r, ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Fprintf(r.log, "%-36s %5.1f s\n", step.name, time.Since(began).Seconds())
	}
	fmt.Fprintf(r.log, "%s is in %s. Nothing is published: docs/release.md describes the next steps.\n", r.version, r.out)
	return nil
}

// checkVersion permits the versions that module paths without a /v2 can have.
func checkVersion(version string) error {
	if !semver.IsValid(version) || semver.Canonical(version) != version {
		return fmt.Errorf("the version is %q: pass one like v0.1.0 or v1.2.0-rc.1", version)
	}
	if major := semver.Major(version); major != "v0" && major != "v1" {
		return fmt.Errorf("the version is %q: from v2 on a Go module needs a path that ends in /%s", version, major)
	}
	return nil
}

// marker is the file by which the directory of an earlier release is recognized.
const marker = "SHA256SUMS"

// replaceDirectory makes an empty directory. It removes an older release, and nothing else.
func replaceDirectory(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(dir, marker)); err != nil {
			return fmt.Errorf("%s has files, and no %s of an earlier release: remove it, or pass another directory", dir, marker)
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	// The marker comes first, so that the next release can replace one that failed.
	return os.WriteFile(filepath.Join(dir, marker), nil, 0o644)
}

// number is the version as package managers write it, without the v.
func (r *release) number() string { return strings.TrimPrefix(r.version, "v") }
