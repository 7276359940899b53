package cli

import (
	"slices"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestAWSFlagsAreDeclaredOnce: --endpoint and --region have one text in every command that
// calls SQS or Lambda, and --region another in every command that runs a server.
func TestAWSFlagsAreDeclaredOnce(t *testing.T) {
	texts := make(map[string]map[string][]string) // by flag and text the commands
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if texts[flag.Name] == nil {
				texts[flag.Name] = make(map[string][]string)
			}
			texts[flag.Name][flag.Usage] = append(texts[flag.Name][flag.Usage], cmd.CommandPath())
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit((&app{}).root())
	clients := []string{"reprise lambda invoke", "reprise lambda send", "reprise redrive", "reprise run", "reprise send"}
	for name, want := range map[string][][]string{
		"endpoint": {clients},
		"region":   {clients, {"reprise lambda up", "reprise serve", "reprise up"}},
	} {
		var got [][]string
		for _, commands := range texts[name] {
			slices.Sort(commands)
			got = append(got, commands)
		}
		slices.SortFunc(got, func(a, b []string) int { return len(b) - len(a) })
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("the texts of --%s are those of %q, want %q", name, got, want)
		}
	}
}
