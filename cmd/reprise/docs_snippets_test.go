//go:build unix

package main_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestFilesOfThePages: YAML on a page can be parsed, and what is a file of the
// program's own starts a server.
func TestFilesOfThePages(t *testing.T) {
	flags := map[string]string{"# reprise.yaml": "--config", "# faults.yaml": "--faults"}
	seen := make(map[string]int)
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			if b.info != "yaml" {
				continue
			}
			var content map[string]any
			if err := yaml.UnmarshalWithOptions([]byte(b.text), &content, yaml.Strict()); err != nil {
				t.Errorf("%v: %v", b, err)
			}
			first, _, _ := strings.Cut(b.text, "\n")
			if flag := flags[first]; flag != "" {
				seen[flag]++
				serve(t, "--memory", flag, written(t, "page.yaml", b.text))
			}
		}
	}
	if seen["--config"] == 0 || seen["--faults"] == 0 {
		t.Errorf("the pages have %v of the program's files, want some of each", seen)
	}
}

// TestSnippetsOfThePages: code in other languages can be parsed, where there is
// something that does.
func TestSnippetsOfThePages(t *testing.T) {
	parsers := map[string][]string{
		"python":     {"python3", "-c", "import ast, sys; ast.parse(sys.stdin.read())"},
		"javascript": {"node", "--input-type=module", "--check", "-"},
		"java":       nil,
		"csharp":     nil,
	}
	seen := make(map[string]bool)
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			parser, known := parsers[b.info]
			if !known {
				continue
			}
			seen[b.info] = true
			t.Run(b.info+" "+b.String(), func(t *testing.T) {
				if parser == nil {
					t.Skipf("skipped: the project parses no %s", b.info)
				}
				if _, err := exec.LookPath(parser[0]); err != nil {
					t.Skipf("skipped: %s is not installed", parser[0])
				}
				cmd := exec.Command(parser[0], parser[1:]...)
				cmd.Stdin = strings.NewReader(b.text)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v: %v\n%s", b, err, out)
				}
			})
		}
	}
	if len(seen) != len(parsers) {
		t.Errorf("the pages have code in %v, want some in each of the languages", seen)
	}
}
