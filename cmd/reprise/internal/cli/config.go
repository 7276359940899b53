package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/configfile"
)

// isConfigKey reports whether a flag can be set in a file too. A secret does not belong
// into a file that gets committed; queues and faults have keys of their own; the others
// are about one run of the program.
func isConfigKey(flag *pflag.Flag) bool {
	if flag == nil {
		return false
	}
	switch flag.Name {
	case "secret", "queue", "faults", "config", "config-schema", "help":
		return false
	}
	return true
}

// applyConfig sets the flags that the file names, except those given on the command line.
func applyConfig(cmd *cobra.Command, file string) (configfile.Config, error) {
	flags := cmd.Flags()
	c, err := configfile.Read(file, func(name string) bool { return isConfigKey(flags.Lookup(name)) })
	if err != nil {
		return c, err
	}
	given := make(map[string]bool)
	for _, s := range c.Settings {
		given[s.Name] = flags.Changed(s.Name)
	}
	for _, s := range c.Settings {
		if given[s.Name] {
			continue // the command line wins
		}
		if err := flags.Set(s.Name, s.Value); err != nil {
			return c, s.Errorf("%w", err)
		}
	}
	// Cobra has checked the groups before, without the file's settings.
	return c, cmd.ValidateFlagGroups()
}

// schemaTypes maps the types of flags to those of JSON Schema. Durations are strings, like
// 100ms; so are lists, separated by commas.
var schemaTypes = map[string]string{
	"string": "string", "stringSlice": "string", "duration": "string", "bool": "boolean", "int": "integer", "int64": "integer", "float64": "number",
}

// printSchema prints the JSON Schema of the files that applyConfig reads.
func (a *app) printSchema(cmd *cobra.Command) error {
	var keys []configfile.Key
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if isConfigKey(flag) {
			_, about := pflag.UnquoteUsage(flag)
			keys = append(keys, configfile.Key{Name: flag.Name, Type: schemaTypes[flag.Value.Type()], About: about})
		}
	})
	text, err := configfile.Schema(keys)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "%s", text)
	return nil
}
