package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestExamplesCallTheirCommand: the first example of a command's help calls it by the
// path at which it stands. (send stands at two.)
func TestExamplesCallTheirCommand(t *testing.T) {
	seen := 0
	var check func(cmd *cobra.Command)
	check = func(cmd *cobra.Command) {
		if first, _, _ := strings.Cut(strings.TrimSpace(cmd.Example), "\n"); first != "" {
			seen++
			if !strings.HasPrefix(first+" ", cmd.CommandPath()+" ") {
				t.Errorf("the help of %s begins its examples with %q", cmd.CommandPath(), first)
			}
		}
		for _, sub := range cmd.Commands() {
			check(sub)
		}
	}
	check(new(app).root())
	if seen < 5 {
		t.Errorf("%d commands have examples, want more", seen)
	}
}
