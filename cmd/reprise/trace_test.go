//go:build unix

package main_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestTraceOfMessage: the story of a message that a real consumer gave up is told by any of its ids.
func TestTraceOfMessage(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "orders,dead-letter=dead,max-receives=100")
	sendJSON(t, endpoint, "orders", "mine", nil)
	sendJSON(t, endpoint, "orders", "other", nil)
	start(t, "run", "--queue", "orders", "--endpoint", endpoint, "--admin-addr", "none", "--exec", "echo broken >&2; exit 1", "--retry", "constant(10ms) attempts=2")
	deadline := time.Now().Add(patience)
	for {
		if visible, _ := visibleIn(t, endpoint, "dead"); visible == "2" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no dead letters came")
		}
		time.Sleep(50 * time.Millisecond)
	}
	got := reprise(t, "", "search", "dead", "--endpoint", endpoint, "--body", "mine")
	letter := records(t, got.stdout)[0]
	death, _ := letter["death"].(map[string]any)
	for _, id := range []any{letter["id"], death["origin"]} {
		for _, queue := range [][]string{{"dead"}, {"orders", "dead", "--yes"}} {
			got := reprise(t, "", append([]string{"trace", fmt.Sprint(id), "--endpoint", endpoint}, queue...)...)
			var events []string
			for _, e := range records(t, got.stdout) {
				events = append(events, fmt.Sprint(e["queue"], " ", e["event"]))
			}
			want := "orders sent, orders received first, orders given up, dead dead-lettered, dead is here"
			if got.code != 0 || strings.Join(events, ", ") != want || !strings.Contains(got.stdout, "attempts after 2 attempts") {
				t.Errorf("%v in %q: exit code %d, %q: %s%s", id, queue, got.code, events, got.stdout, got.stderr)
			}
		}
	}
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"x"}, 2, "requires at least 2 arg"},
		{[]string{"x", "dead"}, 1, `the id "x": it may be in flight`},
		{[]string{"x", "orders"}, 1, "--yes"},
		{[]string{"x", "absent"}, 5, `"absent" does not exist`},
	} {
		got := reprise(t, "", append([]string{"trace", "--endpoint", endpoint}, test.args...)...)
		if got.code != test.code || !strings.Contains(got.stderr, test.want) || got.stdout != "" {
			t.Errorf("%q: exit code %d, %s%s; want %d and %q", test.args, got.code, got.stdout, got.stderr, test.code, test.want)
		}
	}
}
