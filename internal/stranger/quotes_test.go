package stranger_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestChecksQuoteWhatIsPromised: each check names the sentences that it holds a record against, as they are on their
// pages and in the doc comments: one that is changed there is thought about here.
func TestChecksQuoteWhatIsPromised(t *testing.T) {
	quote := regexp.MustCompile(`(?:([\w.]+): )?"([^"]+)"`)
	texts := make(map[string]string) // by their patterns
	for _, c := range checks {
		place, quotes := "", quote.FindAllStringSubmatch(c.says, -1)
		if len(quotes) == 0 {
			t.Errorf("%q quotes nothing", c.name)
		}
		for _, q := range quotes {
			if q[1] != "" {
				place = q[1]
			}
			at := 0
			patterns := whereIs(place)
			text, read := texts[patterns]
			if !read {
				text = promised(t, patterns)
				texts[patterns] = text
			}
			for part := range strings.SplitSeq(q[2], " ... ") {
				next := strings.Index(text[at:], part)
				if next < 0 {
					t.Errorf("%q quotes %s: %q, which is not there: quote it as it is now, or correct the check", c.name, place, part)
					break
				}
				at += next + len(part)
			}
		}
	}
}

var (
	markup = regexp.MustCompile("`|\\*\\*|\\[|\\]\\([^)]*\\)|\\]")
	spaces = regexp.MustCompile(`\s+`)
)

// whereIs returns patterns of the files of a page; of the library's, if place is something that it declares.
func whereIs(place string) string {
	if page, ok := strings.CutSuffix(place, ".md"); ok {
		return "../../docs/" + page + ".md"
	}
	if place == "README" {
		return "../../README.md"
	}
	return "../../*.go ../../repriselambda/*.go"
}

// promised returns the text of pages, or of doc comments, without markup and ends of lines.
func promised(t *testing.T, patterns string) string {
	t.Helper()
	var all strings.Builder
	for pattern := range strings.FieldsSeq(patterns) {
		files, _ := filepath.Glob(pattern) // the pattern is good
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				if strings.HasSuffix(file, ".go") {
					_, line, _ = strings.Cut(line, "// ")
				}
				all.WriteString(strings.TrimSpace(line) + " ")
			}
		}
	}
	return spaces.ReplaceAllString(markup.ReplaceAllString(all.String(), ""), " ")
}
