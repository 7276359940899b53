//go:build unix

package main_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	testName = regexp.MustCompile(`\b(?:Test|Fuzz|Example)[A-Z]\w*`)
	// A link that is named or titled for a test: [`TestX`](x_test.go), or
	// [yes](x_test.go "TestX").
	testLink = regexp.MustCompile("\\[`(\\w+)`\\]\\(([^) ]+_test\\.go)\\)|\\[[^\\]]*\\]\\(([^) ]+_test\\.go) \"(\\w+)\"\\)")
)

// linkedTests checks that the tests to which a line links are in the files to
// which the links lead, and returns how many there are.
func linkedTests(t *testing.T, page, line string) int {
	t.Helper()
	links := testLink.FindAllStringSubmatch(line, -1)
	for _, m := range links {
		name, file := m[1]+m[4], m[2]+m[3]
		source, err := os.ReadFile(filepath.Join(root, filepath.Dir(page), file))
		if err != nil {
			t.Errorf("%s: the file of %s: %v", page, name, err)
			continue
		}
		if !strings.Contains(string(source), "\nfunc "+name+"(") {
			t.Errorf("%s links to %s in %s, where it is not: correct the link, or the name", page, name, file)
		}
	}
	return len(links)
}

// linesOf returns the lines of a page.
func linesOf(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}

// TestEveryPromiseHasItsTest: the pages of promises, and of attacks, link a test in every line of
// their tables; the test fails for lines without one.
func TestEveryPromiseHasItsTest(t *testing.T) {
	for name, fewest := range map[string]int{"README.md": 6, "docs/promises.md": 50, "docs/security.md": 30} {
		rows, of := 0, false
		for _, line := range linesOf(t, name) {
			linked := linkedTests(t, name, line)
			if named := len(testName.FindAllString(line, -1)); named != linked {
				t.Errorf("%s names %d tests and links to %d in %q", name, named, linked, line)
			}
			if strings.Contains(line, "| shown by |") {
				of = true // a table of promises begins
				continue
			}
			cells := strings.Split(line, "|")
			of = of && len(cells) >= 4
			if !of || strings.HasPrefix(cells[1], "---") || strings.TrimSpace(cells[2]) == "" && strings.Contains(cells[1], "**") {
				continue // not of such a table, or a heading in it
			}
			rows++
			if linked == 0 && !strings.Contains(line, "*not yet*") {
				t.Errorf("%s shows no test for %q, and does not say that it is not yet there", name, line)
			}
		}
		if rows < fewest {
			t.Errorf("%s has %d promises, want %d: has the form of its tables changed?", name, rows, fewest)
		}
	}
}

// TestEveryAttackIsOnItsPage: docs/security.md lists every attack that is in the tests.
func TestEveryAttackIsOnItsPage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/security.md"))
	if err != nil {
		t.Fatal(err)
	}
	attack := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)Attack\w*)\(`)
	found := 0
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, m := range attack.FindAllSubmatch(source, -1) {
			if found++; !bytes.Contains(page, append(append([]byte("`"), m[1]...), '`')) {
				t.Errorf("docs/security.md does not name %s of %s: add it to a line there", m[1], path)
			}
		}
		return err
	})
	if err != nil || found < 50 {
		t.Errorf("%d attacks found, want 50 at least: %v", found, err)
	}
}

// TestEveryYesOfTheComparisonHasItsTest: every yes for Reprise in a comparison with others links
// to the test that shows it.
func TestEveryYesOfTheComparisonHasItsTest(t *testing.T) {
	for name, fewest := range map[string]int{"README.md": 10, "docs/compare.md": 20} {
		compared := 0
		of := false
		for _, line := range linesOf(t, name) {
			if strings.HasPrefix(line, "|") && strings.Contains(line, "| Reprise |") {
				of = true
				continue
			}
			if of = of && strings.HasPrefix(line, "|"); !of || strings.HasPrefix(line, "|---") {
				continue
			}
			compared++
			ours := strings.Split(line, "|")[2]
			if said := strings.TrimSpace(ours); linkedTests(t, name, ours) == 0 && !strings.HasPrefix(said, "no") {
				t.Errorf("%s links to no test in %q", name, ours)
			}
		}
		if compared < fewest {
			t.Errorf("%s compares %d things, want %d: has the form of its table changed?", name, compared, fewest)
		}
	}
}
