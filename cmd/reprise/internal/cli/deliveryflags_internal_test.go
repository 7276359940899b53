package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestFlagTextsNameTheirValue: the name of a flag's value is a word of the flag's text, and
// not something behind it that reads like a heading without a list.
func TestFlagTextsNameTheirValue(t *testing.T) {
	seen := 0
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			seen++
			name, text := pflag.UnquoteUsage(flag)
			if name != "" && strings.Contains(flag.Usage, "`") && strings.HasSuffix(text, ": "+name) {
				t.Errorf("%s --%s %s: %q", cmd.CommandPath(), flag.Name, name, text)
			}
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit((&app{}).root())
	if seen < 50 {
		t.Errorf("%d flags were seen, want more", seen)
	}
}
