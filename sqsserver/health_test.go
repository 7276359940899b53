package sqsserver_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// badBody panics when it is read, as a defect in a decoder would.
type badBody struct{}

func (badBody) Read([]byte) (int, error) { panic("a defect") }

// A panic outside of the queues costs its own request an error and the server
// nothing.
func TestPanicIsAnswered(t *testing.T) {
	for name, target := range map[string]string{"json": "AmazonSQS.SendMessage", "query": ""} {
		var log bytes.Buffer
		server := sqsserver.New(sqsserver.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		defer server.Close()
		b := &testServer{T: t, server: server}
		b.url = b.create("q", nil)
		r := httptest.NewRequest("POST", "/", badBody{})
		if target != "" {
			r.Header.Set("X-Amz-Target", target)
		}
		w := httptest.NewRecorder()
		server.ServeHTTP(w, r)
		if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "InternalFailure") || strings.Contains(w.Body.String(), "a defect ") {
			t.Errorf("%s: status %d: %s", name, w.Code, w.Body)
		}
		if !strings.Contains(log.String(), `panic="a defect"`) || !strings.Contains(log.String(), "stack=") {
			t.Errorf("%s: the log says %q", name, log.String())
		}
		b.send("x")
		if len(b.receive(b.url)) != 1 || server.Err() != nil {
			t.Errorf("%s: the server does not work any more: %v", name, server.Err())
		}
	}
}

// unwritable is a client who has gone: nothing can be written to it.
type unwritable struct{ http.ResponseWriter }

func (unwritable) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

// Messages whose reply cannot be written come again at once, or, as on AWS, when
// their visibility timeout ends.
func TestKeepUnwritten(t *testing.T) {
	for keep, visible := range map[bool]int{false: 1, true: 0} {
		server := sqsserver.New(sqsserver.Config{KeepUnwritten: keep})
		defer server.Close()
		b := &testServer{T: t, server: server}
		b.url = b.create("q", nil)
		b.send("x")
		if !wasCut(func() {
			server.ServeHTTP(unwritable{httptest.NewRecorder()}, request("POST", "ReceiveMessage", `{"QueueUrl":"q"}`, nil))
		}) {
			t.Error("the connection was not cut")
		}
		if n := len(b.receive(b.url)); n != visible {
			t.Errorf("with KeepUnwritten %v, %d messages are visible, want %d", keep, n, visible)
		}
	}
}

func wasCut(f func()) (cut bool) {
	defer func() { cut = recover() == http.ErrAbortHandler }()
	f()
	return false
}

func withoutOutput() *slog.Logger { return slog.New(slog.DiscardHandler) }

// failing logs as failures of the test.
func failing(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(testWriter{t}, nil)) }

type testWriter struct{ t *testing.T }

func (w testWriter) Write(line []byte) (int, error) {
	w.t.Errorf("logged %s", line)
	return len(line), nil
}

// parsedRequest reads a request as a server does. The error is that of a request
// that no handler sees.
func parsedRequest(method, path string, body []byte) (*http.Request, error) {
	text := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost:9324\r\nContent-Length: %d\r\n\r\n%s", method, path, len(body), body)
	return http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
}
