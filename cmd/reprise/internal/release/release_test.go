package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// workspace makes a repository whose modules require each other as the project's do, and no
// others.
func workspace(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                              "module " + libraryPath + "\n\ngo 1.26.0\n",
		"reprise.go":                          "package reprise\n\nconst Word = \"library\"\n",
		"LICENSE":                             "of the library\n",
		"adapters/one/go.mod":                 "module " + libraryPath + "/adapters/one\n\ngo 1.26.0\n\nrequire " + libraryPath + " v0.0.0\n\nreplace " + libraryPath + " => ../..\n",
		"adapters/one/one.go":                 "package one\n\nimport \"" + libraryPath + "\"\n\nconst Word = \"adapter of the \" + reprise.Word\n",
		"cmd/reprise/go.mod":                  "module " + programPath + "\n\ngo 1.26.0\n\nrequire (\n\t" + libraryPath + " v0.0.0\n\t" + libraryPath + "/adapters/one v0.0.0\n)\n\nreplace (\n\t" + libraryPath + " => ../..\n\t" + libraryPath + "/adapters/one => ../../adapters/one\n)\n",
		"cmd/reprise/main.go":                 "package main\n\nimport \"" + libraryPath + "/adapters/one\"\n\nfunc main() { println(\"program with the \" + one.Word) }\n",
		"bench/go.mod":                        "module " + libraryPath + "/bench\n\ngo 1.26.0\n\nrequire " + programPath + " v0.0.0\n\nreplace " + programPath + " => ../cmd/reprise\n",
		"bench/main.go":                       "package main\n\nfunc main() {}\n",
		"go.work":                             "go 1.26.0\n\nuse (\n\t.\n\t./adapters/one\n\t./bench\n\t./cmd/reprise\n)\n",
		"cmd/reprise/testdata/not released":   "a name that no module may contain is left out\n",
		"cmd/reprise/internal/thing/thing.go": "package thing\n",
	} {
		name = filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git(t, dir, "init", "--quiet")
	git(t, dir, "add", "--all")
	git(t, dir, "commit", "--quiet", "--message", "all")
	return dir
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	identity := []string{"-c", "user.name=Test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"}
	return command(t, dir, nil, "git", append(identity, args...)...)
}

