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

// noParser is the exit code of a parser that has no grammar.
const noParser = 3

// TestSnippetsOfThePages: code in other languages can be parsed, where there is
// something that does. TestSDKsOfThePage runs what it can, all Java among it.
func TestSnippetsOfThePages(t *testing.T) {
	parsers := map[string][]string{
		"python":     {"python3", "-c", "import ast, sys; ast.parse(sys.stdin.read())"},
		"javascript": {"node", "--input-type=module", "--check", "-"},
		"csharp": {"python3", "-c", `
import sys
try:
    import tree_sitter, tree_sitter_c_sharp
except ImportError:
    sys.exit(3)
parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_c_sharp.language()))
if parser.parse(sys.stdin.buffer.read()).root_node.has_error:
    sys.exit("this is not C#")
`},
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
				cmd := exec.Command(installed(t, parser[0]), parser[1:]...)
				cmd.Stdin = strings.NewReader(b.text)
				out, err := cmd.CombinedOutput()
				if cmd.ProcessState.ExitCode() == noParser {
					t.Skipf("skipped: %s has nothing that parses %s (pip install tree-sitter tree-sitter-c-sharp)", parser[0], b.info)
				}
				if err != nil {
					t.Errorf("%v: %v\n%s", b, err, out)
				}
			})
		}
	}
	if len(seen) != len(parsers) {
		t.Errorf("the pages have code in %v, want some in each of the languages", seen)
	}
}
