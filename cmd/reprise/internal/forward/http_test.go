package forward_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/forward"
	"github.com/reprise-sqs/reprise/retry"
)

func newHTTP(t *testing.T, url string) *forward.HTTP {
	t.Helper()
	target, err := forward.NewHTTP(forward.HTTPConfig{URL: url, Queue: "orders", UserAgent: "reprise/test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	return target
}

// TestHTTPAnswers: what each answer does to the message.
func TestHTTPAnswers(t *testing.T) {
	const base = time.Second // the default policy's first wait, without jitter
	date := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	dated := func(after time.Duration) http.Header {
		return http.Header{
			"Date":        {date.Format(http.TimeFormat)},
			"Retry-After": {date.Add(after).Format(http.TimeFormat)},
		}
	}
	asks := func(value string) http.Header { return http.Header{"Retry-After": {value}} }
	for _, test := range []struct {
		status int
		header http.Header
		action retry.Action // 0: success
		wait   time.Duration
	}{
		{status: 200}, {status: 201}, {status: 202}, {status: 204}, {status: 299},
		{status: 301, header: http.Header{"Location": {"/elsewhere"}}, action: retry.ActionRetry, wait: base},
		{status: 304, action: retry.ActionRetry, wait: base},
		{status: 307, header: http.Header{"Location": {"/elsewhere"}}, action: retry.ActionRetry, wait: base},
		{status: 400, action: retry.ActionDeadLetter},
		{status: 401, action: retry.ActionRetry, wait: base},
		{status: 402, action: retry.ActionRetry, wait: base},
		{status: 403, action: retry.ActionRetry, wait: base},
		{status: 404, action: retry.ActionRetry, wait: base},
		{status: 405, action: retry.ActionRetry, wait: base},
		{status: 406, action: retry.ActionRetry, wait: base},
		{status: 407, action: retry.ActionRetry, wait: base},
		{status: 408, action: retry.ActionRetry, wait: base},
		{status: 409, action: retry.ActionDeadLetter},
		{status: 410, action: retry.ActionRetry, wait: base},
		{status: 411, action: retry.ActionRetry, wait: base},
		{status: 412, action: retry.ActionDeadLetter},
		{status: 414, action: retry.ActionRetry, wait: base},
		{status: 415, action: retry.ActionRetry, wait: base},
		{status: 421, action: retry.ActionRetry, wait: base},
		{status: 413, header: asks("9"), action: retry.ActionDeadLetter},
		{status: 422, action: retry.ActionDeadLetter},
		{status: 424, action: retry.ActionDeadLetter},
		{status: 425, action: retry.ActionRetry, wait: base},
		{status: 426, action: retry.ActionRetry, wait: base},
		{status: 428, action: retry.ActionDeadLetter},
		{status: 429, action: retry.ActionRetry, wait: base},
		{status: 429, header: asks("7"), action: retry.ActionRetry, wait: 7 * time.Second},
		{status: 429, header: asks(" 7 "), action: retry.ActionRetry, wait: 7 * time.Second},
		{status: 429, header: asks("0"), action: retry.ActionRetry, wait: base},
		{status: 429, header: asks("-5"), action: retry.ActionRetry, wait: base},
		{status: 429, header: asks("soon"), action: retry.ActionRetry, wait: base},
		{status: 429, header: asks("7.5"), action: retry.ActionRetry, wait: base},
		{status: 429, header: asks("86400"), action: retry.ActionRetry, wait: 12 * time.Hour},
		{status: 429, header: asks("99999999999999999999999"), action: retry.ActionRetry, wait: 12 * time.Hour},
		{status: 429, header: dated(90 * time.Second), action: retry.ActionRetry, wait: 90 * time.Second},
		{status: 429, header: dated(-time.Minute), action: retry.ActionRetry, wait: base},
		{status: 429, header: dated(365 * 24 * time.Hour), action: retry.ActionRetry, wait: 12 * time.Hour},
		{status: 431, action: retry.ActionDeadLetter},
		{status: 451, action: retry.ActionDeadLetter},
		{status: 500, action: retry.ActionRetry, wait: base},
		{status: 500, header: asks("7"), action: retry.ActionRetry, wait: base},
		{status: 502, action: retry.ActionRetry, wait: base},
		{status: 503, action: retry.ActionRetry, wait: base},
		{status: 503, header: asks("120"), action: retry.ActionRetry, wait: 2 * time.Minute},
		{status: 599, action: retry.ActionRetry, wait: base},
	} {
		t.Run(fmt.Sprint(test.status, test.header.Get("Retry-After")), func(t *testing.T) {
			var requests atomic.Int32
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				for name, values := range test.header {
					w.Header()[name] = values
				}
				w.WriteHeader(test.status)
			}))
			defer srv.Close()

			err := newHTTP(t, srv.URL).Handle(t.Context(), message("{}"))
			if test.action == 0 {
				if err != nil {
					t.Fatalf("Handle = %v, want success", err)
				}
				return
			}
			if err == nil {
				t.Fatal("Handle succeeded, so the message would be deleted")
			}
			action, wait := decide(err)
			if action != test.action || action == retry.ActionRetry && wait != test.wait {
				t.Errorf("decided %v after %v, want %v after %v: %v", action, wait, test.action, test.wait, err)
			}
			if status, ok := errors.AsType[*forward.StatusError](err); !ok || status.Status != test.status {
				t.Errorf("error %v carries no status %d", err, test.status)
			}
			if got, want := reprise.IsUnavailable(err), test.action == retry.ActionRetry && test.status != 408 && test.status != 425; got != want {
				t.Errorf("unavailable: %v, want %v: %v", got, want, err)
			}
			if n := requests.Load(); n != 1 {
				t.Errorf("%d requests for one attempt", n)
			}
		})
	}
}

