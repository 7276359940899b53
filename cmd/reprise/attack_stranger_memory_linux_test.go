package main_test

// Holds off: a client without a key, which may open connections and send any bytes.

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestAttackBodiesAnnounced: 100 connections announce 8 MiB each under the key's name, with a
// signature that is wrong, and send none of it. Without the defence that took 800 MiB.
func TestAttackBodiesAnnounced(t *testing.T) {
	t.Parallel()
	p := start(t, "serve", "--memory", "--addr", "127.0.0.1:0", "--access-key", "AKID", "--secret-file", written(t, "secret", "open-sesame\n"), "--queue", "q")
	endpoint := p.await("SQS endpoint")
	address := strings.TrimPrefix(endpoint, "http://")
	get(t, endpoint+"/health")
	before := residentMemory(t, p.cmd.Process.Pid)
	now := time.Now().UTC()
	for range 100 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		// A server that waits for the body says so.
		if _, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: %s\r\nExpect: 100-continue\r\nX-Amz-Target: AmazonSQS.ListQueues\r\nX-Amz-Date: %s\r\n"+
			"Authorization: AWS4-HMAC-SHA256 Credential=AKID/%s/us-east-1/sqs/aws4_request, SignedHeaders=host;x-amz-date;x-amz-target, Signature=00\r\n"+
			"Content-Length: %d\r\n\r\n", address, now.Format("20060102T150405Z"), now.Format("20060102"), 8<<20); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		answer := make([]byte, len("HTTP/1.1 100"))
		if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "HTTP/1.1 100" {
			t.Fatalf("the server does not wait for the body: %q, %v", answer, err)
		}
	}
	after := residentMemory(t, p.cmd.Process.Pid)
	t.Logf("%d MiB before, %d MiB with 100 bodies announced", before>>20, after>>20)
	if grown := after - before; grown > 100<<20 {
		t.Errorf("grew by %d MiB, want at most 100", grown>>20)
	}
}

// TestAttackIdleConnections: 60 idle connections against a limit of 60 lock nobody out.
func TestAttackIdleConnections(t *testing.T) {
	t.Parallel()
	p := start(t, "serve", "--memory", "--addr", "127.0.0.1:0", "--max-connections", "60")
	endpoint := p.await("SQS endpoint")
	for range 60 {
		conn, err := net.Dial("tcp", strings.TrimPrefix(endpoint, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := io.WriteString(conn, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		if _, err := conn.Read(make([]byte, 1<<10)); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
		if status, text := fetch(t, client, endpoint+"/health"); status != http.StatusOK {
			t.Errorf("%d %s", status, text)
		}
	}
	p.await("the limit of connections is reached")
}
