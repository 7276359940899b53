package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCommandLineWins: over the environment, which wins over the file, also where all three set a flag.
func TestCommandLineWins(t *testing.T) {
	for name, value := range map[string]string{"REPRISE_DATA": "/of/environment", "REPRISE_SYNC": "interval", "REPRISE_ALLOW_ORIGIN": "http://of.environment"} {
		t.Setenv(name, value)
	}
	file := filepath.Join(t.TempDir(), "reprise.yaml")
	text := "data: /of/file\nsync: always\nsync-interval: 7s\nmin-free: 7\nallow-origin: [http://of.file]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := new(app).serve()
	if err := cmd.ParseFlags([]string{"--data", "/of/command", "--min-free", "9"}); err != nil {
		t.Fatal(err)
	}
	if _, err := readConfig(cmd, file); err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string]string{"data": "/of/command", "sync": "interval", "sync-interval": "7s", "min-free": "9", "allow-origin": "[http://of.environment]"} {
		if got := cmd.Flag(flag).Value.String(); got != want {
			t.Errorf("--%s is %s, want %s", flag, got, want)
		}
	}
}

// TestShowKeepsQueuesApart: each queue is shown with its own settings, also behind one that is not consumed.
func TestShowKeepsQueuesApart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "reprise.yaml")
	text := "queues:\n  - name: archive\n  - name: orders\n    consume: {url: 'http://to/orders'}\n  - name: lane\n  - name: mails\n    consume: {url: 'http://to/mails'}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, _, err := runHere(t, "config", "show", file)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(stdout, "name: ")
	for i, want := range []string{"archive", "orders", "lane", "mails"} {
		if len(parts) != 5 || !strings.HasPrefix(parts[i+1], want+"\n") || strings.Contains(parts[i+1], "url: http://to/"+want) != strings.Contains(text, "to/"+want) {
			t.Fatalf("queue %d is not %s with its own settings:\n%s", i+1, want, stdout)
		}
	}
}
