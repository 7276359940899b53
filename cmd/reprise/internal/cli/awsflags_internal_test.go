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
	var clients []string
	for _, commands := range texts["endpoint"] {
		clients = append(clients, commands...)
	}
	if n := len(texts["endpoint"]); n != 1 || len(clients) < 5 {
		t.Errorf("--endpoint has %d texts in %q, want one in five commands or more", n, clients)
	}
	for text, commands := range texts["region"] {
		slices.Sort(commands)
		if slices.Contains(commands, clients[0]) {
			for _, client := range clients {
				if !slices.Contains(commands, client) {
					t.Errorf("%s has --endpoint, and --region with another text than %q", client, text)
				}
			}
		} else if want := []string{"reprise lambda up", "reprise serve", "reprise up"}; !slices.Equal(commands, want) {
			t.Errorf("--region has the text %q in %q, want it in %q", text, commands, want)
		}
	}
	if n := len(texts["region"]); n != 2 {
		t.Errorf("--region has %d texts, want one for clients and one for servers", n)
	}
}
