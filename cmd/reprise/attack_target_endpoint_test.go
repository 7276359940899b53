//go:build unix

package main_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// The attacker is an endpoint that answers in place of SQS, with any answer.

// TestAttackEndpointThatMakesNoSense: replies that lack required members, or report entries that
// were not sent, end a command with an error that says so.
func TestAttackEndpointThatMakesNoSense(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, queueURL, sent string
		args                 []string
		says                 string
	}{
		{"run without a URL", `{}`, `{}`, []string{"run", "--queue", "orders", "--url", "http://127.0.0.1:9/", "--admin-addr", "none"}, "without a URL"},
		{"send without a URL", `{}`, `{}`, []string{"send", "orders", "hello"}, "without a URL"},
		{"redrive without a URL", `{}`, `{}`, []string{"redrive", "orders"}, "without a URL"},
		{"send that is not answered", `{"QueueUrl":"http://127.0.0.1/1/orders"}`, `{}`, []string{"send", "orders", "hello"}, "may not have been sent: sending to the queue orders: the reply did not mention this entry"},
		{"send with an answer to another", `{"QueueUrl":"http://127.0.0.1/1/orders"}`, `{"Successful":[{"Id":"77","MessageId":"m","MD5OfMessageBody":"x"}],"Failed":[]}`,
			[]string{"send", "orders", "hello"}, "may not have been sent: sending to the queue orders: the reply did not mention this entry"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "application/x-amz-json-1.0")
				answer := "{}"
				switch _, action, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); action {
				case "GetQueueUrl":
					answer = test.queueURL
				case "SendMessageBatch":
					answer = test.sent
				}
				fmt.Fprint(w, answer)
			}))
			defer endpoint.Close()
			got := reprise(t, "", append(test.args, "--endpoint", endpoint.URL)...)
			if got.code == 0 || !strings.Contains(got.stderr, test.says) || strings.Contains(got.stderr, "goroutine ") {
				t.Errorf("exit code %d: %s, want an error that says %q", got.code, got.stderr, test.says)
			}
		})
	}
}

// TestAttackRedirect: an endpoint cannot send messages and credentials on to another server.
func TestAttackRedirect(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		for _, args := range [][]string{
			{"run", "--queue", "orders", "--url", "http://127.0.0.1:9/", "--admin-addr", "none"},
			{"send", "orders", "hello"},
			{"redrive", "orders"},
			{"lambda", "invoke", "orders"},
		} {
			t.Run(fmt.Sprint(status, " ", args[0]), func(t *testing.T) {
				t.Parallel()
				other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					t.Errorf("the other server got %s %s with %v", r.Method, r.URL, r.Header)
				}))
				defer other.Close()
				var calls atomic.Int32
				endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					calls.Add(1)
					http.Redirect(w, r, other.URL+"/taken", status)
				}))
				defer endpoint.Close()
				got := reprise(t, "", append(args, "--endpoint", endpoint.URL)...)
				if says := "redirects to " + other.URL; got.code == 0 || !strings.Contains(got.stderr, says) || !strings.Contains(got.stderr, "not followed") {
					t.Errorf("exit code %d: %s, want an error that says %q", got.code, got.stderr, says)
				}
				if n := calls.Load(); n != 1 {
					t.Errorf("the endpoint was called %d times, want once", n)
				}
			})
		}
	}
}
