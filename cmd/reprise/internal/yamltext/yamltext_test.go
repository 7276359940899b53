package yamltext_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/yamltext"
)

// TestDepth: MaxDepth levels are parsed and one more is not, whatever they are of, and
// the error has the place of the first that is too deep.
func TestDepth(t *testing.T) {
	for name, level := range map[string][2]string{
		"lists":    {"[", "]"},
		"mappings": {"{a: ", "}"},
		"dashes":   {"- ", ""},
	} {
		nested := func(depth int) []byte {
			return []byte("k:\n  " + strings.Repeat(level[0], depth) + "x" + strings.Repeat(level[1], depth))
		}
		if _, err := yamltext.Parse(nested(yamltext.MaxDepth)); err != nil {
			t.Errorf("%s, %d deep: %v", name, yamltext.MaxDepth, err)
		}
		_, err := yamltext.Parse(nested(yamltext.MaxDepth + 1))
		deep, ok := errors.AsType[*yamltext.DepthError](err)
		if column := 3 + yamltext.MaxDepth*len(level[0]); !ok || deep.Position.Line != 2 || deep.Position.Column != column {
			t.Errorf("%s, one more: %v, want a DepthError of line 2, column %d", name, err, column)
		}
	}
}

// TestNoNesting: brackets in texts and comments, and many beside each other, are no
// nesting.
func TestNoNesting(t *testing.T) {
	many := strings.Repeat("[{", 500)
	for name, text := range map[string]string{
		"in quotes":        "a: '" + many + "'",
		"in double quotes": `a: "\"` + many + `"`,
		"in plain text":    "a: b " + many,
		"in a block":       "a: |\n  " + many + "\n  - - -",
		"in a comment":     "a: b # " + many,
		"beside":           "a: [" + strings.Repeat("[], {}, ", 500) + "]",
		"in lines":         "a:\n" + strings.Repeat("- - b\n", 500),
		"further right":    lists(150),
	} {
		if _, err := yamltext.Parse([]byte("\ufeff" + text + "\nend: 1\n")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// lists are lists in a mapping, each indented further than the one before it.
func lists(number int) string {
	var b strings.Builder
	for i := range number {
		fmt.Fprintf(&b, "k%d:\n%s- a\n", i, strings.Repeat(" ", i+2))
	}
	return b.String()
}