func command(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		t.Skip("skipped: ", err)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(withoutGit(os.Environ()), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// tagged makes a release of the modules of a repository, and of nothing else.
func tagged(t *testing.T, repository, version string) *release {
	t.Helper()
	r := &release{version: version, repository: repository, out: t.TempDir(), work: t.TempDir(), log: io.Discard}
	for _, step := range steps[:2] {
		if err := step.do(r, t.Context()); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
	}
	return r
}

// offline is an environment with no modules but those of the release.
func (r *release) offline(cache string) []string {
	return append(slices.Clone(goEnvironment), "GOPROXY=file://"+filepath.ToSlash(r.proxy()), "GOSUMDB=off", "GOMODCACHE="+cache, "GOPATH="+cache+"/gopath")
}

// TestReleaseInstallsFromTheProxy: with nothing but the module proxy of the release, the
// program installs at its version, an empty module gets the library, and the tagged commit
// builds without the workspace.
func TestReleaseInstallsFromTheProxy(t *testing.T) {
	t.Parallel()
	const version = "v0.3.0-rc.1"
	r := tagged(t, workspace(t), version)
	cache := t.TempDir()
	env := r.offline(cache)

	command(t, t.TempDir(), env, "go", "install", programPath+"@"+version)
	if got := command(t, cache, env, filepath.Join(cache, "gopath", "bin", "reprise")); got != "program with the adapter of the library" {
		t.Errorf("the program prints %q", got)
	}

	empty := t.TempDir()
	command(t, empty, env, "go", "mod", "init", "example.org/empty")
	command(t, empty, env, "go", "get", libraryPath+"@latest", libraryPath+"/adapters/one@"+version)
	if got := command(t, empty, env, "go", "list", "-m", "-f", "{{.Version}}", libraryPath); got != version {
		t.Errorf("the latest version is %s, want %s", got, version)
	}

	// go.sum has the sums of the released modules.
	program := filepath.Join(r.source, "cmd", "reprise")
	command(t, program, append(env, "GOFLAGS=-mod=readonly"), "go", "build", "-o", os.DevNull, ".")
	command(t, program, env, "go", "mod", "verify")
	// And the workspace works at that commit too.
	command(t, r.source, append(env, "GOWORK="), "go", "vet", "./cmd/reprise", "./bench")
}

// TestReleaseTags: each released module has a tag, the others have none; the bundle brings
// them into the repository that was released.
func TestReleaseTags(t *testing.T) {
	t.Parallel()
	repository := workspace(t)
	r := tagged(t, repository, "v0.3.0")
	git(t, repository, "fetch", "--quiet", filepath.Join(r.out, "tags.bundle"), "refs/tags/*:refs/tags/*")
	if got, want := git(t, repository, "tag"), "adapters/one/v0.3.0\ncmd/reprise/v0.3.0\nv0.3.0"; got != want {
		t.Errorf("the tags are %q, want %q", got, want)
	}
	if got, want := git(t, repository, "show", "cmd/reprise/v0.3.0:cmd/reprise/go.mod"), libraryPath+"/adapters/one v0.3.0"; !strings.Contains(got, want) {
		t.Errorf("the program requires %s, want %s", got, want)
	}
	if got := git(t, repository, "log", "--format=%s", "-2", "v0.3.0"); got != "release: v0.3.0\nall" {
		t.Errorf("the commits are %q, want the release on top of the commit that was released", got)
	}
}

// TestReleaseOfATagIsTheSame: a release that is made again from its own tag gives the same
// commit and the same modules, so that users can check a download.
func TestReleaseOfATagIsTheSame(t *testing.T) {
	t.Parallel()
	repository := workspace(t)
	first := tagged(t, repository, "v0.3.0")
	git(t, repository, "fetch", "--quiet", filepath.Join(first.out, "tags.bundle"), "refs/tags/*:refs/tags/*")
	git(t, repository, "checkout", "--quiet", "v0.3.0")
	second := tagged(t, repository, "v0.3.0")
	if got, want := git(t, second.source, "rev-parse", "HEAD"), git(t, first.source, "rev-parse", "HEAD"); got != want {
		t.Errorf("the commit is %s, at first it was %s", got, want)
	}
	for _, name := range []string{libraryPath, libraryPath + "/adapters/one", programPath} {
		zip := filepath.Join("proxy", filepath.FromSlash(name), "@v", "v0.3.0.zip")
		got, err := sumOf(filepath.Join(second.out, zip))
		if err != nil {
			t.Fatal(err)
		}
		if want, err := sumOf(filepath.Join(first.out, zip)); err != nil || got != want {
			t.Errorf("%s has the sum %s, at first it had %s (%v)", zip, got, want, err)
		}
	}
}

// TestReleaseRefuses: the errors name the problem and the remedy.
func TestReleaseRefuses(t *testing.T) {
	t.Parallel()
	repository := workspace(t)
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "thesis.txt"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	git(t, repository, "tag", "v0.1.0")
	git(t, repository, "commit", "--quiet", "--allow-empty", "--message", "more")
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, `the version is "": pass one like v0.1.0`},
		{[]string{"-version", "0.1.0"}, "pass one like v0.1.0"},
		{[]string{"-version", "v0.1"}, "pass one like v0.1.0"},
		{[]string{"-version", "v0.1.0+build"}, "pass one like v0.1.0"},
		{[]string{"-version", "v2.0.0"}, "ends in /v2"},
		{[]string{"-version", "v0.2.0", "-targets", "plan9/386"}, "linux/amd64"},
		{[]string{"-version", "v0.2.0", "-out", full}, "remove it, or pass another directory"},
		{[]string{"-version", "v0.1.0", "-out", t.TempDir()}, "choose the next version"},
	} {
		err := run(t.Context(), append([]string{"-repository", repository}, test.args...), io.Discard)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("release %v: %v, want an error with %q", test.args, err, test.want)
		}
	}
	if err := os.WriteFile(filepath.Join(repository, "new.go"), []byte("package reprise\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), []string{"-repository", repository, "-version", "v0.2.0", "-out", t.TempDir()}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "commit or stash") || !strings.Contains(err.Error(), "new.go") {
		t.Errorf("release of a checkout with a new file: %v, want an error that names it", err)
	}
}

