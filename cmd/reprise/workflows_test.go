//go:build unix

package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestWorkflows: actionlint accepts the workflows, and shellcheck, where it is installed,
// the scripts of the action and of CI.
func TestWorkflows(t *testing.T) {
	t.Parallel()
	t.Run("actionlint", func(t *testing.T) {
		succeeds(t, ".", pinned(t, "actionlint"), "-no-color")
	})
	t.Run("shellcheck", func(t *testing.T) {
		entries, err := os.ReadDir(filepath.Join(root, ".ci"))
		if err != nil || len(entries) < 5 {
			t.Fatalf("there are %v (%v), want the scripts of CI", entries, err)
		}
		args := []string{"-x", "deploy/action/start.sh"} // -x: what a script sources is read, too
		for _, e := range entries {
			args = append(args, ".ci/"+e.Name())
		}
		succeeds(t, ".", installed(t, "shellcheck"), args...)
	})
	t.Run("templates", func(t *testing.T) {
		files, err := filepath.Glob(filepath.Join(root, ".github/ISSUE_TEMPLATE/*.yml"))
		if err != nil || len(files) < 3 {
			t.Fatalf("there are %v (%v), want templates and their configuration", files, err)
		}
		for _, name := range append(files, filepath.Join(root, ".github/dependabot.yml"), filepath.Join(root, "action.yml")) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var content map[string]any
			if err := yaml.UnmarshalWithOptions(text, &content, yaml.Strict()); err != nil || len(content) < 2 {
				t.Errorf("%s has %v: %v", name, content, err)
			}
		}
	})
}

// workflow is what the tests read of one.
type workflow struct {
	Permissions permissions
	Jobs        map[string]struct {
		Permissions permissions
		Steps       []struct{ Uses, Run string }
	}
}

// permissions are those of a job's token: names, or one word for all.
type permissions map[string]string

func (p *permissions) UnmarshalYAML(text []byte) error {
	names := make(map[string]string)
	if err := yaml.Unmarshal(text, &names); err != nil {
		names = map[string]string{"all": strings.TrimSpace(string(text))}
	}
	*p = names
	return nil
}

// writes reports whether one of them permits more than to read.
func (p permissions) writes() bool {
	for _, may := range p {
		if strings.Contains(may, "write") {
			return true
		}
	}
	return false
}

// TestWorkflowsArePinned: whoever moves a tag of an action runs code in our jobs, so each action
// is named by a commit, with its version for those who read and for Dependabot. Only the job
// that publishes a release may write anything, and it runs nothing of the repository.
func TestWorkflowsArePinned(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*"))
	if err != nil || len(files) < 3 {
		t.Fatalf("there are %v (%v), want the workflows", files, err)
	}
	pin := regexp.MustCompile(`^ +(?:- )?uses: [\w-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	pinned := make(map[string]string) // by action
	for _, name := range append(files, filepath.Join(root, "action.yml")) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			_, use, found := strings.Cut(line, "uses: ")
			if !found {
				continue
			}
			if !pin.MatchString(line) {
				t.Errorf("%s:%d: %q is not of the form OWNER/NAME@COMMIT # vVERSION", name, i+1, use)
			}
			action, at, _ := strings.Cut(use, "@")
			if other := pinned[action]; other != "" && other != at {
				t.Errorf("%s:%d: %s is at %s here and at %s elsewhere", name, i+1, action, at, other)
			}
			pinned[action] = at
		}
	}
	if len(pinned) < 5 {
		t.Errorf("found the actions %v only", pinned)
	}

	var writers []string
	for _, name := range files {
		var file workflow
		text, err := os.ReadFile(name)
		if err == nil {
			err = yaml.Unmarshal(text, &file)
		}
		if err != nil || len(file.Jobs) == 0 {
			t.Fatalf("%s has the jobs %v: %v", name, file.Jobs, err)
		}
		if file.Permissions == nil || file.Permissions.writes() {
			t.Errorf("%s gives its jobs %v, want permissions, and none to write", name, file.Permissions)
		}
		for job, content := range file.Jobs {
			if !content.Permissions.writes() {
				continue
			}
			writers = append(writers, filepath.Base(name)+": "+job)
			for _, step := range content.Steps {
				for _, source := range []string{"actions/checkout", "actions/setup-go", "make ", "go run", "go build", "git clone"} {
					if strings.Contains(step.Uses+"\n"+step.Run, source) {
						t.Errorf("the job %s of %s may write, and has a step with %s", job, name, source)
					}
				}
			}
		}
	}
	if want := []string{"release.yml: publish"}; !slices.Equal(writers, want) {
		t.Errorf("these jobs may write: %q, want %q", writers, want)
	}
}
