package reprisetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// Client returns a client of the real AWS SDK, its encoding, retries and checksums
// included, whose requests the queue's server answers without a network. It
// reaches every queue of the server. It does not sign requests unless the options have credentials:
// nothing would verify the signature, which costs a fifth of a call.
func (q *Queue) Client(options ...func(*sqs.Options)) *sqs.Client {
	return sqs.New(sqs.Options{
		Region:       q.info.Region,
		BaseEndpoint: aws.String("http://sqs." + q.info.Region + ".localhost"),
		Credentials:  aws.AnonymousCredentials{},
		HTTPClient:   transport{q.server},
	}, options...)
}

// transport passes requests to the server in the caller's goroutine.
type transport struct {
	server *sqsserver.Server
}

// Do returns an error when the request's context ends before the reply, as a network would;
// otherwise an SDK would treat the missing reply as an empty success.
func (t transport) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	w := &response{ctx: r.Context(), header: make(http.Header, 4), status: http.StatusOK}
	if !t.serve(w, inbound(r)) {
		if err := r.Context().Err(); err != nil {
			return nil, err
		}
		return nil, errConnection
	}
	return &http.Response{
		Status:        http.StatusText(w.status),
		StatusCode:    w.status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        w.header,
		ContentLength: int64(len(w.body)),
		Body:          io.NopCloser(bytes.NewReader(w.body)),
		Request:       r,
	}, nil
}

var errConnection = errors.New("reprisetest: the connection broke before the reply")

// inbound converts a client's request to the form that a server sees.
func inbound(r *http.Request) *http.Request {
	in := *r
	if in.Host == "" {
		in.Host = in.URL.Host
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	in.RequestURI = in.URL.RequestURI()
	return &in
}

// serve reports whether the server answered. A handler that cuts the connection panics with
// http.ErrAbortHandler; any other panic is a bug and is not recovered.
func (t transport) serve(w http.ResponseWriter, r *http.Request) (answered bool) {
	defer func() {
		if problem := recover(); problem != nil && problem != http.ErrAbortHandler { //nolint:errorlint // a recovered value, which net/http compares so
			panic(problem)
		}
	}()
	t.server.ServeHTTP(w, r)
	return true
}

// response is a reply in memory. Like a connection it fails writes once the client has gone, so
// that the server knows that the reply did not arrive.
type response struct {
	ctx    context.Context
	header http.Header
	status int
	body   []byte
}

func (w *response) Header() http.Header { return w.header }

func (w *response) WriteHeader(status int) { w.status = status }

func (w *response) Write(data []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	w.body = append(w.body, data...)
	return len(data), nil
}
