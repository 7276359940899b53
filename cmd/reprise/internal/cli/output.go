package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"unicode/utf16"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/choice"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/yamltext"
)

// outputVariable sets the form of all commands that have --output.
const outputVariable = "REPRISE_OUTPUT"

// form is how a command prints what it has found or done.
type form int

const (
	asText form = iota // a table or sentences, for people
	asJSON             // a line for each value
	asYAML             // a document for each value
)

// outputFlags choose between text for people and JSON or YAML for programs.
type outputFlags struct{ form choice.Value }

func (f *outputFlags) register(flags *pflag.FlagSet) {
	f.form = choice.Of("table", "json", "yaml")
	flags.VarP(&f.form, "output", "o", "print a table, a line of JSON for each, or YAML ("+outputVariable+" sets it for all commands)")
	words := map[string]string{"true": "json", "false": "table"}
	keepFormer(flags, "json", "output", wordOf{&f.form, words, "bool"}, "-o json, or -o table for --json=false").NoOptDefVal = "true"
}

// as returns the form that is chosen.
func (f *outputFlags) as() form { return form(max(0, f.form.Index())) }

// reportFlags choose the form of a report, which is one document.
type reportFlags struct{ form choice.Value }

// register adds the flag. A report may have more forms than what other commands print.
func (f *reportFlags) register(flags *pflag.FlagSet, more ...string) {
	f.form = choice.Of(append([]string{"table", "json", "yaml"}, more...)...)
	flags.VarP(&f.form, "output", "o", "print tables, or the report in a form for programs ("+outputVariable+" sets it for all commands)")
	keepFormer(flags, "format", "output", wordOf{&f.form, map[string]string{"text": "table"}, f.form.Type()}, "-o")
}

// renderings are the forms of a report by their names. YAML is the JSON written in another way.
type renderings map[string]func() ([]byte, error)

// printReport prints a report in the form that is chosen.
func (a *app) printReport(f *reportFlags, as renderings) error {
	name := f.form.String()
	render := as[name]
	if name == "yaml" {
		render = as["json"]
	}
	text, err := render()
	if err == nil && name == "yaml" {
		text, err = yamlDocument(text)
	}
	if err == nil {
		_, err = a.stdout.Write(text)
	}
	return err
}

// prepare reads the former spellings that are given and, where --output is not, the form from the environment.
func prepare(cmd *cobra.Command, _ []string) error {
	if err := readFormer(cmd); err != nil {
		return err
	}
	output := cmd.Flags().Lookup("output")
	value := os.Getenv(outputVariable)
	if output == nil || output.Changed || value == "" {
		return nil
	}
	if err := cmd.Flags().Set("output", value); err != nil {
		return usage(fmt.Errorf("%s: %w", outputVariable, err))
	}
	output.Changed = false // for a command that has one form only
	return nil
}

// printTable prints a table that fits the terminal.
func (a *app) printTable(t operate.Table) {
	fmt.Fprint(a.stdout, t.Text(a.width()))
}

// width is that of the terminal; 80 if the output is not one.
func (a *app) width() int { return terminal.New(a.stdout.file, os.Getenv).Width() }

// printValue prints v in one of the forms for programs.
func (a *app) printValue(as form, v any) error {
	text, err := jsonLine(v)
	if err == nil && as == asYAML {
		text, err = yamlDocument(text)
	}
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
	return []byte(escaped(strings.TrimSuffix(b.String(), "\n"), func(r rune) string {
		if r > 0xffff {
			high, low := utf16.EncodeRune(r)
			return fmt.Sprintf(`\u%04x\u%04x`, high, low)
		}
		return fmt.Sprintf(`\u%04x`, r)
	}) + "\n"), nil
}

// escaped returns s, whose characters that could control a terminal are replaced.
func escaped(s string, escape func(rune) string) string {
	var safe strings.Builder
	for _, r := range s {
		if terminal.Safe(r) {
			safe.WriteRune(r)
		} else {
			safe.WriteString(escape(r))
		}
	}
	return safe.String()
}

// yamlDocument returns a line of JSON as a document of YAML. Characters that could control a terminal are escaped.
func yamlDocument(line []byte) ([]byte, error) {
	text, err := yamltext.FromJSON(line)
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
