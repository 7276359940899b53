package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// yamlDocument returns a line of JSON as a document of YAML: mappings and lists in block style, in the same order.
// Strings stay between double quotes, so that none is taken for a number, a date or a boolean, and characters that could
// control a terminal stay escaped.
func yamlDocument(line []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	var b bytes.Buffer
	b.WriteString("---")
	if err := yamlValue(&b, decoder, 0, false); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// yamlValue writes the next value of decoder after a key, a dash or the begin of the document. inList: after a dash, the
// first key of a mapping follows on its line.
func yamlValue(b *bytes.Buffer, decoder *json.Decoder, indent int, inList bool) error {
	token, err := decoder.Token()
	if err != nil {
		return err
	}
	open, nested := token.(json.Delim)
	if !nested {
		fmt.Fprintf(b, " %s\n", yamlScalar(token))
		return nil
	}
	if !decoder.More() {
		_, err = decoder.Token()
		fmt.Fprintf(b, " %s\n", map[json.Delim]string{'{': "{}", '[': "[]"}[open])
		return err
	}
	for first := true; decoder.More(); first = false {
		switch {
		case first && inList:
			b.WriteString(" ")
		case first:
			b.WriteString("\n")
			fallthrough
		default:
			b.WriteString(strings.Repeat("  ", indent))
		}
		if open == '[' {
			b.WriteString("-")
			err = yamlValue(b, decoder, indent+1, true)
		} else if token, err = decoder.Token(); err == nil {
			fmt.Fprintf(b, "%s:", yamlKey(token.(string))) //nolint:forcetypeassert // a key of JSON is a string
			err = yamlValue(b, decoder, indent+1, false)
		}
		if err != nil {
			return errors.Join(err, io.ErrUnexpectedEOF)
		}
	}
	_, err = decoder.Token()
	return err
}

// plainKey matches keys that need no quotes; words that YAML 1.1 takes for booleans or null do.
var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func yamlKey(key string) string {
	if plainKey.MatchString(key) && !slices.Contains([]string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}, strings.ToLower(key)) {
		return key
	}
	return yamlScalar(key)
}

// yamlScalar returns a value of JSON that is neither a mapping nor a list.
func yamlScalar(v any) string {
	text, ok := v.(string)
	if !ok {
		if v == nil {
			return "null"
		}
		return fmt.Sprint(v)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string has always a form
	return escaped(strings.TrimSuffix(b.String(), "\n"), func(r rune) string {
		if r > 0xffff {
			return fmt.Sprintf(`\U%08x`, r)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}
