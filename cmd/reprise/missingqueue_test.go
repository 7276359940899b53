//go:build unix

package main_test

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/cli"
)

// TestMissingQueue: every command that is given a queue which does not exist, by its name or its URL, ends with exit code
// 5 and names the queue.
func TestMissingQueue(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "orders,dead-letter=dead")
	_, receiving := serve(t, "--queue", "orders,dead-letter=dead", "--no-admin") // as AWS: commands have to receive
	letters := written(t, "letters.jsonl", `{"body":"m"}`+"\n")
	tested := make(map[string]bool)
	for _, test := range []struct {
		args  string // QUEUE is the missing one
		admin bool   // the process at --admin knows no such queue
	}{
		{"send QUEUE m", false},
		{"redrive QUEUE", false},
		{"redrive QUEUE --any-queue --to orders", false},
		{"redrive QUEUE --task --to orders", false},
		{"redrive QUEUE --to orders --find a --replace b", false},
		{"redrive dead --to QUEUE", false},
		{"redrive dead --to QUEUE --task", false},
		{"redrive QUEUE --job", true},
		{"redrive dead --job --to QUEUE", true},
		{"move QUEUE orders", false},
		{"move orders QUEUE --yes", false},
		{"move QUEUE orders --job", true},
		{"peek QUEUE", false},
		{"search QUEUE --id x", false},
		{"dead QUEUE", false},
		{"dead QUEUE --reason age", false},
		{"dead delete QUEUE --all --yes", false},
		{"dead delete QUEUE --all --dry-run", false},
		{"dead delete QUEUE --all --yes --job", true},
		{"dead export QUEUE", false},
		{"dead export QUEUE --job", true},
		{"dead edit QUEUE --id x --set-attribute a=b --yes", false},
		{"dead import QUEUE " + letters, false},
		{"purge QUEUE --yes", false},
		{"queues QUEUE", false},
		{"trace x QUEUE", false},
		{"plan QUEUE", false},
		{"run --queue QUEUE --url http://127.0.0.1:1 --admin-addr none", false},
		{"run --queue orders --to-queue QUEUE --admin-addr none", false},
		{"run --queue orders --retry-lane QUEUE --url http://127.0.0.1:1 --admin-addr none", false},
		{"consumers QUEUE", true},
		{"pause QUEUE", true},
		{"resume QUEUE", true},
		{"wake QUEUE", true},
		{"wake QUEUE --id x", true},
		{"probe QUEUE", true},
		{"concurrency QUEUE 4", true},
		{"rate QUEUE 4", true},
		{"top QUEUE --json", true},
	} {
		at := []string{endpoint, receiving}
		if test.admin {
			at = at[:1]
		}
		for _, endpoint := range at {
			for _, queue := range []string{"absent", *queueURL(endpoint, "absent")} {
				args := strings.Fields(strings.ReplaceAll(test.args, "QUEUE", queue))
				if test.admin {
					args = append(args, "--admin", endpoint)
				} else {
					args = append(args, "--endpoint", endpoint)
				}
				got := repriseWithin(t, patience/4, args...)
				if got.code != 5 || !strings.Contains(got.stderr, "absent") || got.stdout != "" {
					t.Errorf("%q: exit code %d, %s%s", args, got.code, got.stdout, got.stderr)
				}
			}
		}
		tested[commandOf(test.args)] = true
	}
	others := map[string]bool{
		"serve": true, "up": true, // they create it
		"lambda send": true,                   // it is send
		"tail":        true, "timeline": true, // it may come, or have been deleted
	}
	var each func(cmd *cobra.Command, path string)
	each = func(cmd *cobra.Command, path string) {
		for _, sub := range cmd.Commands() {
			each(sub, strings.TrimSpace(path+" "+sub.Name()))
		}
		takes := strings.Contains(cmd.Use, "QUEUE") || cmd.Flags().Lookup("queue") != nil
		if takes && !tested[path] && !others[path] {
			t.Errorf("reprise %s takes a queue, and no row tests one that is missing", path)
		}
	}
	each(cli.Commands(), "")
}

// commandOf is the name of the command that a command line begins with.
func commandOf(line string) string {
	words := strings.Fields(line)
	if words[0] == "dead" && len(words) > 2 && words[1] != "QUEUE" {
		return words[0] + " " + words[1]
	}
	return words[0]
}

// repriseWithin runs the program to its end, or kills it.
func repriseWithin(t *testing.T, limit time.Duration, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(t), args...)
	cmd.Env = environment()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	code := exitCode(t, cmd.Run())
	return result{code, stdout.String(), stderr.String()}
}
