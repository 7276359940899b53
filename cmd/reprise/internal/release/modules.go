package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// tagModules commits the requirements of the clone, with the sums of the modules, and
// tags each module. It leaves the tags in tags.bundle, and the modules in proxy, which
// is a module proxy in files.
//
// The Go command itself makes the modules from the tags, as the public module proxy will:
// git's configuration replaces the repository's URL on GitHub by the clone's path.
func (r *release) tagModules(ctx context.Context) error {
	var made []download
	// A module's go.sum has the sums of the modules that it requires, so a changed sum
	// changes the sums of all modules above it. One round for each level of requirements
	// is enough, and a last one that changes nothing.
	for round := range len(r.modules) + 1 {
		if err := r.tag(ctx); err != nil {
			return err
		}
		var err error
		if made, err = r.download(ctx, filepath.Join(r.work, fmt.Sprintf("tagged-%d", round))); err != nil {
			return err
		}
		changed, err := r.writeSums(made)
		if err != nil {
			return err
		}
		if changed {
			continue
		}
		if err := writeProxy(r.proxy(), made); err != nil {
			return err
		}
		return r.bundle(ctx)
	}
	return fmt.Errorf("the sums of the modules still changed after %d rounds", len(r.modules)+1)
}

// proxy is the directory of the module proxy.
func (r *release) proxy() string { return filepath.Join(r.out, "proxy") }

// tag commits the changes in the clone, and moves the tags to that commit.
func (r *release) tag(ctx context.Context) error {
	git := func(args ...string) (string, error) { return output(ctx, r.source, r.author(), "git", args...) }
	changes, err := git("status", "--porcelain", "--untracked-files=no")
	if err != nil {
		return err
	}
	if changes != "" {
		message := "release: " + r.version + "\n\nThe nested modules require this version of those that they are built on."
		if _, err := git("commit", "--quiet", "--all", "--no-verify", "--no-gpg-sign", "--message", message); err != nil {
			return err
		}
	}
	for _, m := range r.modules {
		if _, err := git("tag", "--force", "--annotate", "--no-sign", "--message", m.path+" "+r.version, m.tag(r.version)); err != nil {
			return err
		}
	}
	return nil
}

// author makes commits and tags the same in each run.
func (r *release) author() []string {
	date := r.made.Format("2006-01-02T15:04:05-07:00")
	return []string{
		"GIT_AUTHOR_NAME=Reprise release", "GIT_AUTHOR_EMAIL=release@localhost", "GIT_AUTHOR_DATE=" + date,
		"GIT_COMMITTER_NAME=Reprise release", "GIT_COMMITTER_EMAIL=release@localhost", "GIT_COMMITTER_DATE=" + date,
	}
}

// bundle writes the tags, and the commits that the repository does not have, to a file
// that git fetch can read.
func (r *release) bundle(ctx context.Context) error {
	args := []string{"-c", "pack.threads=1", "bundle", "create", "--quiet", filepath.Join(r.out, "tags.bundle")}
	for _, m := range r.modules {
		args = append(args, "refs/tags/"+m.tag(r.version))
	}
	head, err := output(ctx, r.repository, nil, "git", "rev-parse", "HEAD^@")
	if err != nil {
		return err
	}
	for parent := range strings.FieldsSeq(head) {
		args = append(args, "^"+parent)
	}
	_, err = output(ctx, r.source, nil, "git", args...)
	return err
}

// download is a line of go mod download -json: one module.
type download struct {
	Path, Version, Error string
	Info, GoMod, Zip     string
	Sum, GoModSum        string
}

// download has the Go command make the modules from the tags of the clone, in an empty
// module cache.
func (r *release) download(ctx context.Context, cache string) ([]download, error) {
	config := filepath.Join(r.work, "gitconfig")
	pretend := fmt.Sprintf("[url %q]\n\tinsteadOf = https://%s\n", "file://"+filepath.ToSlash(r.source), libraryPath)
	if err := os.WriteFile(config, []byte(pretend), 0o600); err != nil {
		return nil, err
	}
	args := []string{"mod", "download", "-json"}
	for _, m := range r.modules {
		args = append(args, m.path+"@"+r.version)
	}
	env := append(slices.Clone(goEnvironment), "GOMODCACHE="+cache, "GOPROXY=direct", "GOSUMDB=off",
		"GIT_CONFIG_GLOBAL="+config, "GIT_CONFIG_NOSYSTEM=1")
	text, err := output(ctx, r.work, env, "go", args...)
	if err != nil {
		return nil, err
	}
	var made []download
	for d := json.NewDecoder(strings.NewReader(text)); d.More(); {
		var m download
		if err := d.Decode(&m); err != nil {
			return nil, err
		}
		if m.Error != "" {
			return nil, fmt.Errorf("%s: %s", m.Path, m.Error)
		}
		made = append(made, m)
	}
	if len(made) != len(r.modules) {
		return nil, fmt.Errorf("go mod download reports %d modules, want %d", len(made), len(r.modules))
	}
	return made, nil
}

// writeSums writes the sums of the modules into the go.sum of those that require them,
// and reports whether that changed any.
func (r *release) writeSums(made []download) (changed bool, err error) {
	for _, m := range r.modules {
		name := filepath.Join(r.source, filepath.FromSlash(m.folder), "go.sum")
		before, err := os.ReadFile(name)
		if err != nil && !os.IsNotExist(err) {
			return false, err
		}
		var lines []string
		for line := range strings.Lines(string(before)) {
			if path, _, _ := strings.Cut(line, " "); !isOurs(path) {
				lines = append(lines, line)
			}
		}
		for _, d := range made {
			if slices.Contains(m.requires, d.Path) {
				lines = append(lines, fmt.Sprintf("%s %s %s\n", d.Path, d.Version, d.Sum),
					fmt.Sprintf("%s %s/go.mod %s\n", d.Path, d.Version, d.GoModSum))
			}
		}
		slices.Sort(lines)
		after := []byte(strings.Join(lines, ""))
		if bytes.Equal(before, after) || len(m.requires) == 0 {
			continue
		}
		changed = true
		if err := os.WriteFile(name, after, 0o644); err != nil {
			return false, err
		}
	}
	return changed, nil
}

// writeProxy writes the modules in the form of a module proxy, as "go help goproxy" has it.
func writeProxy(dir string, made []download) error {
	for _, m := range made {
		versions := filepath.Join(dir, filepath.FromSlash(m.Path), "@v")
		if err := os.MkdirAll(versions, 0o755); err != nil {
			return err
		}
		for suffix, from := range map[string]string{".info": m.Info, ".mod": m.GoMod, ".zip": m.Zip} {
			if err := copyFile(filepath.Join(versions, m.Version+suffix), from, 0o644); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(versions, "list"), []byte(m.Version+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}
