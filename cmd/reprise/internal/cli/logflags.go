package cli

import (
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"
)

// logFlags are the flags of every long-running command on its log, which goes to the
// standard error.
type logFlags struct{ level, format string }

func (f *logFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.level, "log-level", "info", "lowest `level` to log: debug (includes each failed attempt), info, warn or error")
	flags.StringVar(&f.format, "log-format", "text", "`format` of the log: text or json")
}

// logger returns a logger that writes to a's standard error, as the flags say. If it
// writes JSON, all other output of a to the standard error becomes JSON too.
func (f *logFlags) logger(a *app) (*slog.Logger, error) {
	options := slog.HandlerOptions{ReplaceAttr: bounded}
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
		return slog.New(slog.NewTextHandler(a.stderr, &options)), nil
	case "json":
		options.ReplaceAttr = boundedWithUnits
		log := slog.New(slog.NewJSONHandler(a.stderr, &options))
		a.json.Store(log)
		return log, nil
	}
	return nil, usage(fmt.Errorf("--log-format is %q: pass text or json", f.format))
}
