package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/cli"
)

// writeManual writes a manual page for each command, and completions for four shells.
func (r *release) writeManual(context.Context) error {
	r.manual = filepath.Join(r.work, "manual")
	pages, completions := filepath.Join(r.manual, "man1"), filepath.Join(r.manual, "completions")
	for _, dir := range []string{pages, completions} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	root := cli.Commands()
	for _, write := range []struct {
		name string
		to   func(name string) error
	}{
		{"reprise.bash", func(name string) error { return root.GenBashCompletionFileV2(name, true) }},
		{"_reprise", root.GenZshCompletionFile},
		{"reprise.fish", func(name string) error { return root.GenFishCompletionFile(name, true) }},
		{"reprise.ps1", root.GenPowerShellCompletionFileWithDesc},
	} {
		if err := write.to(filepath.Join(completions, write.name)); err != nil {
			return err
		}
	}
	root.Long += "\n\n" + cli.ExitCodes()
	asMarkdown(root)
	made := r.made.UTC()
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Date: &made, Source: "reprise " + r.version, Manual: "Reprise"}, pages)
}

// asMarkdown converts the help of all commands from terminal text to Markdown, from which
// cobra makes manual pages. Indented lines, such as tables, stay as they are.
func asMarkdown(cmd *cobra.Command) {
	cmd.DisableAutoGenTag = true
	cmd.Long = markdown(cmd.Long)
	for _, sub := range cmd.Commands() {
		asMarkdown(sub)
	}
}

// special are the characters that mean something in Markdown.
var special = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `_`, `\_`, "`", "\\`", `<`, `\<`, `[`, `\[`)

func markdown(text string) string {
	var b strings.Builder
	indented := false
	for line := range strings.Lines(text) {
		if code := strings.HasPrefix(line, "  "); code {
			if !indented {
				b.WriteString("\n") // a block begins after an empty line
			}
			indented = true
			b.WriteString("    " + strings.TrimPrefix(line, "  "))
			continue
		}
		if indented && strings.TrimSpace(line) != "" {
			b.WriteString("\n")
		}
		indented = indented && strings.TrimSpace(line) == ""
		b.WriteString(special.Replace(line))
	}
	return b.String()
}
