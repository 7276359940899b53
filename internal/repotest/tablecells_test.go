package repotest

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// linkTarget matches what a link's text does not show.
var linkTarget = regexp.MustCompile(`\]\([^)]*\)`)

// TestTableCellsAreShort checks that a table is read at a glance: a cell that needs more words is a
// paragraph, and belongs below the table, or into two rows.
func TestTableCellsAreShort(t *testing.T) {
	const most = 40
	out, err := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md").Output()
	if err != nil {
		t.Skipf("skipped: git cannot list the pages: %v", err)
	}
	for page := range strings.FieldsSeq(string(out)) {
		if strings.Contains(page, "testdata") {
			continue // what the program prints
		}
		for i, line := range strings.Split(readPage(t, page), "\n") {
			for _, cell := range tableCells(line) {
				words := len(strings.Fields(linkTarget.ReplaceAllLiteralString(cell, "]")))
				if words > most {
					t.Errorf("%s:%d has a cell of %d words, want %d at most: %s", page, i+1, words, most, cell)
				}
			}
		}
	}
}

// tableCells returns the cells of a row of a Markdown table; other lines have none.
func tableCells(line string) []string {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "|") {
		return nil
	}
	const escaped = "\x00"
	cells := strings.Split(strings.ReplaceAll(line, `\|`, escaped), "|")
	for i, cell := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(cell, escaped, "|"))
	}
	return cells[1:]
}
