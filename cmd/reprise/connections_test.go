//go:build unix

package main_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

// TestServeLimitsConnections: if all connections have requests, one beyond the limit waits until
// another ends.
func TestServeLimitsConnections(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--memory", "--max-connections", "1")
	first, err := net.Dial("tcp", strings.TrimPrefix(endpoint, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(c net.Conn) {
		if _, err := io.WriteString(c, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(first, "POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: AmazonSQS.ListQueues\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Read(make([]byte, 1)); err != nil {
		t.Fatal(err) // the server waits for the body
	}
	second, err := net.Dial("tcp", strings.TrimPrefix(endpoint, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	ask(second)
	second.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if _, err := second.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the second connection was served beside the first: %v", err)
	}
	first.Close()
	second.SetReadDeadline(time.Now().Add(patience))
	if _, err := second.Read(make([]byte, 1)); err != nil {
		t.Errorf("the second connection was not served after the first: %v", err)
	}
}

// TestServeCutsSlowClients: a client that sends its header slowly, or too large a header, is cut
// off while others are served.
func TestServeCutsSlowClients(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--memory", "--queue", "q")
	slow, err := net.Dial("tcp", strings.TrimPrefix(endpoint, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cut := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, slow) // ends when the server closes
		cut <- err
	}()
	_, err = io.WriteString(slow, "POST / HTTP/1.1\r\nHost: localhost\r\n")
	for ; err == nil; _, err = io.WriteString(slow, "X") {
		if status, text := fetch(t, http.DefaultClient, endpoint+"/health"); status != 200 {
			t.Fatalf("meanwhile /health answered %d %s", status, text)
		}
		select {
		case <-cut:
		case <-ctx.Done():
			t.Fatal("the connection is still open")
		case <-time.After(500 * time.Millisecond):
			continue
		}
		break
	}

	request, err := http.NewRequest("POST", endpoint, bytes.NewReader(nil))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Large", strings.Repeat("x", 100<<10))
	resp, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of 100 KiB answered %d", resp.StatusCode)
	}
	large, err := http.Post(endpoint, "application/x-www-form-urlencoded", io.LimitReader(zeros{}, 9<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer large.Body.Close()
	if text, _ := io.ReadAll(large.Body); large.StatusCode != 400 || !strings.Contains(string(text), "longer than any valid request") {
		t.Errorf("a body of 9 MiB answered %d %s", large.StatusCode, text)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '0'
	}
	return len(b), nil
}
