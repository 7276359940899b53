//go:build unix

package main_test

// Holds off: a web page that a developer visits; see attack_page_test.go. Here: the flags about
// pages.

import (
	"net/http"
	"strings"
	"testing"
)

// TestAttackPageFlags: an origin that would permit nobody, or everybody, is a mistake of
// the command line.
func TestAttackPageFlags(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"serve", "--memory", "--allow-origin", "*"}, `--allow-origin: "*" is not the origin`},
		{[]string{"serve", "--memory", "--allow-origin", "https://app.example,null"}, `"null" is not the origin`},
		{[]string{"serve", "--memory", "--config", written(t, "c", "allow-origin: app.example\n")}, "scheme://host"},
		{[]string{"serve", "--memory", "--admin", "--no-admin"}, "[admin no-admin]"},
		{[]string{"up", "--memory", "--exec", "true", "--allow-origin", "https://*.example"}, "scheme://host"},
		{[]string{"run", "--queue", "q", "--exec", "true", "--allow-origin", "localhost"}, "scheme://host"},
		{[]string{"lambda", "up", "t.yaml", "--allow-origin", "https://app.example/"}, "scheme://host"},
	} {
		if got := reprise(t, "", test.args...); got.code != 2 || !strings.Contains(got.stderr, test.want) {
			t.Errorf("%q: exit code %d: %s; want 2 and %q", test.args, got.code, got.stderr, test.want)
		}
	}
}

// TestAttackPageServerWithKeys: /_reprise/, which asks for no signature, is served only with
// --admin; other paths without signatures follow the rule for pages.
func TestAttackPageServerWithKeys(t *testing.T) {
	t.Parallel()
	keys := []string{"--access-key", "AKID", "--secret-file", written(t, "secret", "hush"), "--allow-origin", "http://queues.lan:9324"}
	_, endpoint := serve(t, keys...)
	_, withAdmin := serve(t, append(keys, "--admin")...)
	for _, test := range []struct {
		url, host string
		status    int
		text      string
	}{
		{endpoint + "/_reprise/faults", "", 403, "start the server with --admin"},
		{withAdmin + "/_reprise/faults", "", 200, "queues"},
		{withAdmin + "/_reprise/faults", "evil.example", 403, `"error"`},
		{withAdmin + "/_reprise/faults", "queues.lan:9324", 403, `"error"`},
		{endpoint + "/metrics", "", 200, "reprise_healthy"},
		{endpoint + "/metrics", "queues.lan:9324", 200, "reprise_healthy"},
		{endpoint + "/metrics", "evil.example", 403, "--allow-origin http://evil.example"},
		{endpoint + "/?Action=ListQueues", "evil.example", 403, "<Code>AccessDenied</Code>"},
	} {
		if status, text := fetch(t, &http.Client{Transport: calledBy(test.host)}, test.url); status != test.status || !strings.Contains(text, test.text) {
			t.Errorf("%s as %q: %d %s, want %d %q", test.url, test.host, status, text, test.status, test.text)
		}
	}
}

// calledBy sends requests with a Host that is not that of their URL, unless it is empty.
type calledBy string

func (host calledBy) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Host = string(host)
	return http.DefaultTransport.RoundTrip(r)
}
