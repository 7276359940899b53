package cli

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/choice"
)

// TestDurationsInLogs: a duration has the same form in text and JSON logs. slog's JSON has
// nanoseconds, in which nobody recognises the 25 s of a stop budget.
func TestDurationsInLogs(t *testing.T) {
	for format, want := range map[string]string{"text": "budget=25s", "json": `"budget":"25s"`} {
		var out bytes.Buffer
		logger := (&logFlags{level: choice.Of("info"), format: choice.Of(format)}).logger(&app{stderr: stream{Writer: &out}})
		logger.Info("stopping", "budget", 25*time.Second, slog.Group("consumer", "budget", 25*time.Second))
		if strings.Count(out.String(), want) != 2 && format == "json" || !strings.Contains(out.String(), want) {
			t.Errorf("the log as %s lacks %s:\n%s", format, want, &out)
		}
	}
}
