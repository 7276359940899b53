//go:build unix

package main_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// TestBeanstalkRetries: what Elastic Beanstalk documents of its worker daemon over all attempts at
// a message. Status 200 deletes it; after any other status, or none within InactivityTimeout, it
// comes again ErrorVisibilityTimeout later, with the daemon's headers, until MaxRetries, the
// queue's maxReceiveCount, sends it to the dead-letter queue.
func TestBeanstalkRetries(t *testing.T) {
	t.Parallel()
	const maxRetries, errorVisibility, timeout = 3, 2 * time.Second, time.Second
	answers := map[string]int{"200": 200, "201": 201, "204": 204, "302": 302, "400": 400, "404": 404, "429": 429, "500": 500, "503": 503, "hangs": 0, "mends": 500}
	var mu sync.Mutex
	begun := make(map[string][]time.Time)
	ended := make(map[string]time.Time)
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		body := string(text)
		mu.Lock()
		early := 50 * time.Millisecond // its timers and ours
		if answers[body] == 0 {
			early = 500 * time.Millisecond // a busy machine brings the request late, and its end much later
		}
		if last, again := ended[body]; again && time.Since(last) < errorVisibility-early {
			t.Errorf("%s came again after %v, want %v", body, time.Since(last), errorVisibility)
		}
		begun[body] = append(begun[body], time.Now())
		n := len(begun[body])
		mu.Unlock()
		if got := r.Header.Get("X-Aws-Sqsd-Receive-Count"); got != strconv.Itoa(n) || r.Header.Get("User-Agent") != "aws-sqsd/1.1" || r.Header.Get("X-Aws-Sqsd-Queue") != "orders" {
			t.Errorf("%s, attempt %d: headers %v", body, n, r.Header)
		}
		status := answers[body]
		if body == "mends" && n == maxRetries {
			status = 200
		}
		if status == 0 {
			<-r.Context().Done()
		}
		mu.Lock()
		if ended[body] = time.Now(); status == 0 {
			ended[body] = begun[body][n-1].Add(timeout)
		}
		mu.Unlock()
		if status > 0 {
			w.Header().Set("Retry-After", "3600")
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
		}
	}))
	defer target.Close()
	_, endpoint := serve(t, "--queue", "orders,dead-letter=orders-dead,max-receives="+strconv.Itoa(maxRetries))
	for body := range answers {
		sendAll(t, endpoint, "orders", body)
	}
	p := start(t, "run", "--queue", "orders", "--endpoint", endpoint, "--beanstalk", "--url", target.URL, "--timeout", timeout.String(), "--admin-addr", "none")
	p.await("msg=consuming")
	awaitThat(t, "every message is deleted or dead", func() bool { return inQueue(t, endpoint, "orders") == 0 })
	p.signal(syscall.SIGTERM)
	if code, output := p.wait(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, output)
	}
	mu.Lock()
	defer mu.Unlock()
	dead := make(map[string]bool)
	for range len(answers) - 2 {
		out, err := client(endpoint).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queueURL(endpoint, "orders-dead"), MessageAttributeNames: []string{"All"}})
		if err != nil || len(out.Messages) != 1 {
			t.Fatalf("%v, %v: %d dead letters of %d", out, err, len(dead), len(answers)-2)
		}
		dead[aws.ToString(out.Messages[0].Body)] = true
	}
	for body := range answers {
		want := maxRetries
		if body == "200" {
			want = 1
		}
		if succeeds := body == "200" || body == "mends"; dead[body] == succeeds || len(begun[body]) != want {
			t.Errorf("%s: dead %v after %d attempts, want %d", body, dead[body], len(begun[body]), want)
		}
	}
	if t.Failed() {
		t.Log(strings.TrimSpace(p.output()))
	}
}
