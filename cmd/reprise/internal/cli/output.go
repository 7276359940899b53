package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"unicode/utf16"

	"github.com/spf13/pflag"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// outputFlags choose between a table for people and JSON for programs.
type outputFlags struct {
	json  bool
	flags *pflag.FlagSet
}

func (f *outputFlags) register(flags *pflag.FlagSet) {
	f.flags = flags
	flags.BoolVar(&f.json, "json", false, "print a line of JSON for each; =false: a table (default: JSON, unless the output is a terminal)")
}

// asJSON reports whether JSON is to be printed.
func (f *outputFlags) asJSON(a *app) bool {
	if f.flags != nil && f.flags.Changed("json") {
		return f.json
	}
	return !terminal.Is(a.stdout.file)
}

// printTable prints a table that fits the terminal.
func (a *app) printTable(t operate.Table) {
	fmt.Fprint(a.stdout, t.Text(a.width()))
}

// width is that of the terminal; 80 if the output is not one.
func (a *app) width() int { return terminal.New(a.stdout.file, os.Getenv).Width() }

// printJSON prints v on one line.
func (a *app) printJSON(v any) error {
	text, err := jsonLine(v)
	if err == nil {
		_, err = a.stdout.Write(text)
	}
	return err
}

// jsonLine is v as a line of JSON. Characters that could control a terminal are
// escaped as JSON does it, so that reading it back returns the same text.
func jsonLine(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, err
	}
	var safe strings.Builder
	for _, r := range strings.TrimSuffix(b.String(), "\n") {
		switch {
		case terminal.Safe(r):
			safe.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&safe, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&safe, `\u%04x`, r)
		}
	}
	return []byte(safe.String() + "\n"), nil
}
