package daemon

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// fakeLambda is the API of a Lambda that runs nothing.
type fakeLambda struct{ http.Handler }

func (fakeLambda) Start()                     {}
func (fakeLambda) Stop(context.Context) error { return nil }

func (fakeLambda) Refuse(w http.ResponseWriter, _ *http.Request, err error) {
	http.Error(w, err.Error(), http.StatusForbidden)
}

// TestLambdaPart: Lambda's paths, and no others, are Lambda's; an invoke outlives the
// server's time limits, and a web page cannot make one.
func TestLambdaPart(t *testing.T) {
	const limit = 20 * time.Millisecond
	lambda := fakeLambda{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		time.Sleep(5 * limit)
		io.WriteString(w, "lambda")
	})}
	sqs := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "sqs") })
	pages, err := sqsserver.NewPageGuard(sqsserver.PageGuardConfig{})
	if err != nil {
		t.Fatal(err)
	}
	var ps parts
	ps.Add(LambdaPart(lambda, pages))
	server := httptest.NewUnstartedServer(ps.before(sqs))
	server.Config.ReadTimeout, server.Config.WriteTimeout = limit, limit
	server.Start()
	defer server.Close()
	for _, test := range []struct {
		path, origin, host string // the host, if it is not the server's
		status             int
		want               string // the text, of those that are answered
	}{
		{"/2015-03-31/functions/f/invocations", "", "", 200, "lambda"},
		{"/2019-09-30/functions/f/concurrency", "", "localhost:9324", 200, "lambda"},
		{"/2019-09-30/functions/f/concurrency", "", "[::1]:9324", 200, "lambda"},
		{"/2015-03-31/functions/f/invocations", "http://localhost:3000", "", 200, "lambda"},
		{"/2015-03-31/functions/f/invocations", "https://elsewhere.example", "", 403, ""},
		{"/2015-03-31/functions/f/invocations", "http://rebound.example:9324", "rebound.example:9324", 403, ""},
		{"/2015-03-31/functions/f/invocations", "", "127.0.0.1.rebound.example", 403, ""},
		{"/000000000000/2015-03-31", "", "sqs.example", 200, "sqs"},
		{"/", "", "", 200, "sqs"},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+test.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if test.host != "" {
			request.Host = test.host
		}
		if test.origin != "" {
			request.Header.Set("Origin", test.origin)
		}
		response, err := server.Client().Do(request)
		if err != nil {
			t.Errorf("%s: %v", test.path, err)
			continue
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != test.status || test.want != "" && string(text) != test.want {
			t.Errorf("%s at %q from %q answers %d %q, %v, want %d %q", test.path, test.host, test.origin, response.StatusCode, text, err, test.status, test.want)
		}
	}
}
