package main_test

import (
	"slices"
	"strings"
	"testing"
)

// TestFormerSpellings: what an earlier version called otherwise does the same, and a line says what replaces it.
func TestFormerSpellings(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "orders,dead-letter=dead", "--queue", "q")
	sendJSON(t, endpoint, "dead", "{}", map[string]any{"reason": "attempts", "error": "no", "source": "orders"})
	at := []string{"--endpoint", endpoint}
	const policy = "constant(1s) attempts=2"
	for _, test := range []struct {
		former, now []string
		said        string
	}{
		{[]string{"simulate", "--messages", "3", "--policy", policy}, []string{"simulate", "--messages", "3", "--retry", policy}, "--policy will go: use --retry"},
		{[]string{"simulate", "--messages", "3", "--format", "csv"}, []string{"simulate", "--messages", "3", "-o", "csv"}, "--format will go: use -o"},
		{[]string{"simulate", "schedule", policy, "--messages", "9", "--format", "json"}, []string{"simulate", "schedule", policy, "--messages", "9", "-o", "json"}, "--format will go"},
		{[]string{"simulate", "async-lambda", policy, "--events", "9", "--format=text"}, []string{"simulate", "async-lambda", policy, "--events", "9", "-o", "table"}, "--format will go"},
		{[]string{"plan", policy, "--format", "text"}, []string{"plan", policy}, "--format will go"},
		{[]string{"plan", policy, "--format", "sarif"}, []string{"plan", policy, "-o", "sarif"}, "--format will go"},
		{slices.Concat([]string{"redrive", "dead", "--max", "1", "--dry-run"}, at), slices.Concat([]string{"redrive", "dead", "--limit", "1", "--dry-run"}, at), "--max will go: use --limit"},
		{slices.Concat([]string{"dead", "dead", "--from", "orders"}, at), slices.Concat([]string{"dead", "dead", "--source", "orders"}, at), "--from will go: use --source"},
		{slices.Concat([]string{"send", "a", "b", "--queue", "q"}, at), slices.Concat([]string{"send", "q", "a", "b"}, at), "--queue will go: use reprise send QUEUE"},
		{slices.Concat([]string{"send", "-q", "q", "a"}, at), slices.Concat([]string{"send", "q", "a"}, at), "--queue will go: use reprise send QUEUE"},
	} {
		former, now := reprise(t, "", test.former...), reprise(t, "", test.now...)
		if former.code != now.code || former.stdout != now.stdout || now.stdout == "" {
			t.Errorf("%q: exit code %d, %s\n%q: exit code %d, %s", test.former, former.code, former.stdout, test.now, now.code, now.stdout)
		}
		if former.stderr != "reprise: "+firstLine(former.stderr)+"\n"+now.stderr || !strings.Contains(former.stderr, test.said) {
			t.Errorf("%q says %q, and %q says %q: want one line more, with %q", test.former, former.stderr, test.now, now.stderr, test.said)
		}
	}
	for _, both := range [][]string{
		{"simulate", "--messages", "1", "--policy", policy, "--retry", policy},
		{"plan", policy, "--format", "json", "-o", "json"},
		{"redrive", "dead", "--max", "1", "--limit", "1", "--endpoint", endpoint},
	} {
		if got := reprise(t, "", both...); got.code != 2 || got.stdout != "" || !strings.Contains(got.stderr, "are given: leave --") {
			t.Errorf("%q: exit code %d, %s%s", both, got.code, got.stdout, got.stderr)
		}
	}
	if got := reprise(t, "", "send", "--endpoint", endpoint); got.code != 2 || !strings.Contains(got.stderr, "QUEUE is missing") {
		t.Errorf("send without a queue: exit code %d, %s", got.code, got.stderr)
	}
}

// firstLine is the first line of what the program says, without its name.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimPrefix(line, "reprise: ")
}
