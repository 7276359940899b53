package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// formerOf marks a flag by which an earlier version called another. Its values are the name of the other, which may
// be none, and what to use.
const formerOf = "reprise_former_of"

// keepFormer has commands take a former spelling of a flag for another release: it sets value, and a line says what
// to use. now is the flag's present name, or empty.
func keepFormer(flags *pflag.FlagSet, former, now string, value pflag.Value, use string) *pflag.Flag {
	f := flags.VarPF(value, former, "", "")
	markFormer(f, now, use)
	return f
}

// markFormer makes f a former spelling.
func markFormer(f *pflag.Flag, now, use string) {
	f.Hidden = true
	f.Annotations = map[string][]string{formerOf: {now, use}}
}

// rename keeps the former name of a flag.
func rename(flags *pflag.FlagSet, former, now string) {
	f := flags.Lookup(now)
	keepFormer(flags, former, now, f.Value, "--"+now).NoOptDefVal = f.NoOptDefVal
}

// readFormer says what replaces the former spellings that were given, and refuses one beside its present name.
func readFormer(cmd *cobra.Command) (err error) {
	flags := cmd.Flags()
	flags.Visit(func(f *pflag.Flag) {
		former := f.Annotations[formerOf]
		if former == nil || err != nil {
			return
		}
		if now := flags.Lookup(former[0]); now != nil {
			if now.Changed {
				err = usage(fmt.Errorf("--%s and --%s are given: leave --%s out", now.Name, f.Name, f.Name))
				return
			}
			now.Changed = true
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "reprise: --%s will go: use %s\n", f.Name, former[1])
	})
	return err
}

// wordOf is a former spelling of a flag of one of a few words.
type wordOf struct {
	pflag.Value
	words map[string]string // former words, and the present ones
	kind  string
}

func (w wordOf) Type() string { return w.kind }

func (w wordOf) Set(word string) error {
	if now, ok := w.words[word]; ok {
		word = now
	}
	return w.Value.Set(word)
}
