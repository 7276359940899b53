package yamltext

import (
	"strconv"

	"github.com/goccy/go-yaml"
)

// FromJSON returns a value of JSON as YAML, in the same order. Strings stay between double quotes, so that none is taken
// for a number, a date or a boolean.
func FromJSON(text []byte) ([]byte, error) {
	var value any
	if err := yaml.UnmarshalWithOptions(text, &value, yaml.UseOrderedMap()); err != nil { // JSON is YAML
		return nil, err
	}
	quoted := yaml.CustomMarshaler(func(s string) ([]byte, error) { return []byte(strconv.Quote(s)), nil })
	return yaml.MarshalWithOptions(value, yaml.IndentSequence(true), quoted)
}
