//go:build unix

package main_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the project's folder, seen from this package.
const root = "../.."

// block is a fenced block of a page.
type block struct {
	page string
	line int
	info string // what stands behind the fence: "sh", "sh parsed", "go", ...
	text string
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

// pages returns the paths of all Markdown pages of the project.
func pages(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "*.md").Output()
	if err != nil {
		t.Skipf("skipped: git cannot list the pages: %v", err)
	}
	return strings.Fields(string(out))
}

// blocks reads the fenced blocks of a page.
func blocks(t *testing.T, page string) []block {
	t.Helper()
	f, err := os.Open(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var found []block
	var open *block
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		switch {
		case !strings.HasPrefix(line, "```"):
			if open != nil {
				open.text += line + "\n"
			}
		case open == nil:
			open = &block{page: page, line: n, info: strings.TrimPrefix(line, "```")}
		default:
			found = append(found, *open)
			open = nil
		}
	}
	if open != nil {
		t.Errorf("%v: the block is not closed", *open)
	}
	return found
}

// TestLinesOfThePages: prose is wrapped, so that it can be read beside something, and a change of a
// sentence is a change of few lines. Tables, code and HTML are as long as they are.
func TestLinesOfThePages(t *testing.T) {
	const longest = 120
	for _, page := range pages(t) {
		if strings.Contains(page, "testdata") {
			continue // what the program prints
		}
		code := false
		for i, line := range linesOf(t, page) {
			bare := strings.TrimSpace(line)
			if strings.HasPrefix(bare, "```") {
				code = !code
			}
			if n := len([]rune(line)); n > longest && !code && !strings.HasPrefix(bare, "|") && !strings.HasPrefix(bare, "<") {
				t.Errorf("%s:%d has %d characters, want %d at most: wrap it", page, i+1, n, longest)
			}
		}
	}
}

// TestCommandsOfThePages runs every command of a block marked "sh", and parses
// those of a block marked "sh parsed": they start something that does not end, or
// this very test. Parsing asks the program itself: a command line that it would
// refuse is refused with --help too.
func TestCommandsOfThePages(t *testing.T) {
	ran := 0
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			if b.info != "sh" && b.info != "sh parsed" {
				continue
			}
			for _, command := range commands(b.text) {
				ran++
				t.Run(b.String(), func(t *testing.T) {
					t.Parallel()
					checkCommand(t, b, command)
				})
			}
		}
	}
	if ran == 0 {
		t.Error("no command found on any page")
	}
}

// commands splits a block into its commands: lines, without comments, with
// continued lines joined.
func commands(text string) []string {
	var found []string
	for line := range strings.Lines(strings.ReplaceAll(text, "\\\n", " ")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			found = append(found, line)
		}
	}
	return found
}

var (
	isReprise = regexp.MustCompile(`^(go run \./cmd/reprise|reprise) `)
	redirect  = regexp.MustCompile(` > \S+$`) // of what is only parsed, into the repository
)

func checkCommand(t *testing.T, b block, command string) {
	switch {
	case strings.HasPrefix(command, "make "):
		if b.info != "sh parsed" {
			t.Fatalf("make runs this test: mark the block of %q as \"sh parsed\"", command)
		}
		checkTarget(t, strings.Fields(command)[1])
	case isReprise.MatchString(command):
		line := isReprise.ReplaceAllLiteralString(command, `"$REPRISE" `)
		if b.info == "sh parsed" {
			line = redirect.ReplaceAllLiteralString(strings.TrimSuffix(strings.TrimSpace(line), "&"), "") + " --help"
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
		cmd.Dir = root
		cmd.Env = environment("REPRISE=" + program(t))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	case b.info == "sh parsed":
		if out, err := exec.Command("sh", "-n", "-c", command).CombinedOutput(); err != nil {
			t.Errorf("%s: not a shell command: %v\n%s", command, err, out)
		}
	default:
		t.Errorf("%q is no command of the project: mark its block as \"sh parsed\", or teach this test to run it", command)
	}
}

// checkTarget checks that the Makefile has a target.
func checkTarget(t *testing.T, target string) {
	t.Helper()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(target) + `:`).Match(makefile) {
		t.Errorf("the Makefile has no target %s", target)
	}
}

// TestGoOfThePages: Go code on a page is code of the project, which is compiled
// and, in an example, run. Indentation aside it has to stand there to the letter.
func TestGoOfThePages(t *testing.T) {
	var sources []string
	out, err := exec.Command("git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "*_test.go").Output()
	if err != nil {
		t.Skipf("skipped: git cannot list the tests: %v", err)
	}
	for name := range strings.FieldsSeq(string(out)) {
		source, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, unindented(string(source)))
	}
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			if b.info != "go" || isProgram(b) {
				continue
			}
			code := unindented(b.text)
			if !slices.ContainsFunc(sources, func(source string) bool { return strings.Contains(source, code) }) {
				t.Errorf("%v: the code is in no test or example: put it into one, or correct the page", b)
			}
		}
	}
}

// isProgram reports whether a block is a whole program: TestProgramsOfThePages runs it.
func isProgram(b block) bool {
	return b.info == "go" && strings.HasPrefix(b.text, "package main\n")
}

// unindented is code without the white space at the ends of its lines.
func unindented(code string) string {
	var b strings.Builder
	for line := range strings.Lines(code) {
		b.WriteString(strings.TrimSpace(line) + "\n")
	}
	return b.String()
}

// TestLinksOfThePages: a link to a file of the project leads to one.
func TestLinksOfThePages(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#: ]+)(#[^)]*)?\)`)
	for _, page := range pages(t) {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			}
		}
	}
}
