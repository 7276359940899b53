package daemon

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// This test holds off a client without a key, which may connect.

// TestAttackHandshakesFillNoLog: thousands of failed handshakes have a line in ten
// seconds, with their number; what else goes wrong has a line for each.
func TestAttackHandshakesFillNoLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		server := newHTTPServer(nil, slog.New(slog.NewTextHandler(&log, nil)))
		for range 3 {
			for i := range 5000 {
				server.ErrorLog.Printf("http: TLS handshake error from 127.0.0.1:%d: tls: first record does not look like a TLS handshake", i)
				server.ErrorLog.Print("http: TLS handshake error from 127.0.0.1:1: EOF")
			}
			time.Sleep(logHandshakesEvery)
		}
		server.ErrorLog.Print("http: Accept error: too many open files")
		text := log.String()
		if strings.Count(text, "\n") != 4 || strings.Count(text, "left_out=4999") != 2 || !strings.Contains(text, "too many open files") {
			t.Errorf("the log has %d lines: %.1000s", strings.Count(text, "\n"), text)
		}
	})
}
