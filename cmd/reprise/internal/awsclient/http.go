package awsclient

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/httpclient"
)

// RedirectError is returned in place of following a redirect. SQS and Lambda send none, and
// messages and credentials would go to whatever server it names.
type RedirectError struct {
	Status   int
	From, To string // URLs
}

func (e *RedirectError) Error() string {
	return fmt.Sprintf("%s redirects to %s (status %d), and redirects are not followed: call the service by its own URL", e.From, e.To, e.Status)
}

// RetryableError tells the SDK not to send the request again.
func (*RedirectError) RetryableError() bool { return false }

// httpClient is an HTTP client whose redirects are errors.
type httpClient struct {
	client    *http.Client
	transport *http.Transport // the client's
}

// newHTTPClient returns a client with the certificates and proxies of the SDK's client
// configured, if there is one. Its connections are set up as [reprise.Tuned] does it, which
// changes only those of the SDK's own clients.
func newHTTPClient(configured aws.HTTPClient) httpClient {
	const (
		connections   = 256              // idle ones kept; see reprise.Transport
		dialTimeout   = 5 * time.Second  // the next attempt may reach another address
		headerTimeout = 30 * time.Second // the longest long poll, and ten seconds
	)
	sdk, ok := configured.(*awshttp.BuildableClient)
	if !ok {
		sdk = awshttp.NewBuildableClient()
	}
	transport := sdk.WithDialerOptions(func(d *net.Dialer) { d.Timeout = dialTimeout }).GetTransport()
	transport.MaxIdleConnsPerHost, transport.MaxIdleConns = connections, connections
	transport.ResponseHeaderTimeout = headerTimeout
	transport.DisableCompression = true // SQS compresses nothing
	return over(transport)
}

// patient returns a client like c that waits for the head of a reply without a limit of its own.
func patient(c httpClient) httpClient {
	transport := c.transport.Clone()
	transport.ResponseHeaderTimeout = 0
	return over(transport)
}

func over(transport *http.Transport) httpClient {
	return httpClient{transport: transport, client: httpclient.New(transport)}
}

// Do sends r. A reply that redirects is a [*RedirectError].
func (c httpClient) Do(r *http.Request) (*http.Response, error) {
	reply, err := c.client.Do(r)
	if err != nil || reply.StatusCode/100 != 3 {
		return reply, err
	}
	_ = reply.Body.Close() // nothing in it is used
	to := reply.Header.Get("Location")
	if u, err := reply.Location(); err == nil {
		to = u.Redacted()
	}
	return nil, &RedirectError{Status: reply.StatusCode, From: r.URL.Redacted(), To: to}
}
