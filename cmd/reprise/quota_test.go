//go:build unix

package main_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// crowdedEndpoint is endpoint with nearly as many messages in flight as SQS's quota.
func crowdedEndpoint(t *testing.T, endpoint string) string {
	t.Helper()
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	inFlight := regexp.MustCompile(`("ApproximateNumberOfMessagesNotVisible":)"\d+"`)
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(r *http.Response) error {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			body = inFlight.ReplaceAll(body, []byte(`$1"119990"`))
			r.Body = io.NopCloser(bytes.NewReader(body))
			r.Header.Set("Content-Length", strconv.Itoa(len(body)))
			r.ContentLength = int64(len(body))
			return nil
		},
	})
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// TestQuotaIsUsedUp: every command that receives the messages of a queue says so, and ends with exit code 3, when it may
// have seen only some of them because the queue has as many in flight as SQS permits.
func TestQuotaIsUsedUp(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--no-admin", "--queue", "a,dead-letter=dead", "--queue", "b", "--queue", "from")
	endpoint = crowdedEndpoint(t, endpoint)
	sendAll(t, endpoint, "dead", "1")
	sendAll(t, endpoint, "from", "1")
	for _, args := range [][]string{
		{"redrive", "dead", "--to", "a", "--dry-run"},
		{"redrive", "dead", "--body", "needle"},
		{"redrive", "dead", "--to", "a", "--find", "2", "--replace", "3", "--dry-run"},
		{"move", "from", "b", "--body", "needle"},
		{"move", "from", "b", "--dry-run"},
		{"search", "from", "--body", "needle"},
		{"trace", "no-such-id", "from"},
		{"dead", "dead"},
		{"dead", "export", "dead"},
		{"dead", "edit", "dead", "--body", "needle", "--set-attribute", "a=b", "--yes"},
		{"dead", "delete", "dead", "--all", "--yes"},
		{"redrive", "dead", "--to", "b"},
		{"move", "from", "b"},
	} {
		got := reprise(t, "", append(args, "--endpoint", endpoint)...)
		if got.code != 3 || !strings.Contains(got.stderr, "SQS may show no more (its quota is 120000)") {
			t.Errorf("%q: %s", args, fmt.Sprint(got))
		}
	}
}
