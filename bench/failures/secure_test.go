package failures_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

var tlsFailures = []failure{
	{"TLS", "cut in the handshake", "EOF", true, func(t *testing.T) error {
		return get("https://" + accepting(t, func(conn net.Conn) { _, _ = conn.Read(make([]byte, 16<<10)) }))(t)
	}},
	{"TLS", "a handshake that hangs", "TLS handshake timeout", true, func(t *testing.T) error {
		addr := accepting(t, func(net.Conn) { <-t.Context().Done() })
		return do(t.Context(), &http.Transport{TLSHandshakeTimeout: 10 * time.Millisecond}, "https://"+addr)
	}},
	{"TLS", "no version in common", "remote error: tls: protocol version not supported", true, func(t *testing.T) error {
		srv := secure(t, &tls.Config{MinVersion: tls.VersionTLS13}, nil)
		return do(t.Context(), trusting(srv, &tls.Config{MaxVersion: tls.VersionTLS12}), srv.URL)
	}},
	{"TLS", "a client certificate is wanted", "remote error: tls: handshake failure", true, func(t *testing.T) error {
		// With TLS 1.3 the client's handshake is over before the server refuses it, and the client's next
		// write may fail first.
		srv := secure(t, &tls.Config{ClientAuth: tls.RequireAnyClientCert, MaxVersion: tls.VersionTLS12}, nil)
		return do(t.Context(), trusting(srv, new(tls.Config)), srv.URL)
	}},
	{"TLS", "a certificate that nobody vouches for", "tls: failed to verify certificate", true, func(t *testing.T) error {
		return get(secure(t, new(tls.Config), nil).URL)(t)
	}},
	{"TLS", "a certificate that has expired", "certificate has expired", true, func(t *testing.T) error {
		srv := secure(t, new(tls.Config), nil)
		later := func() time.Time { return time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC) }
		return do(t.Context(), trusting(srv, &tls.Config{Time: later}), srv.URL)
	}},
	{"TLS", "a server without TLS", "server gave HTTP response to HTTPS client", true, func(t *testing.T) error {
		return get("https://" + accepting(t, says("HTTP/1.1 400 Bad Request\r\n\r\n")))(t)
	}},
	{"TLS", "a server of another protocol", "first record does not look like a TLS handshake", true, func(t *testing.T) error {
		return get("https://" + accepting(t, says("220 mail.example ESMTP\r\n")))(t)
	}},
}

var http2Failures = []failure{
	{"HTTP/2", "GOAWAY before the answer", "server sent GOAWAY and closed the connection", true, func(t *testing.T) error {
		return framed(t, func(f *http2.Framer, stream uint32) error {
			return f.WriteGoAway(stream, http2.ErrCodeEnhanceYourCalm, nil)
		})
	}},
	{"HTTP/2", "the stream is reset", "stream error: stream ID 1; INTERNAL_ERROR", true, func(t *testing.T) error {
		return framed(t, func(f *http2.Framer, stream uint32) error {
			if err := f.WriteRSTStream(stream, http2.ErrCodeInternal); err != nil {
				return err
			}
			_, err := f.ReadFrame() // until the client closes
			return err
		})
	}},
	{"HTTP/2", "the stream is reset in the body", "stream error: stream ID 1; INTERNAL_ERROR", true, func(t *testing.T) error {
		srv := secure(t, new(tls.Config), func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "{")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		})
		return do(t.Context(), trusting(srv, new(tls.Config)), srv.URL)
	}},
	{"HTTP/2", "cut before the answer", "EOF", true, func(t *testing.T) error {
		return framed(t, func(*http2.Framer, uint32) error { return nil })
	}},
	{"HTTP/2", "cut in the body", "EOF", true, func(t *testing.T) error {
		var srv *httptest.Server
		srv = secure(t, new(tls.Config), func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "{")
			_ = http.NewResponseController(w).Flush()
			srv.CloseClientConnections()
		})
		return do(t.Context(), trusting(srv, new(tls.Config)), srv.URL)
	}},
}

// secure is a server with TLS and HTTP/2, and a certificate of its own.
func secure(t *testing.T, cfg *tls.Config, handle http.HandlerFunc) *httptest.Server {
	srv := httptest.NewUnstartedServer(handle)
	srv.EnableHTTP2 = true
	srv.TLS = cfg
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // which would tell of each failure
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

// trusting is a transport that accepts the server's certificate.
func trusting(srv *httptest.Server, cfg *tls.Config) *http.Transport {
	cfg.RootCAs = x509.NewCertPool()
	cfg.RootCAs.AddCert(srv.Certificate())
	return &http.Transport{TLSClientConfig: cfg, ForceAttemptHTTP2: true}
}

// framed calls a server that answers a request by answer, frame by frame, and then closes the
// connection.
func framed(t *testing.T, answer func(f *http2.Framer, stream uint32) error) error {
	srv := secure(t, &tls.Config{NextProtos: []string{"h2"}}, nil)
	addr := accepting(t, func(raw net.Conn) {
		conn := tls.Server(raw, srv.TLS)
		defer conn.Close()
		if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
			return
		}
		f := http2.NewFramer(conn, conn)
		if err := f.WriteSettings(); err != nil {
			return
		}
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			if h, ok := frame.(*http2.HeadersFrame); ok {
				_ = answer(f, h.StreamID) // the client's error tells
				return
			}
		}
	})
	return do(t.Context(), trusting(srv, new(tls.Config)), "https://"+addr)
}
