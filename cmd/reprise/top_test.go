//go:build unix

package main_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

// TestTop: a look is a row for each queue, of a process with its consumer and rates, without one by
// the queue's attributes alone.
func TestTop(t *testing.T) {
	t.Parallel()
	target := newControlled(t)
	endpoint := orders(t)
	_, admin := runQueue(t, endpoint, "--url", target.URL)
	sendOrders(t, endpoint, 20)
	awaitConsumer(t, admin, "orders", func(c map[string]any) bool { return deleted(c) == 20 })

	got := reprise(t, "", "top", "orders", "--admin", admin, "--samples", "2", "--interval", "500ms")
	rows := records(t, got.stdout)
	if got.code != 0 || len(rows) != 2 {
		t.Fatalf("exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
	if r := rows[0]; r["queue"] != "orders" || r["working"] != 0.0 || r["visible"] != 0.0 || r["state"] != "ok" || r["in_per_second"] != nil {
		t.Errorf("the first look %v", r)
	}
	if r := rows[1]; r["in_per_second"] != 0.0 || r["out_per_second"] != 0.0 || r["failed_per_second"] != 0.0 {
		t.Errorf("the second look %v", r)
	}
	got = reprise(t, "", "top", "orders", "--admin", admin, "--samples", "1", "-o", "table")
	if !strings.Contains(got.stdout, "queue   visible  in flight  working  backoff  state\norders        0          0        0        0  ok\n") {
		t.Errorf("the table:\n%s", got.stdout)
	}

	sendOrders(t, endpoint, 3)
	awaitConsumer(t, admin, "orders", func(c map[string]any) bool { return deleted(c) == 23 })
	rows = records(t, reprise(t, "", "top", "--admin", endpoint, "--samples", "1").stdout) // the server's own
	if len(rows) != 2 || rows[0]["queue"] != "orders" || rows[0]["working"] != nil || rows[1]["queue"] != "orders-dead" {
		t.Errorf("of a server: %v", rows)
	}
	rows = records(t, reprise(t, "", "top", "--endpoint", endpoint, "--prefix", "orders-", "--samples", "1").stdout)
	if len(rows) != 1 || rows[0]["queue"] != "orders-dead" || rows[0]["visible"] != 0.0 {
		t.Errorf("by attributes: %v", rows)
	}

	s := records(t, reprise(t, "", "stats", "--admin", admin).stdout)[0]["consumers"].([]any)[0].(map[string]any)
	attempts, cost := s["attempts"].(map[string]any), s["cost"].(map[string]any)
	if attempts["total"] != 23.0 || attempts["failed"] != 0.0 || fmt.Sprint(attempts["outcomes"]) != "map[delete:23]" || attempts["p50_ms"].(float64) <= 0 || cost["messages"] != 23.0 || cost["dollars"].(float64) <= 0 {
		t.Errorf("stats %v", s)
	}
	got = reprise(t, "", "stats", "--admin", admin, "-o", "table")
	if got.code != 0 || !strings.Contains(got.stdout, "\nin the last ") {
		t.Errorf("stats as a table: %+v", got)
	}

	p := start(t, "top", "--admin", admin)
	p.await(`"queue":"orders"`)
	p.signal(syscall.SIGTERM)
	if code, output := p.wait(); code != 0 {
		t.Errorf("stopped: exit code %d, %s", code, output)
	}
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"top", "absent", "--admin", admin}, 5, `no queue "absent"`},
		{[]string{"top", "absent", "--endpoint", endpoint}, 5, `"absent" does not exist`},
		{[]string{"top", "--interval", "1ms", "--admin", admin}, 2, "pass 500ms or more"},
		{[]string{"top", "--samples", "-1", "--admin", admin}, 2, "pass 1 or more"},
		{[]string{"top", "--endpoint", endpoint, "--admin", admin}, 2, "use one of them"},
		{[]string{"top", "orders", "--prefix", "o", "--endpoint", endpoint}, 2, "or the names"},
		{[]string{"top", "--admin", "http://127.0.0.1:1"}, 1, "is one running?"},
		{[]string{"stats", "--admin", "http://127.0.0.1:1"}, 1, "is one running?"},
		{[]string{"stats", "orders"}, 2, "unknown command"},
	} {
		if got := reprise(t, "", test.args...); got.code != test.code || !strings.Contains(got.stderr, test.want) {
			t.Errorf("%q: exit code %d, %s", test.args, got.code, got.stderr)
		}
	}
}