// TestRetryAfterOfATargetWithoutDate: a date to wait for is compared with this machine's time if the target's answer
// does not have the target's: the message waits as long as was asked, and not until the longest wait.
func TestRetryAfterOfATargetWithoutDate(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Date"] = nil // net/http adds none
		w.Header().Set("Retry-After", time.Now().Add(10*time.Minute).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer srv.Close()
	err := newHTTP(t, srv.URL).Handle(t.Context(), message("{}"))
	if action, wait := decide(err); action != retry.ActionRetry || wait < 9*time.Minute || wait > 10*time.Minute {
		t.Errorf("decided %v after %v, want a retry after 10m: %v", action, wait, err)
	}
}

// TestHTTPRequest: the body arrives byte for byte, with sqsd's headers.
func TestHTTPRequest(t *testing.T) {
	const body = `{"text":"שלום 🚀 日本語","n":1}`
	var got http.Header
	var gotBody []byte
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		gotBody, _ = io.ReadAll(r.Body)
		if r.Method != http.MethodPost || r.URL.Path != "/work" {
			t.Errorf("%s %s, want POST /work", r.Method, r.URL.Path)
		}
	}))
	defer srv.Close()

	if err := newHTTP(t, srv.URL+"/work").Handle(t.Context(), message(body)); err != nil {
		t.Fatal(err)
	}
	if string(gotBody) != body {
		t.Errorf("body %q, want %q", gotBody, body)
	}
	for _, name := range []string{"Accept-Encoding", "Content-Length"} {
		got.Del(name)
	}
	want := http.Header{
		"Content-Type":                   {"application/json"},
		"User-Agent":                     {"reprise/test"},
		"X-Aws-Sqsd-Msgid":               {"m-1"},
		"X-Aws-Sqsd-Queue":               {"orders"},
		"X-Aws-Sqsd-First-Received-At":   {"2026-11-21T07:00:00Z"},
		"X-Aws-Sqsd-Receive-Count":       {"4"},
		"X-Aws-Sqsd-Attr-Traceid":        {"abc"},
		"X-Aws-Sqsd-Attr-Name":           {"Zoë 🚀"},
		"X-Aws-Sqsd-Attr-Retries.max-X1": {"42"},
		"X-Reprise-Attempt":              {"3"},
		"X-Reprise-Origin-Id":            {"m-0"},
		"X-Reprise-Group-Id":             {"eu"},
		"X-Reprise-Left-Out":             {"3"}, // binary, with a line feed, with a name beyond ASCII
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
}

