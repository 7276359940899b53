//go:build unix

package main_test

import (
	"strings"
	"testing"
)

// TestCompletion: a shell that completes the argument of a command, or --queue, gets the names of the queues that exist,
// where the command takes a queue: from SQS, or from the process that the command calls. What cannot be asked has none.
func TestCompletion(t *testing.T) {
	t.Parallel()
	p := start(t, "up", "--memory", "--addr", "127.0.0.1:0", "--exec", "true", "--queue", "orders")
	endpoint := p.await("SQS endpoint")
	if r := reprise(t, "", "send", "--endpoint", endpoint, "orders", "1"); r.code != 0 {
		t.Fatal(r)
	}
	for _, test := range []struct{ args, want string }{
		{"peek --endpoint URL ", "orders orders-dead"},
		{"peek --endpoint URL orders-", "orders-dead"},
		{"peek --endpoint URL x", ""},
		{"peek --endpoint URL orders ", ""},
		{"dead export --endpoint URL orders-", "orders-dead"},
		{"move --endpoint URL orders ", "orders-dead"},
		{"move --endpoint URL orders orders-dead ", ""},
		{"queues --endpoint URL orders ", "orders-dead"},
		{"trace --endpoint URL ", ""},
		{"trace --endpoint URL 1234 orders ", "orders-dead"},
		{"plan --endpoint URL ord", "orders orders-dead"},
		{"send --endpoint URL --queue ord", "orders orders-dead"},
		{"run --endpoint URL --queue ord", "orders orders-dead"},
		{"consumers --admin URL ", "orders"},
		{"concurrency --admin URL ", "orders"},
		{"concurrency --admin URL orders ", ""},
		{"peek --endpoint http://127.0.0.1:1 ", ""},
		{"consumers --admin http://127.0.0.1:1 ", ""},
	} {
		line := strings.Split(strings.ReplaceAll(test.args, "URL", endpoint), " ")
		r := reprise(t, "", append([]string{"__complete"}, line...)...)
		names, directive, _ := strings.Cut(r.stdout, ":")
		if got := strings.Join(strings.Fields(names), " "); got != test.want || r.code != 0 || directive == "" {
			t.Errorf("%q completes to %q, want %q (exit code %d):\n%s", test.args, got, test.want, r.code, r.stderr)
		}
	}
}
