// Package httpclient makes the program's HTTP clients: those of targets, probes, endpoints of
// AWS and others, and processes of this program. All replies are foreign text, so one place
// bounds what every client accepts.
package httpclient

import (
	"errors"
	"net/http"
)

// maxHeader is how many bytes the head of a reply may have; interim replies (1xx) before it
// count too. net/http's default is 10 MiB, which a target could make each of its connections
// hold. Servers themselves seldom accept more than 64 KiB of a client.
const maxHeader = 64 << 10

// New returns a client that uses transport, which belongs to the client from now on. A reply
// is an error if its head has more than 64 KiB, or if it switches protocols: [ErrSwitching].
// Redirects are not followed: they are replies like others, since another server must not get
// what was sent to this one.
func New(transport *http.Transport) *http.Client {
	transport.MaxResponseHeaderBytes = maxHeader
	return &http.Client{
		Transport:     guarded{transport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Default returns a client with a transport like net/http's default one, which uses the
// proxies of the environment.
func Default() *http.Client {
	return New(http.DefaultTransport.(*http.Transport).Clone()) // it is one
}

// ErrSwitching is returned in place of a reply 101 Switching Protocols, which no request of the
// program asks for. net/http hands such a reply on with the bare connection as its body. No
// context and no timeout ends a read of that, so a handler would hang for as long as the other
// side keeps the connection open.
var ErrSwitching = errors.New("the reply was 101 Switching Protocols, which was not asked for: check the URL, and what answers there")

// guarded is a transport that refuses replies that switch protocols.
type guarded struct{ *http.Transport }

// RoundTrip sends r.
func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	reply, err := g.Transport.RoundTrip(r)
	if err != nil || reply.StatusCode != http.StatusSwitchingProtocols {
		return reply, err
	}
	_ = reply.Body.Close() // it is the connection
	return nil, ErrSwitching
}
