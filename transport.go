package reprise

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Transport are the settings of the HTTP connections that [Tuned] gives an SQS
// client. The zero Transport works and is good.
type Transport struct {
	// Connections is how many idle connections to SQS are kept for the next
	// calls. A connection beyond them is closed after its call and dialled anew,
	// with a TLS handshake, for the next. A consumer uses up to
	// (Concurrency+Prefetch)/10 for receives, ten more than that for settlements
	// and eight for heartbeats, so the default serves a Concurrency of 1,000; the
	// SDK's own default is 10. Only what a burst has needed is kept, for 90 s.
	// Default: 256.
	Connections int

	// SkipChecksums turns off the SDK's MD5 check of every received and sent
	// body, a fifth of the cost of a receive. TLS protects the bodies on their
	// way; the check can only find what SQS itself has damaged. Default: checked.
	SkipChecksums bool
}

const (
	defaultConnections = 256

	// A connection that is not there after this long is not coming: the next
	// attempt may reach another of SQS's addresses. The SDK waits 30 s.
	dialTimeout = 5 * time.Second

	// headerTimeout ends a call on a connection that has died silently. The
	// headers of a receive come at the end of its long poll, and SQS can be slow.
	headerTimeout = maxLongPoll + 10*time.Second
)

// Tuned makes an SQS client fit for a busy consumer:
//
//	client := sqs.NewFromConfig(cfg, reprise.Tuned(reprise.Transport{}))
//
// Connections are kept for as many calls as a consumer makes at once, and
// survive their calls: the SDK closes a request's body when the reply's headers
// arrive, which net/http can take for a failed write. It then drops the
// connection, in 2 to 3 % of the calls on a fast network, now and then with the
// reply still in it: ten messages that are in flight and that nobody has.
//
// Whatever else the client's HTTP settings say is kept: proxies, certificates,
// the SDK's treatment of redirects. Of an HTTPClient that is not the SDK's own,
// only the request bodies are treated, its connections are its owner's. Tuned is
// for the making of a client, not for single calls, each of which would dial.
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
	h.DisableCompression = true // SQS compresses nothing
}

type dialContext = func(ctx context.Context, network, addr string) (net.Conn, error)

// dialWithin is dial with a time limit.
func dialWithin(limit time.Duration, dial dialContext) dialContext {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return dial(ctx, network, addr)
	}
}

// bodyBuffer is an HTTP client that gives its requests a body of its own, in
// memory, which nobody closes under net/http's hands. The SDK's body, once
// closed, answers WriteTo with io.EOF, and net/http calls that after it has
// written the whole request, to see whether the body is longer than announced.
//
// Two things follow besides: net/http sends the headers of a body that it knows
// to be in memory together with it, in one write; and it can send a request
// again of which nothing had been written when an idle connection broke.
type bodyBuffer struct{ client sqs.HTTPClient }

// Do sends r with its body buffered. A body of unknown length, which SQS has
// none of, is left as it is.
func (b bodyBuffer) Do(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.ContentLength <= 0 {
		return b.client.Do(r)
	}
	// A new buffer each time: net/http may read it after Do has returned, and
	// says when it is done only to bodies that it does not know to be in memory.
	body := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, body); err != nil {
		return nil, fmt.Errorf("reading the request's body: %w", err)
	}
	buffered := r.WithContext(r.Context()) // a copy: r stays the SDK's, to close
	buffered.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	buffered.Body, _ = buffered.GetBody()
	return b.client.Do(buffered)
}

// maxReply is more than any reply of SQS has: ten messages of 1 MiB, each character of
// them escaped in six.
const maxReply = 64 << 20

// replyLimit is an HTTP client whose replies end at maxReply: an endpoint
// that answers in place of SQS, without end, would take all memory.
type replyLimit struct{ client sqs.HTTPClient }

// Do sends r.
func (l replyLimit) Do(r *http.Request) (*http.Response, error) {
	reply, err := l.client.Do(r)
	if err == nil && reply.Body != nil {
		reply.Body = &limitedBody{reply.Body, maxReply}
	}
	return reply, err
}

// limitedBody is the body of a reply, of which so many bytes may still be read.
type limitedBody struct {
	io.ReadCloser
	left int64
}

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the reply is longer than %d MiB: it is none of SQS", maxReply>>20)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
