package cli

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/configfile"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
)

const defaultConfig = "reprise.yaml"

// firstConfig is the file that config init writes.
//
//go:embed reprise.yaml
var firstConfig []byte

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check, show or begin a configuration file",
		Long: `Check, show or begin the file of --config. One file serves three commands: reprise
serve creates its queues, reprise run consumes those that have the key consume, on
AWS or elsewhere, and reprise up does both.

Keys at the top are flags of these commands without their dashes. A queue's consume
has those of reprise run that are about one queue; at the top of the file the same
keys are defaults of all queues. The command line wins, then the environment
(REPRISE_LOG_LEVEL for --log-level), then the file. docs/config.md has all of it.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(
		&cobra.Command{
			Use:   "check [FILE]",
			Short: "Report the first mistake in a file, with its line and column",
			Long: `Report the first mistake in a file (reprise.yaml), with its line and column. Nothing
is called: whether queues and targets exist is seen when they are used.`,
			Example: `  reprise config check reprise.yaml`,
			Args:    cobra.MaximumNArgs(1),
			RunE:    run(func(args []string) error { return a.checkConfig(fileArgument(args)) }),
		},
		&cobra.Command{
			Use:   "show [FILE]",
			Short: "Print what a file means, with the environment and the defaults filled in",
			Long: `Print a file (reprise.yaml) as reprise run reads it: each queue with all of its
settings, those of the environment and the defaults included. The output is such
a file too, without faults.`,
			Example: `  reprise config show reprise.yaml
  REPRISE_CONCURRENCY=40 reprise config show reprise.yaml`,
			Args: cobra.MaximumNArgs(1),
			RunE: run(func(args []string) error { return a.showConfig(fileArgument(args)) }),
		},
		&cobra.Command{
			Use:     "init [FILE]",
			Short:   "Write a file to begin with",
			Long:    `Write a file to begin with (reprise.yaml), with comments. One that exists is left alone.`,
			Example: `  reprise config init`,
			Args:    cobra.MaximumNArgs(1),
			RunE:    run(func(args []string) error { return a.beginConfig(fileArgument(args)) }),
		},
		&cobra.Command{
			Use:     "schema",
			Short:   "Print the JSON Schema of the file, for editors",
			Example: `  reprise config schema > reprise.schema.json`,
			Args:    cobra.NoArgs,
			RunE: run(func([]string) error {
				text, err := configfile.Schema(configKeys())
				if err == nil {
					_, err = a.stdout.Write(text)
				}
				return err
			}),
		},
	)
	return cmd
}

func fileArgument(args []string) string {
	if len(args) == 0 {
		return defaultConfig
	}
	return args[0]
}

// understood is a file whose settings have been checked.
type understood struct {
	configfile.Config
	program []*pflag.Flag // settings of the whole program that were given
	queues  []*consumed
}

// understand reads a file as the commands that use it do.
func understand(file string) (u understood, err error) {
	if u.Config, err = parseConfig(file); err != nil {
		return u, usage(err)
	}
	consume := consumeFlags{config: file}
	var fromEnvironment []*pflag.Flag
	for _, cmd := range []*cobra.Command{new(app).serve(), new(app).run()} {
		before, err := given(cmd)
		if err != nil {
			return u, err
		}
		if err := applyConfig(cmd, u.Config, before); err != nil {
			return u, usage(err)
		}
		fromEnvironment = before // run's, which are those of queues too
		u.program = append(u.program, programFlags(cmd)...)
	}
	for _, q := range u.Queues {
		if q.Consumed {
			u.queues, err = consume.queues(fromEnvironment, u.Config)
			return u, err
		}
	}
	return u, nil
}

// programFlags returns the flags of cmd that are set and are not about one queue.
func programFlags(cmd *cobra.Command) (found []*pflag.Flag) {
	_, consume := configFlags()
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && consume.Lookup(flag.Name) == nil {
			found = append(found, flag)
		}
	})
	return found
}

func (a *app) checkConfig(file string) error {
	u, err := understand(file)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "%s: no mistakes: %s, %d consumed\n", file, plural.Of(len(u.Queues), "queue"), len(u.queues))
	return nil
}

func (a *app) showConfig(file string) error {
	u, err := understand(file)
	if err != nil {
		return err
	}
	var top []configfile.Entry
	seen := make(map[string]bool)
	for _, flag := range u.program {
		if !seen[flag.Name] {
			top = append(top, entry(flag.Name, flag.Value))
		}
		seen[flag.Name] = true
	}
	var queues []configfile.QueueEntries
	next := u.queues
	for _, q := range u.Queues {
		entries := configfile.QueueEntries{Queue: q.Queue}
		if q.Consumed {
			for _, v := range next[0].Values() {
				entries.Consume = append(entries.Consume, entry(v.Name, v.Value))
			}
			next = next[1:]
		}
		queues = append(queues, entries)
	}
	text, err := configfile.Format(top, u.Pools, queues)
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(text)
	return err
}

// entry returns a flag as a key of a file with its value.
func entry(name string, value pflag.Value) configfile.Entry {
	if list, ok := value.(pflag.SliceValue); ok {
		return configfile.Entry{Name: name, Value: list.GetSlice()}
	}
	text := value.String()
	switch value.Type() {
	case "bool":
		return configfile.Entry{Name: name, Value: text == "true"}
	case "int", "int64":
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return configfile.Entry{Name: name, Value: n}
		}
	case "float64":
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return configfile.Entry{Name: name, Value: n}
		}
	}
	return configfile.Entry{Name: name, Value: text}
}

func (a *app) beginConfig(file string) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) //nolint:gosec // G302: it has no secrets, and programs of other users may read it
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: name another file, or remove it first", file)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(firstConfig)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "wrote %s: check it with reprise config check %s\n", file, file)
	return nil
}
