//go:build unix

package main_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestTraceOfMessage: the story of a message that a real consumer gave up is told by any of its ids,
// by a server that tells it, and by what is received from one that does not.
func TestTraceOfMessage(t *testing.T) {
	t.Parallel()
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		traceOfMessage(t, "was never there", "no message of the server has, or had")
	})
	t.Run("SQS alone", func(t *testing.T) {
		t.Parallel()
		traceOfMessage(t, "it may be in flight", "--yes", "--no-admin")
	})
}

func traceOfMessage(t *testing.T, absent, guarded string, args ...string) {
	_, endpoint := serve(t, append([]string{"--queue", "orders,dead-letter=dead,max-receives=100"}, args...)...)
	sendJSON(t, endpoint, "orders", "mine", nil)
	sendJSON(t, endpoint, "orders", "other", nil)
	start(t, "run", "--queue", "orders", "--endpoint", endpoint, "--admin-addr", "none", "--exec", "echo broken >&2; exit 1", "--retry", "constant(10ms) attempts=2")
	deadline := time.Now().Add(patience)
	for {
		letters, _ := visibleIn(t, endpoint, "dead")
		if visible, inFlight := visibleIn(t, endpoint, "orders"); letters == "2" && visible == "0" && inFlight == "0" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("no dead letters came, or what they are of was not deleted")
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
		{[]string{"x", "dead"}, 1, absent},
		{[]string{"x", "orders"}, 1, guarded},
		{[]string{"x", "dead", "--admin", "http://127.0.0.1:1"}, 1, "--admin: no process answers"},
		{[]string{"x", "absent"}, 5, `"absent" does not exist`},
	} {
		got := reprise(t, "", append([]string{"trace", "--endpoint", endpoint}, test.args...)...)
		if got.code != test.code || !strings.Contains(got.stderr, test.want) || got.stdout != "" {
			t.Errorf("%q: exit code %d, %s%s; want %d and %q", test.args, got.code, got.stdout, got.stderr, test.code, test.want)
		}
	}
}

// TestWhyMessagesWait: peek and trace tell what a message waits for by the word of the consumer, who
// works on it, and what SQS alone cannot tell.
func TestWhyMessagesWait(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "orders,max-receives=100,dead-letter=dead")
	_, admin := runQueue(t, endpoint, "--concurrency", "1", "--prefetch", "1", "--retry", "constant(1h) jitter=none attempts=7",
		"--exec", "if grep -q slow; then sleep 60; fi; echo broken >&2; exit 1")
	standing := func(body string, args ...string) map[string]any {
		t.Helper()
		got := reprise(t, "", append([]string{"peek", "orders", "--hidden", "--endpoint", endpoint}, args...)...)
		for _, row := range records(t, got.stdout) {
			if row["body"] == body {
				row["standing"].(map[string]any)["id"] = row["id"]
				return row["standing"].(map[string]any)
			}
		}
		return map[string]any{"state": "not there: " + got.stdout + got.stderr}
	}
	await := func(body, state, why string, args ...string) map[string]any {
		t.Helper()
		for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
			s := standing(body, args...)
			if s["state"] == state && strings.Contains(fmt.Sprint(s["why"]), why) {
				return s
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s stands at %v, want %s: %s", body, s, state, why)
			}
		}
	}
	sendJSON(t, endpoint, "orders", "fails", nil)
	s := await("fails", "waiting for a retry", "the policy is constant(1h)", "--admin", admin)
	if s["attempt"] != 2.0 || s["of"] != 7.0 || s["consumer"] != admin || s["until"] == nil || !strings.Contains(fmt.Sprint(s["error"]), "broken") {
		t.Errorf("a message in backoff: %v", s)
	}
	got := reprise(t, "", "trace", fmt.Sprint(s["id"]), "orders", "--endpoint", endpoint, "--admin", admin, "-o", "table")
	if got.code != 0 || !strings.Contains(got.stdout, "now: waiting for a retry, attempt 2 of 7, until ") {
		t.Errorf("its trace: exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
	if s := standing("fails"); s["state"] != "in flight" || !strings.Contains(fmt.Sprint(s["unknown"]), "--admin") || s["until"] == nil {
		t.Errorf("a message in backoff, without the word of its consumer: %v", s)
	}
	sendJSON(t, endpoint, "orders", "slow", nil)
	if s := await("slow", "working", "its handler runs", "--admin", admin); s["since"] == nil || s["until"] == nil || s["attempt"] != 1.0 {
		t.Errorf("a message whose handler runs: %v", s)
	}
	sendJSON(t, endpoint, "orders", "next", nil)
	await("next", "held back", "for a free place", "--admin", admin)
	control(t, admin, "pause", "orders")
	await("next", "held back", "its consumer is paused", "--admin", admin)
	sendJSON(t, endpoint, "orders", "later", nil)
	await("later", "held back", "its consumer is paused", "--admin", admin)
	await("later", "visible", "for a consumer to receive it")

	for _, limit := range []string{"1", "2", "3"} { // of four messages, of which some are hidden
		got := reprise(t, "", "peek", "orders", "--hidden", "--limit", limit, "--endpoint", endpoint)
		if n := len(records(t, got.stdout)); fmt.Sprint(n) != limit {
			t.Errorf("peek --hidden --limit %s shows %d messages: %s", limit, n, got.stderr)
		}
	}

	_, plain := serve(t, "--queue", "orders", "--no-admin")
	got = reprise(t, "", "peek", "orders", "--hidden", "--endpoint", plain)
	if got.code != 1 || !strings.Contains(got.stderr, "--hidden: SQS shows a message that is in flight or delayed to nobody") {
		t.Errorf("--hidden without a server that tells: exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
}
