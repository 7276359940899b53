//go:build unix

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSend: arguments, lines and files arrive byte for byte, in batches of ten.
func TestSend(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "q")
	file := filepath.Join(t.TempDir(), "input")
	if err := os.WriteFile(file, []byte("line 1\n\n  \r\nשלום 🚀\n{\"a\":\"last, without an end\"}"), 0o600); err != nil {
		t.Fatal(err)
	}
	var many strings.Builder
	for i := range 23 {
		fmt.Fprintln(&many, i)
	}
	for _, test := range []struct {
		name, stdin string
		args        []string
		want        []string
		requests    string
	}{
		{"arguments", "", []string{"a", `{"b": "\\n"}`, "-"}, []string{"a", `{"b": "\\n"}`, "-"}, "in 1 request\n"},
		{"file", "", []string{"--file", file}, []string{"line 1", "שלום 🚀", `{"a":"last, without an end"}`}, "in 1 request\n"},
		{"lines", many.String(), nil, strings.Fields(many.String()), "23 sent to " + endpoint + "/000000000000/q in 3 requests"},
		{"dash", "x\n", []string{"--file", "-"}, []string{"x"}, "1 sent"},
		{"nothing", "", nil, nil, "0 sent"},
	} {
		got := reprise(t, test.stdin, append([]string{"send", "--endpoint", endpoint, "q"}, test.args...)...)
		if got.code != 0 || !strings.Contains(got.stdout, test.requests) {
			t.Errorf("%s: exit code %d, %s%s", test.name, got.code, got.stdout, got.stderr)
		}
		var bodies []string
		for len(bodies) < len(test.want) {
			bodies = append(bodies, receive(t, endpoint, "q")...)
		}
		if !slices.Equal(bodies, test.want) {
			t.Errorf("%s: received %q, want %q", test.name, bodies, test.want)
		}
	}
}

// TestSendRefused: what SQS refuses is named by its place, and the rest is sent.
func TestSendRefused(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "small,MaximumMessageSize=1024")
	got := reprise(t, "fine\n"+strings.Repeat("x", 1025)+"\nfine too\nbad \x01 character\n", "send", "--endpoint", endpoint, "small")
	if got.code != 3 || !strings.HasPrefix(got.stdout, "2 sent") {
		t.Errorf("exit code %d, %s; want 3 and 2 sent", got.code, got.stdout)
	}
	for _, want := range []string{"standard input, line 2, was not sent", "shorter than 1024 bytes", "line 4, was not sent", "not sent: 2 messages"} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("stderr does not say %q:\n%s", want, got.stderr)
		}
	}
	if got := receive(t, endpoint, "small"); !slices.Equal(got, []string{"fine", "fine too"}) {
		t.Errorf("received %q", got)
	}

	got = reprise(t, "", "send", "--endpoint", endpoint, "absent", "x")
	if got.code != 5 || !strings.Contains(got.stderr, `queue "absent" does not exist`) || !strings.Contains(got.stderr, "reprise serve --queue absent") {
		t.Errorf("exit code %d, %s; want 5 and a remedy", got.code, got.stderr)
	}
}
