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
	"strings"
	"testing"
)

// The attacker is a producer, who may send to the queue and nothing else. It sends messages that
// cannot be copied to the dead-letter queue.

// TestAttackUncopyableMessages: between reprise run and the queue there is a proxy that cuts the
// connection of each request with certain bodies in it, as filters do. 160 such messages, which
// the target refuses permanently, come before others. The others are handled and dead-lettered,
// and the health names the problem.
func TestAttackUncopyableMessages(t *testing.T) {
	t.Parallel()
	endpoint := orders(t)
	server, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	through := httputil.NewSingleHostReverseProxy(server)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".SendMessageBatch") && bytes.Contains(body, []byte("cursed")) {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		through.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, _ := io.ReadAll(r.Body); string(body) != "good" {
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
	}))
	defer target.Close()
	var lines strings.Builder
	for i := range 160 {
		fmt.Fprintf(&lines, "cursed %d\n", i)
	}
	lines.WriteString(strings.Repeat("good\nbad\n", 20))
	if got := reprise(t, lines.String(), "send", "--endpoint", endpoint, "orders"); got.code != 0 {
		t.Fatalf("send: %+v", got)
	}

	_, admin := runQueue(t, proxy.URL, "--url", target.URL, "--permanent-status", "422")
	h := awaitHealth(t, admin, func(h health) bool {
		return h.Consumer.Deleted == 20 && h.Consumer.DeadLettered == 20 && h.Status == "degraded"
	})
	if !strings.Contains(h.Problem, "refuses their settlement again and again") {
		t.Errorf("the health says %q, want it to say what is wrong", h.Problem)
	}
	if n := inQueue(t, endpoint, "orders-dead"); n != 20 {
		t.Errorf("%d dead letters, want 20", n)
	}
}
