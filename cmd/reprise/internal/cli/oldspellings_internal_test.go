package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestReadFormer: a former spelling sets its flag as if that had been given, with a line about it.
func TestReadFormer(t *testing.T) {
	for _, test := range []struct {
		args        []string
		value       string
		changed     bool
		said, fails string
	}{
		{nil, "", false, "", ""},
		{[]string{"--retry", "a"}, "a", true, "", ""},
		{[]string{"--policy", "a"}, "a", true, "reprise: --policy will go: use --retry\n", ""},
		{[]string{"--policy", "a", "--retry", "b"}, "b", true, "", "--retry and --policy are given: leave --policy out"},
	} {
		var said strings.Builder
		var policy string
		cmd := new(cobra.Command)
		cmd.SetErr(&said)
		cmd.Flags().StringVar(&policy, "retry", "", "")
		rename(cmd.Flags(), "policy", "retry")
		if err := cmd.ParseFlags(test.args); err != nil {
			t.Fatal(err)
		}
		err := prepare(cmd, nil)
		if failed := err != nil; failed != (test.fails != "") || failed && (err.Error() != test.fails || exitCodeOf(err) != exitUsage) {
			t.Errorf("%q: error %v, want %q", test.args, err, test.fails)
		}
		if policy != test.value || cmd.Flags().Changed("retry") != test.changed || said.String() != test.said {
			t.Errorf("%q: %q, changed %t, says %q; want %q, %t, %q", test.args, policy, cmd.Flags().Changed("retry"), said.String(), test.value, test.changed, test.said)
		}
		if f := cmd.Flags().Lookup("policy"); !f.Hidden {
			t.Error("the former spelling is shown")
		}
	}
}
