package load_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/bench/load"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// Every message is sent, received and deleted once, however the server frames its
// replies.
func TestLoad(t *testing.T) {
	for name, frame := range map[string]func(http.Handler) http.Handler{
		"length":  func(h http.Handler) http.Handler { return h },
		"chunked": chunked,
		"closed": func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Connection", "close")
				h.ServeHTTP(w, r)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := sqsserver.New(sqsserver.Config{})
			web := httptest.NewServer(frame(server))
			t.Cleanup(func() { web.Close(); server.Close() })
			addr := web.Listener.Addr().String()
			queue, err := load.CreateQueue(addr, "q")
			if err != nil {
				t.Fatal(err)
			}
			client := load.Open(addr, queue, 3)
			t.Cleanup(client.Close)

			step(t, "send", 20, client.Send, 200)
			step(t, "send", 8, client.Send, 80)
			step(t, "receive", 20, client.Receive, 200)
			holds(t, server, "q", 80, 200)
			report, err := client.Delete()
			if err != nil || report.Messages != 200 || len(report.Calls) < 20 {
				t.Fatalf("deleted %+v, %v", report, err)
			}
			holds(t, server, "q", 80, 0)
			step(t, "work", 16, client.Work, 80)
			holds(t, server, "q", 0, 0)
		})
	}
}

func step(t *testing.T, name string, calls int, do func(int) (load.Report, error), n int) {
	t.Helper()
	report, err := do(n)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	p50, p99 := report.Quantile(0.5), report.Quantile(0.99)
	if report.Messages != n || len(report.Calls) < calls || p50 <= 0 || p99 < p50 || p99 > report.Wall {
		t.Errorf("%s of %d: %+v, want at least %d calls", name, n, report, calls)
	}
}

// holds checks the number of messages in a queue.
func holds(t *testing.T, server *sqsserver.Server, queue string, visible, inFlight int) {
	t.Helper()
	for _, q := range server.Queues() {
		if q.Name == queue && (q.Visible != visible || q.InFlight != inFlight) {
			t.Errorf("the queue has %d visible messages and %d in flight, want %d and %d", q.Visible, q.InFlight, visible, inFlight)
		}
	}
}

// chunked sends replies in chunks, several for each body.
func chunked(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, r)
		body := recorder.Body.Bytes()
		for len(body) > 0 {
			n := min(len(body), 1000)
			_, _ = w.Write(body[:n])
			w.(http.Flusher).Flush()
			body = body[n:]
		}
	})
}

// TestRefusals: for a request that a server refuses, the error has the server's text.
func TestRefusals(t *testing.T) {
	const entry = `{"Id":"0","MessageId":"m"}`
	for name, test := range map[string]struct {
		status int
		reply  string
	}{
		"status":       {http.StatusBadRequest, `{"message":"a reason"}`},
		"failed entry": {http.StatusOK, `{"Successful":[` + strings.Repeat(entry+",", 9) + `],"Failed":[{"Id":"9","SenderFault":false,"Message":"a reason"}]}`},
		"too few":      {http.StatusOK, `{"Successful":[` + entry + `],"note":"a reason"}`},
	} {
		t.Run(name, func(t *testing.T) {
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.WriteHeader(test.status)
				fmt.Fprint(w, test.reply)
			}))
			t.Cleanup(web.Close)
			client := load.Open(web.Listener.Addr().String(), "http://q", 2)
			t.Cleanup(client.Close)
			if _, err := client.Send(20); err == nil || !strings.Contains(err.Error(), "a reason") {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestBody(t *testing.T) {
	for _, i := range []int{0, 9, 123_456} {
		if n := len(load.Body(i)); n != load.BodySize {
			t.Errorf("body %d has %d bytes", i, n)
		}
	}
}
