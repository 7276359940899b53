package reprise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Transport has settings of the HTTP connections of an SQS client: see [Tuned]. The zero
// Transport is a good start.
type Transport struct {
	// Connections is how many idle connections to SQS are kept for later calls. Further
	// connections are closed after their call, and the next call needs a new one, with a
	// TLS handshake. A consumer uses up to (Concurrency+Prefetch)/10 connections for
	// receives, ten more than that for settlements, and eight for heartbeats, so the default
	// is enough for a Concurrency of 1,000; the SDK's own default is 10. An idle connection
	// is closed after 90 s. Zero or negative: the default. Default: 256.
	Connections int

	// SkipChecksums turns off the SDK's MD5 check of every received and sent body, which is
	// a fifth of the cost of a receive. TLS protects the bodies on their way; the check can
	// only find damage in SQS itself. Default: false, bodies are checked.
	SkipChecksums bool
}

const (
	defaultConnections = 256

	// dialTimeout is how long to wait for a connection. After it, the next attempt may reach
	// another of SQS's addresses. The SDK waits 30 s.
	dialTimeout = 5 * time.Second

	// headerTimeout is how long to wait for the reply's headers, so that calls on a
	// connection that has died silently end. The headers of a receive come at the end of
	// its long poll, and SQS can be slow.
	headerTimeout = maxLongPoll + 10*time.Second
)

// Tuned prepares an SQS client for a busy consumer:
//
//	client := sqs.NewFromConfig(cfg, reprise.Tuned(reprise.Transport{}))
//
// It keeps as many connections as a consumer uses at once. It also keeps net/http from
// dropping connections in use: the SDK closes a request's body when the reply's headers
// arrive, which net/http can mistake for a failed write. Then net/http closes the connection,
// in 2 to 3 % of the calls on a fast network, sometimes before the reply is read: ten messages
// are then in flight that no consumer has.
//
// Replies that SQS does not send are errors: 101 Switching Protocols, whose body no context
// ends; bodies of more than 64 MiB; and, unless MaxResponseHeaderBytes is set, headers of more
// than 64 KiB.
//
// Other HTTP settings of the client stay as they are: proxies, certificates, the SDK's
// handling of redirects. If the client's HTTPClient is not the SDK's own, Tuned changes only
// bodies and refuses 101, and leaves its connections alone. Use Tuned when a client is made, not as an
// option of single calls: each of those would open a new connection.
func Tuned(t Transport) func(*sqs.Options) {
	if t.Connections <= 0 {
		t.Connections = defaultConnections
	}
	return func(o *sqs.Options) {
		if t.SkipChecksums {
			o.DisableMessageChecksumValidation = true
		}
		client := o.HTTPClient
		if client == nil {
			client = awshttp.NewBuildableClient()
		}
		if sdk, ok := client.(*awshttp.BuildableClient); ok {
			client = sdk.WithTransportOptions(func(h *http.Transport) {
				t.apply(h)
				chosen := sdk.GetDialer().Timeout != awshttp.DefaultDialConnectTimeout
				if dial := h.DialContext; dial != nil && !chosen {
					h.DialContext = dialWithin(dialTimeout, dial)
				}
			})
		}
		o.HTTPClient = replyLimit{bodyBuffer{client}}
	}
}

// apply sets up the SDK's HTTP transport.
func (t Transport) apply(h *http.Transport) {
	h.MaxIdleConnsPerHost = t.Connections
	if h.MaxIdleConns > 0 { // zero: no limit
		h.MaxIdleConns = max(h.MaxIdleConns, t.Connections)
	}
	if h.ResponseHeaderTimeout == 0 {
		h.ResponseHeaderTimeout = headerTimeout
	}
	if h.MaxResponseHeaderBytes == 0 {
		h.MaxResponseHeaderBytes = maxReplyHeader
	}
	h.DisableCompression = true // SQS compresses nothing
}

type dialContext = func(ctx context.Context, network, addr string) (net.Conn, error)

// dialWithin returns dial with a time limit.
func dialWithin(limit time.Duration, dial dialContext) dialContext {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return dial(ctx, network, addr)
	}
}

// bodyBuffer is an HTTP client that copies the body of each request into memory, so that the
// SDK cannot close it while net/http uses it. The SDK's body, once closed, returns io.EOF from
// WriteTo, and net/http calls that after it has written the whole request, to see whether the
// body is longer than announced.
//
// There are two more effects: net/http sends the headers and a body in memory in one write;
// and it can repeat a request if an idle connection broke before any of it was written.
type bodyBuffer struct{ client sqs.HTTPClient }

// Do sends r with its body buffered. A body of unknown length stays as it is; requests to SQS
// have none.
func (b bodyBuffer) Do(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.ContentLength <= 0 {
		return b.client.Do(r)
	}
	// A new buffer for each request: net/http may read it after Do has returned, and does
	// not close a body that it knows to be in memory.
	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		return nil, fmt.Errorf("reading the request's body: %w", err)
	}
	buffered := r.WithContext(r.Context()) // a copy: the SDK closes the body of r
	buffered.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	buffered.Body, _ = buffered.GetBody()
	return b.client.Do(buffered)
}

const (
	// maxReply is more bytes than any reply of SQS has: ten messages of 1 MiB, with each
	// character escaped as six.
	maxReply = 64 << 20

	// maxReplyHeader is more bytes than the headers of any reply of SQS have, which are some
	// hundred. net/http would hold 10 MiB for each connection.
	maxReplyHeader = 64 << 10
)

// replyLimit is an HTTP client that refuses replies which are not from SQS: a body of more than
// maxReply would take all memory, and that of 101 Switching Protocols is the bare connection,
// of which no context ends a read.
type replyLimit struct{ client sqs.HTTPClient }

// Do sends r.
func (l replyLimit) Do(r *http.Request) (*http.Response, error) {
	reply, err := l.client.Do(r)
	if err != nil || reply.Body == nil {
		return reply, err
	}
	if reply.StatusCode == http.StatusSwitchingProtocols {
		_ = reply.Body.Close() // it is the connection
		return nil, errSwitching
	}
	reply.Body = &limitedBody{reply.Body, maxReply}
	return reply, nil
}

var errSwitching = errors.New("the reply was 101 Switching Protocols, so it is not from SQS: check the endpoint")

// limitedBody is the body of a reply, of which left bytes may still be read.
type limitedBody struct {
	io.ReadCloser
	left int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the reply is longer than %d MiB, so it is not from SQS: check the endpoint", maxReply>>20)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
