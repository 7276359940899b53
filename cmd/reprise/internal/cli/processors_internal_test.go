package cli

import (
	"log/slog"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
)

// TestProcessorForSyncs: a server that syncs has one processor more, however often
// one is started, unless the environment says how many.
func TestProcessorForSyncs(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	t.Setenv("GOMAXPROCS", "")
	runtime.SetDefaultGOMAXPROCS()
	usual := runtime.GOMAXPROCS(0)
	for _, test := range []struct {
		name        string
		environment string
		dir         string
		want        int
	}{
		{"in memory", "", "", usual},
		{"the environment's", "2", "kept", usual},
		{"durable", "", "durable", usual + 1},
		{"another", "", "another", usual + 1},
		{"not a number", "all", "no-number", usual + 1},
	} {
		t.Setenv("GOMAXPROCS", test.environment) // Go itself reads it at the start only
		cfg := daemon.Config{Addr: "127.0.0.1:0", Region: "us-east-1", Logger: slog.New(slog.DiscardHandler)}
		if test.dir != "" {
			cfg.Journal = journal.Options{Dir: filepath.Join(t.TempDir(), test.dir)}
		}
		d, err := new(serverFlags).start(new(app), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if got := runtime.GOMAXPROCS(0); got != test.want {
			t.Errorf("%s: %d processors, want %d", test.name, got, test.want)
		}
	}
}
