package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"strings"
	"time"
)

// oldest is the greatest age of a night that permits a release. Searches, tools and known vulnerabilities change.
const oldest = 7 * 24 * time.Hour

// shortest is how long the searches of a night must have been asked to take, to permit a release. In less time most have
// done their first round alone.
const shortest = 2 * time.Hour

// Result is what a night found, as its file has it.
type Result struct {
	Commit  string    // that was checked out
	Changed bool      // files differed from the commit
	Began   time.Time // UTC
	Asked   string    // a duration: how long the searches were to take
	Took    string    // a duration: how long all took
	Start   uint64    // the first seed
	Rows    []Row     // of the searches, then of the checks
}

// Row is what one search or check found.
type Row struct {
	Name    string
	Done    int64    // how many of Unit
	Unit    string   // what is counted; empty for a check
	Seconds float64  // how long it took
	Broke   []string `json:",omitempty"` // what broke: commands that show it, or sentences
	Note    string   `json:",omitempty"` // what a reader has to know of a row in which nothing broke
}

func (r *Result) add(s search, o outcome) {
	r.Rows = append(r.Rows, Row{Name: s.name, Unit: s.unit, Done: o.done, Seconds: o.took.Seconds(), Broke: o.broke, Note: o.note})
}

// broke returns what broke, a line each.
func (r *Result) broke() (lines []string) {
	for _, row := range r.Rows {
		for _, b := range row.Broke {
			lines = append(lines, row.Name+": "+b)
		}
	}
	return lines
}

// table returns the rows as a table of Markdown.
func (r *Result) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "A night of %s on %.12s, %s, seeds from %d; it took %s.\n\n", r.Asked, r.Commit, r.Began.Format(time.DateOnly), r.Start, r.Took)
	b.WriteString("| search | done | time (s) | a second | broke |\n|---|---|---|---|---|\n")
	for _, row := range r.Rows {
		done, rate := "", ""
		if row.Unit != "" {
			done = fmt.Sprintf("%d %s", row.Done, row.Unit)
			if row.Seconds > 0 {
				rate = fmt.Sprintf("%.3g", float64(row.Done)/row.Seconds)
			}
		}
		broke := "nothing"
		switch {
		case len(row.Broke) > 0:
			broke = fmt.Sprintf("%d: %s", len(row.Broke), strings.ReplaceAll(strings.Join(row.Broke, "; "), "|", "\\|"))
		case row.Note != "":
			broke += ", but " + row.Note
		}
		fmt.Fprintf(&b, "| %s | %s | %.0f | %s | %s |\n", row.Name, done, row.Seconds, rate, broke)
	}
	return b.String()
}

func (r *Result) write(file string) error {
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}

const remedy = "run make night"

func read(file string) (*Result, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no %s, the result of a night on this commit: %s", file, remedy)
	}
	if err != nil {
		return nil, err
	}
	var r Result
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%s is no result of a night: %w: %s", file, err, remedy)
	}
	return &r, nil
}

// permits returns why the result does not permit a release of a commit, and which command to run. The commit
// may also be what make release has committed on top of source; that is empty for any other commit.
func (r *Result) permits(commit, source string, now time.Time) error {
	asked, err := time.ParseDuration(r.Asked)
	switch age := now.Sub(r.Began); {
	case r.Commit == "" || len(r.Rows) == 0:
		return fmt.Errorf("it has no searches: %s", remedy)
	case r.Commit != commit && r.Commit != source:
		return fmt.Errorf("the night was on %s, and this is %s: %s", r.Commit, commit, remedy)
	case r.Changed:
		return fmt.Errorf("the night was on files that differ from the commit: commit or remove them, and %s", remedy)
	case err != nil || asked < shortest:
		return fmt.Errorf("the night was to take %q, and at least %s are required: %s", r.Asked, shortest, remedy)
	case age > oldest:
		return fmt.Errorf("the night began on %s, more than %d days ago: %s", r.Began.Format(time.DateOnly), oldest/(24*time.Hour), remedy)
	}
	if broke := r.broke(); len(broke) > 0 {
		return fmt.Errorf("what broke has to be mended first, and then %s:\n%s", remedy, strings.Join(broke, "\n"))
	}
	return nil
}

// checkout returns the commit that is checked out, and whether files that git knows or should know differ from it.
func checkout(ctx context.Context) (commit string, changed bool, err error) {
	commit, err = git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return "", false, err
	}
	status, err := git(ctx, "status", "--porcelain")
	return commit, status != "", err
}

// releaseOf returns the commit that a release was made of, if what is checked out is what make release has committed on
// top of it: commits that change nothing but what modules require. For any other commit it returns "".
func releaseOf(ctx context.Context) string {
	commit := "HEAD"
	for {
		subject, err := git(ctx, "show", "--no-patch", "--format=%s", commit)
		if err != nil {
			return ""
		}
		if !strings.HasPrefix(subject, "release: v") {
			break
		}
		files, err := git(ctx, "diff", "--name-only", commit+"^", commit)
		if err != nil {
			return ""
		}
		for file := range strings.Lines(files) {
			switch name := path.Base(strings.TrimSpace(file)); name {
			case "go.mod", "go.sum", "go.work", "go.work.sum":
			default:
				return ""
			}
		}
		commit += "^"
	}
	if commit == "HEAD" {
		return ""
	}
	source, err := git(ctx, "rev-parse", commit)
	if err != nil {
		return ""
	}
	return source
}

func git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(problem.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
