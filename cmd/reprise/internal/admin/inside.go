package admin

import (
	"bytes"
	"io"
	"net/http"
)

// The dashboard is a part of the same process. It asks the API as other clients do, without a connection, so
// that every rule about queues and actions exists once: read-only mode and the audit log hold for it too.

// Check returns why a request for the dashboard is refused, nil if it is not, by the rule for requests to
// the API. signedIn reports that its client has shown the token before; if the error is Unauthorized, it has to
// show it now.
func (a *API) Check(r *http.Request, signedIn bool) *Error {
	err := a.guard.judge(r, signedIn)
	if err != nil && !err.Unauthorized() { // everybody begins without the token
		a.guard.log(r, err)
	}
	return err
}

// SignIn checks a token that a client shows once, to be known by a session from then on. The log gets a
// line for each token that is right, and for wrong ones as often as they are answered in turn.
func (a *API) SignIn(r *http.Request, token string) *Error {
	if a.guard.isToken(token) {
		a.audit(r, "sign-in", "", struct{}{}, nil)
		return nil
	}
	if err := a.guard.guesses.wrong(r.Context()); err != nil {
		a.guard.log(r, err)
		return err
	}
	err := problem(http.StatusUnauthorized, "unauthorized", "this is not the token of this process: it is in the place that --admin-token names")
	a.audit(r, "sign-in", "", struct{}{}, err)
	return err
}

// Inside returns a client that calls the API from inside the process, for somebody whose requests have been
// checked already; remote is their address, for the audit log.
func (a *API) Inside(remote string) *Client {
	return &Client{address: "this process", base: "http://localhost", http: &http.Client{Transport: inside{a, remote}}}
}

type inside struct {
	api    *API
	remote string
}

func (i inside) RoundTrip(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	in.RemoteAddr = i.remote
	if in.Body == nil {
		in.Body = http.NoBody
	}
	w := &insideReply{header: make(http.Header), status: http.StatusOK}
	i.api.mux.ServeHTTP(w, in)
	return &http.Response{
		StatusCode: w.status, Status: http.StatusText(w.status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, nil
}

// insideReply is a reply that is kept. Replies that do not end, the streams of events, fail: they need the
// controls of a connection.
type insideReply struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *insideReply) Header() http.Header               { return w.header }
func (w *insideReply) WriteHeader(status int)            { w.status = status }
func (w *insideReply) Write(p []byte) (n int, err error) { return w.body.Write(p) }
