package receiving

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
)

// sdkConnections is the SDK's own HTTP client, with wrap around each of its connections.
func sdkConnections(wrap func(net.Conn) net.Conn) sqs.HTTPClient {
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return wrap(conn), nil
		}
	})
}

// over returns an option with which a client uses h.
func over(h sqs.HTTPClient) func(*sqs.Options) {
	return func(o *sqs.Options) { o.HTTPClient = h }
}

// countingServer answers every request with an empty object, after wait, and
// counts the connections made to it.
func countingServer(t *testing.T, wait func()) (endpoint string, connections *atomic.Int64) {
	connections = new(atomic.Int64)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Errorf("the server could not read a request: %v", err)
		}
		wait()
		io.WriteString(w, "{}")
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s.URL, connections
}

func receive(ctx context.Context, c *sqs.Client) error {
	_, err := c.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: aws.String("http://localhost/1/orders"), MaxNumberOfMessages: 10})
	return err
}

// slowWriter is a connection that returns from sending the end of a request only
// when the caller has the reply's headers and has closed the request's body: the
// order of events that costs connections, which by itself is a rare one.
type slowWriter struct {
	net.Conn
	closed <-chan struct{}
}

func (c slowWriter) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if bytes.HasSuffix(p, []byte("}")) { // of the body; the headers end otherwise
		<-c.closed
	}
	return n, err
}

// promptCloser closes a request's body as soon as the headers of the reply have arrived, as the SDK
// does, and reports that it did.
type promptCloser struct {
	sqs.HTTPClient
	closed chan<- struct{}
}

func (c promptCloser) Do(r *http.Request) (*http.Response, error) {
	reply, err := c.HTTPClient.Do(r)
	r.Body.Close()
	c.closed <- struct{}{}
	return reply, err
}

func TestTunedCallsShareOneConnection(t *testing.T) {
	const calls = 20
	dialled := func(t *testing.T, tune func(*sqs.Options)) int64 {
		endpoint, connections := countingServer(t, func() {})
		closed := make(chan struct{}, 1)
		c := kit.NewClient(endpoint,
			over(sdkConnections(func(conn net.Conn) net.Conn { return slowWriter{conn, closed} })),
			tune,
			func(o *sqs.Options) { o.HTTPClient = promptCloser{o.HTTPClient, closed} },
		)
		for range calls {
			// The SDK's own client may fail while it reads a reply, which closes its connection too.
			_ = receive(t.Context(), c)
		}
		return connections.Load()
	}
	if n := dialled(t, reprise.Tuned(reprise.Transport{})); n != 1 {
		t.Errorf("%d calls of a tuned client used %d connections, want 1", calls, n)
	}
	if n := dialled(t, func(*sqs.Options) {}); n == 1 {
		t.Errorf("%d calls of the SDK's own client used 1 connection: this test no longer shows what Tuned mends", calls)
	}
}

func TestTunedKeepsTheConnectionsOfABurst(t *testing.T) {
	const calls = 48 // at once; the SDK keeps 10
	var arrived sync.WaitGroup
	endpoint, connections := countingServer(t, func() {
		arrived.Done()
		arrived.Wait()
	})
	c := kit.NewClient(endpoint, reprise.Tuned(reprise.Transport{Connections: calls}))
	for range 3 {
		arrived.Add(calls)
		var burst sync.WaitGroup
		for range calls {
			burst.Go(func() {
				if err := receive(t.Context(), c); err != nil {
					t.Error(err)
				}
			})
		}
		burst.Wait()
	}
	if n := connections.Load(); n != calls {
		t.Errorf("three bursts of %d calls used %d connections, want %d", calls, n, calls)
	}
}

func TestTunedKeepsTheProxy(t *testing.T) {
	var asked atomic.Value
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Store(r.URL.Host)
		io.WriteString(w, "{}")
	}))
	t.Cleanup(proxy.Close)
	at, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	behind := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) { t.Proxy = http.ProxyURL(at) })
	c := kit.NewClient("http://sqs.example.invalid", over(behind), reprise.Tuned(reprise.Transport{}))
	if err := receive(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if got := asked.Load(); got != "sqs.example.invalid" {
		t.Errorf("the proxy was asked for host %v, want sqs.example.invalid", got)
	}
}

// clientFunc is an HTTP client that is not the SDK's.
type clientFunc func(*http.Request) (*http.Response, error)

func (f clientFunc) Do(r *http.Request) (*http.Response, error) { return f(r) }

func TestTunedKeepsAnHTTPClientOfTheUsers(t *testing.T) {
	var first, again string
	var length int64
	users := clientFunc(func(r *http.Request) (*http.Response, error) {
		length = r.ContentLength
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		first = string(body)
		repeated, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		if body, err = io.ReadAll(repeated); err != nil {
			return nil, err
		}
		again = string(body)
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}"))}, nil
	})
	c := kit.NewClient("http://localhost", over(users), reprise.Tuned(reprise.Transport{}))
	if err := receive(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(first, `"QueueUrl":"http://localhost/1/orders"`) || first != again || length != int64(len(first)) {
		t.Errorf("body %q, then %q, announced as %d bytes: want the request twice, and its length", first, again, length)
	}
}

func TestTunedCallsEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	release := make(chan struct{})
	endpoint, _ := countingServer(t, func() {
		cancel()
		<-release
	})
	err := receive(ctx, kit.NewClient(endpoint, reprise.Tuned(reprise.Transport{})))
	close(release)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v, want context.Canceled", err)
	}
}

// A reply's headers may take a whole long poll, and not much more.
func TestTunedWaitsForALongPollButNotForever(t *testing.T) {
	for _, test := range []struct {
		name    string
		latency time.Duration
		fails   bool
	}{
		{"long poll", 22 * time.Second, false},
		{"dead connection", time.Hour, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var server sync.WaitGroup
				defer server.Wait()
				piped := awshttp.NewBuildableClient().WithTransportOptions(func(tr *http.Transport) {
					tr.Proxy = nil
					tr.DialContext = func(context.Context, string, string) (net.Conn, error) {
						ours, theirs := net.Pipe()
						server.Go(func() { answer(theirs, test.latency) })
						return ours, nil
					}
					tr.DisableKeepAlives = true // so that its goroutines end with the call
				})
				c := kit.NewClient("http://localhost", over(piped), reprise.Tuned(reprise.Transport{}))
				began := time.Now()
				err := receive(t.Context(), c)
				took := time.Since(began)
				if failed := err != nil; failed != test.fails || took > 30*time.Second {
					t.Errorf("the call took %v and ended with error %v", took, err)
				}
			})
		})
	}
}

// answer reads one request from conn and answers it after latency.
func answer(conn net.Conn, latency time.Duration) {
	defer conn.Close()
	r, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	time.Sleep(latency)
	fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
}
