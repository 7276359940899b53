//go:build unix

package main_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// TestDashboardAddress: a process prints the address of its dashboard, and the dashboard is there; one that refuses
// everybody, or that no browser reaches, prints none.
func TestDashboardAddress(t *testing.T) {
	t.Parallel()
	endpoint := orders(t)
	env := environment("AWS_ENDPOINT_URL_SQS="+endpoint, "TOKEN=0123456789abcdef0123456789abcdef")
	server := []string{"--memory", "--addr", "127.0.0.1:0", "--queue", "orders"}
	keys := []string{"--access-key", "AKID", "--secret", "s3cret"}
	for _, args := range [][]string{
		append([]string{"serve"}, server...),
		append([]string{"up", "--exec", "true"}, server...),
		{"run", "--queue", "orders", "--exec", "true", "--admin-addr", "127.0.0.1:0"},
	} {
		at := startIn(t, env, args...).await("dashboard     ")
		if status, text := fetch(t, http.DefaultClient, at); status != 200 || !strings.Contains(text, "<title>Overview · reprise</title>") || !strings.HasSuffix(at, "/") {
			t.Errorf("%v: at %s: %d %.200s", args, at, status, text)
		}
	}
	asks := append([]string{"serve", "--admin-token", "env:TOKEN"}, append(server, keys...)...)
	if status, text := fetch(t, http.DefaultClient, startIn(t, env, asks...).await("dashboard     ")); status != 401 || !strings.Contains(text, `id="token"`) {
		t.Errorf("with keys and a token: %d %.200s", status, text)
	}
	for last, args := range map[string][]string{
		"storage       ":             append([]string{"serve"}, append(server, keys...)...),
		"retry         ":             append([]string{"up", "--exec", "true", "--no-admin"}, server...),
		"msg=consuming queue=orders": {"run", "--queue", "orders", "--exec", "true", "--admin-addr", "unix:" + filepath.Join(t.TempDir(), "a.sock")},
	} {
		p := startIn(t, env, args...)
		if p.await(last); strings.Contains(p.output(), "dashboard") {
			t.Errorf("%v: %s", args, p.output())
		}
	}
}
