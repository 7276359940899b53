package cli

import (
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/choice"
)

// logFlags are the flags of every long-running command on its log, which goes to the
// standard error.
type logFlags struct{ level, format choice.Value }

func (f *logFlags) register(flags *pflag.FlagSet) {
	f.level, f.format = choice.Of("debug", "info", "warn", "error"), choice.Of("text", "json")
	_ = f.level.Set("info") // it is one of them
	flags.Var(&f.level, "log-level", "lowest level to log; debug includes each failed attempt")
	flags.Var(&f.format, "log-format", "format of the log")
}

// logger returns a logger that writes to a's standard error, as the flags say. If it
// writes JSON, all other output of a to the standard error becomes JSON too.
func (f *logFlags) logger(a *app) *slog.Logger {
	options := slog.HandlerOptions{ReplaceAttr: bounded, Level: levels[f.level.String()]}
	if f.format.String() == "text" {
		return slog.New(slog.NewTextHandler(a.stderr, &options))
	}
	options.ReplaceAttr = boundedWithUnits
	log := slog.New(slog.NewJSONHandler(a.stderr, &options))
	a.json.Store(log)
	return log
}

var levels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
