package cli

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/choice"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/configfile"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/delivery"
)

// isConfigKey reports whether a flag can be set in a file too. A secret does not belong in
// a file that gets committed; queues and faults have keys of their own; the others are
// about one run of the program.
func isConfigKey(flag *pflag.Flag) bool {
	if flag == nil {
		return false
	}
	switch flag.Name {
	case "secret", "queue", "faults", "config", "help":
		return false
	}
	return true
}

// variable returns the environment variable of a flag.
func variable(flag string) string {
	return "REPRISE_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// given returns the flags of cmd that are set on the command line or, unless they are
// there, by their variables in the environment.
func given(cmd *cobra.Command) (found []*pflag.Flag, err error) {
	flags := cmd.Flags()
	flags.VisitAll(func(flag *pflag.Flag) {
		value, set := os.LookupEnv(variable(flag.Name))
		if flag.Changed || !set || !isConfigKey(flag) || err != nil {
			return
		}
		if problem := flags.Set(flag.Name, value); problem != nil {
			err = usage(fmt.Errorf("%s: %w", variable(flag.Name), problem))
		}
	})
	flags.Visit(func(flag *pflag.Flag) { found = append(found, flag) })
	return found, err
}

// readConfig reads the file, if one is named, and sets the flags of cmd that it has keys
// for, except those that were given.
func readConfig(cmd *cobra.Command, file string) (c configfile.Config, err error) {
	before, err := given(cmd)
	if err != nil || file == "" {
		return c, err
	}
	if c, err = parseConfig(file); err == nil {
		err = applyConfig(cmd, c, before)
	}
	if err != nil {
		err = usage(fmt.Errorf("--config: %w", err))
	}
	return c, err
}

// parseConfig reads a file.
func parseConfig(file string) (configfile.Config, error) {
	return configfile.Read(file, configKeys())
}

// applyConfig sets the flags that the file has keys for, except those before. Settings of
// queues are left alone: each queue has its own. Keys of other commands are left out.
func applyConfig(cmd *cobra.Command, c configfile.Config, before []*pflag.Flag) error {
	flags := cmd.Flags()
	_, consume := configFlags()
	for _, s := range c.Settings {
		if flags.Lookup(s.Name) == nil || consume.Lookup(s.Name) != nil {
			continue
		}
		if slices.ContainsFunc(before, func(flag *pflag.Flag) bool { return flag.Name == s.Name }) {
			continue
		}
		if err := s.Apply(flags); err != nil {
			return err
		}
	}
	// Cobra has checked the groups before, without the file's settings.
	return cmd.ValidateFlagGroups()
}

// configFlags returns the flags that are keys of a file, of all commands that read one, and
// those that are keys of a queue's consume.
func configFlags() (top map[string]*pflag.Flag, consume *pflag.FlagSet) {
	top = make(map[string]*pflag.Flag)
	a := new(app)
	for _, cmd := range []*cobra.Command{a.serve(), a.run()} {
		cmd.Flags().VisitAll(func(flag *pflag.Flag) {
			if isConfigKey(flag) {
				top[flag.Name] = flag
			}
		})
	}
	consume = pflag.NewFlagSet("consume", pflag.ContinueOnError)
	var settings delivery.Settings
	settings.Register(consume)
	settings.RegisterShare(consume)
	return top, consume
}

// schemaTypes maps the types of flags to those of JSON Schema. Durations are strings, like
// 100ms.
var schemaTypes = map[string]string{
	"string": "string", "stringSlice": "string", "stringArray": "string", "duration": "string", "bool": "boolean", "int": "integer", "int64": "integer", "float64": "number",
}

// configKeys returns the keys of the files that parseConfig reads.
func configKeys() (keys configfile.Keys) {
	top, consume := configFlags()
	for _, name := range slices.Sorted(maps.Keys(top)) {
		keys.Top = append(keys.Top, configKey(top[name]))
	}
	consume.VisitAll(func(flag *pflag.Flag) { keys.Consume = append(keys.Consume, configKey(flag)) })
	return keys
}

func configKey(flag *pflag.Flag) configfile.Key {
	_, about := pflag.UnquoteUsage(flag)
	key := configfile.Key{Name: flag.Name, Type: schemaTypes[flag.Value.Type()], About: about}
	_, key.List = flag.Value.(pflag.SliceValue)
	if words, ok := flag.Value.(*choice.Value); ok {
		key.Type, key.Words = "string", words.Words()
	}
	return key
}
