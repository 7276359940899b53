package cli

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/pflag"
)

// logFlags are the flags of every command that runs for long: what it logs, to the
// standard error.
type logFlags struct{ level, format string }

func (f *logFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.level, "log-level", "info", "the least `level` to log: debug (also each failed attempt), info, warn or error")
	flags.StringVar(&f.format, "log-format", "text", "`form` of the log: text or json")
}

// logger writes to w, as the flags say.
func (f *logFlags) logger(w io.Writer) (*slog.Logger, error) {
	var options slog.HandlerOptions
	switch f.level {
	case "debug":
		options.Level = slog.LevelDebug
	case "info":
	case "warn":
		options.Level = slog.LevelWarn
	case "error":
		options.Level = slog.LevelError
	default:
		return nil, usage(fmt.Errorf("--log-level is %q: pass debug, info, warn or error", f.level))
	}
	switch f.format {
	case "text":
		return slog.New(slog.NewTextHandler(w, &options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, &options)), nil
	}
	return nil, usage(fmt.Errorf("--log-format is %q: pass text or json", f.format))
}