// TestReleaseReplacesARelease: a release may replace an earlier one, also one that failed.
func TestReleaseReplacesARelease(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "dist")
	for range 2 {
		if err := replaceDirectory(dir); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) != 1 {
			t.Fatalf("the directory has %v (%v), want the marker alone", entries, err)
		}
		if err := os.WriteFile(filepath.Join(dir, "half"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReleaseFromAHook: git's hooks run with variables that name their repository. A release
// that a hook runs does not change that repository.
func TestReleaseFromAHook(t *testing.T) {
	hooked, other := workspace(t), workspace(t)
	t.Setenv("GIT_DIR", filepath.Join(hooked, ".git"))
	t.Setenv("GIT_WORK_TREE", hooked)
	r := tagged(t, other, "v0.3.0")
	if got := git(t, r.source, "tag"); !strings.Contains(got, "cmd/reprise/v0.3.0") {
		t.Errorf("the clone has the tags %q, want those of the release", got)
	}
	if got := git(t, hooked, "tag"); got != "" {
		t.Errorf("the hook's repository has the tags %q, want none", got)
	}
}

// TestReleaseManual: each command has a page with its flags, whose tables are left as they
// are, and a shell can read its completions.
func TestReleaseManual(t *testing.T) {
	t.Parallel()
	r := &release{version: "v0.3.0", work: t.TempDir()}
	if err := r.writeManual(context.Background()); err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(r.manual, "man1", "*.1"))
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages (%v), want one for each command", len(pages), err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{".TH ", "reprise v0.3.0", "SYNOPSIS", "OPTIONS"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s has no %s", filepath.Base(page), want)
			}
		}
	}
	t.Run("as man shows it", func(t *testing.T) {
		shown := command(t, r.manual, []string{"MANWIDTH=100", "LC_ALL=C.UTF-8"}, "man", "--local-file", "--pager=cat", "man1/reprise.1")
		for _, want := range []string{
			`(?m)^ +0 +done$`, // the table of exit codes, a line each
			`(?m)^ +2 +the command line cannot be understood$`,
			`reprise-serve\(1\)`,
		} {
			if !regexp.MustCompile(want).MatchString(shown) {
				t.Errorf("reprise(1) has no %s:\n%s", want, shown)
			}
		}
		up := command(t, r.manual, []string{"MANWIDTH=2000", "LC_ALL=C.UTF-8"}, "man", "--local-file", "--pager=cat", "man1/reprise-up.1")
		if !strings.Contains(strings.Join(strings.Fields(up), " "), "REPRISE_MESSAGE_ID, _ORIGIN_ID, _QUEUE") {
			t.Errorf("reprise-up(1) has lost underscores:\n%s", up)
		}
	})
	t.Run("completions", func(t *testing.T) {
		command(t, r.manual, nil, "bash", "-n", "completions/reprise.bash")
	})
}

// TestReleaseOfThisRepository: the modules of the commit that is checked out can be got by
// their version alone: each package that they import is in a module that they require. make
// release also builds them, which takes minutes.
func TestReleaseOfThisRepository(t *testing.T) {
	t.Parallel()
	const version = "v0.0.1-test"
	repository := filepath.Join(t.TempDir(), "clone") // without uncommitted changes
	top := command(t, ".", nil, "git", "rev-parse", "--show-toplevel")
	git(t, ".", "clone", "--quiet", "--shared", top, repository)
	r := tagged(t, repository, version)
	cache := command(t, ".", nil, "go", "env", "GOMODCACHE")
	r.moduleCache, r.moduleProxy = cache, command(t, ".", nil, "go", "env", "GOPROXY")

	// The tagged commit works as a checkout: with the workspace, and the program without it.
	command(t, r.source, []string{"GOFLAGS="}, "go", "list", "-deps", "work")
	command(t, filepath.Join(r.source, "cmd", "reprise"), append(r.proxied(), "GOFLAGS=-modcacherw -mod=readonly"), "go", "list", "-deps", "./...")

	empty := t.TempDir()
	env := append(r.proxied(), "GOFLAGS=-modcacherw -mod=mod")
	command(t, empty, env, "go", "mod", "init", "example.org/empty")
	args := []string{"get"}
	for _, m := range r.modules {
		args = append(args, m.path+"@"+version)
	}
	command(t, empty, env, "go", args...)
	for _, m := range r.modules {
		listed := command(t, empty, env, "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Version}}{{end}}", m.path)
		if want := m.path + " " + version; !strings.Contains(listed+"\n", want+"\n") {
			t.Errorf("the modules of %s are %s, want %s among them", m.path, listed, want)
		}
	}
}