// TestHTTPReusesConnections: answers are read to their end, so that one connection
// carries every message, errors with long texts included.
func TestHTTPReusesConnections(t *testing.T) {
	var opened atomic.Int32
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		io.WriteString(w, strings.Repeat("no space left on device\n", 4000))
	}))
	srv.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()

	target := newHTTP(t, srv.URL)
	for range 20 {
		err := target.Handle(t.Context(), message("{}"))
		if err == nil {
			t.Fatal("Handle succeeded on 500")
		}
		if n := len(err.Error()); n > 600 {
			t.Fatalf("the error has %d bytes: %.80q", n, err)
		}
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("%d connections for 20 messages, want 1", n)
	}
}

// TestHTTPFailures: what never was an answer is retried by the policy, and the end
// of the context can be told apart.
func TestHTTPFailures(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	cut := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer cut.Close()
	short := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "done, I th")
	}))
	defer short.Close()
	stuck := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer stuck.Close()

	// No program of this machine trusts its certificate.
	untrusted := httptest.NewUnstartedServer(nil)
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	defer untrusted.Close()
	speechless, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer speechless.Close()
	go func() {
		for {
			conn, err := speechless.Accept()
			if err != nil {
				return
			}
			io.WriteString(conn, "220 smtp.example.com ESMTP\r\n")
			conn.Close()
		}
	}()

	stopped, stop := context.WithCancelCause(t.Context())
	stop(reprise.ErrStopping)
	late, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()

	for _, test := range []struct {
		name string
		ctx  context.Context
		url  string
		is   error // nil: any
	}{
		{"refused", t.Context(), closed.URL, nil},
		{"cut", t.Context(), cut.URL, io.EOF},
		{"success cut short", t.Context(), short.URL, io.ErrUnexpectedEOF},
		{"certificate", t.Context(), untrusted.URL, nil},
		{"http to https", t.Context(), strings.Replace(closed.URL, "http:", "https:", 1), nil},
		{"no HTTP", t.Context(), "http://" + speechless.Addr().String(), nil},
		{"no such host", t.Context(), "http://nosuch.invalid/", nil},
		{"timeout", late, stuck.URL, context.DeadlineExceeded},
		{"stopping", stopped, stuck.URL, reprise.ErrStopping},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := newHTTP(t, test.url).Handle(test.ctx, message("{}"))
			if err == nil {
				t.Fatal("Handle succeeded, so the message would be deleted")
			}
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("error %v is not %v", err, test.is)
			}
			if action, wait := decide(err); action != retry.ActionRetry || wait != time.Second {
				t.Errorf("decided %v after %v, want a retry by the policy", action, wait)
			}
			if down := test.is != reprise.ErrStopping; reprise.IsUnavailable(err) != down {
				t.Errorf("unavailable: %v, want %v: %v", !down, down, err)
			}
		})
	}
}

func TestHTTPBadConfig(t *testing.T) {
	for _, test := range []struct{ url, queue, want string }{
		{"", "q", `target URL ""`},
		{"localhost:8080/work", "q", "http://"},
		{"ftp://example.com", "q", "http://"},
		{"http://", "q", "host"},
		{"http://exa mple.com", "q", "http://localhost:8080/work"},
		{"http://example.com", "", "queue"},
	} {
		if _, err := forward.NewHTTP(forward.HTTPConfig{URL: test.url, Queue: test.queue}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("NewHTTP(%q, %q) = %v, want an error with %q", test.url, test.queue, err, test.want)
		}
	}
}

// TestContentTypeIsChecked: a value that no request can carry is an error at the
// start, not an outage of the target.
func TestContentTypeIsChecked(t *testing.T) {
	for _, bad := range []string{"a\nb", "application/json\n", "application/json\x00", "json text"} {
		_, err := forward.NewHTTP(forward.HTTPConfig{URL: "http://localhost", Queue: "orders", ContentType: bad})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("content type %q", bad)) {
			t.Errorf("content type %q: error %v", bad, err)
		}
	}
	for _, good := range []string{"", "application/json", "text/plain; charset=utf-8", "application/vnd.api+json"} {
		if _, err := forward.NewHTTP(forward.HTTPConfig{URL: "http://localhost", Queue: "orders", ContentType: good}); err != nil {
			t.Errorf("content type %q: %v", good, err)
		}
	}
}
