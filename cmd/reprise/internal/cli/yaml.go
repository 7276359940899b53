package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// yamlDocument returns a line of JSON as a document of YAML, in the same order. Strings stay between double quotes, so
// that none is taken for a number, a date or a boolean. Characters that could control a terminal are escaped.
func yamlDocument(line []byte) ([]byte, error) {
	var value any
	if err := yaml.UnmarshalWithOptions(line, &value, yaml.UseOrderedMap()); err != nil { // JSON is YAML
		return nil, err
	}
	quoted := yaml.CustomMarshaler(func(s string) ([]byte, error) { return []byte(strconv.Quote(s)), nil })
	text, err := yaml.MarshalWithOptions(value, yaml.IndentSequence(true), quoted)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString("---\n")
	for l := range strings.Lines(string(text)) {
		b.WriteString(escaped(strings.TrimSuffix(l, "\n"), func(r rune) string { return fmt.Sprintf(`\U%08x`, r) }) + "\n")
	}
	return []byte(b.String()), nil
}
