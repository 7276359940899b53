package attacks

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
)

// The attacker of this test is an endpoint that answers in place of SQS, with any reply.

// TestAttackEndlessReply: an endless reply is an error, and does not take all memory. It has an end here,
// far beyond what is read, so that the test fails and does not hang if all is read.
func TestAttackEndlessReply(t *testing.T) {
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, err := w.Write([]byte(`{"Messages":[{"MessageId":"1","Body":"`))
		megabyte := []byte(strings.Repeat("x", 1<<20))
		for written := 0; err == nil && written < 256; written++ {
			_, err = w.Write(megabyte)
		}
	}))
	defer endpoint.Close()
	_, err := kit.NewClient(endpoint.URL, reprise.Tuned(reprise.Transport{})).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(endpoint.URL + "/1/orders")})
	if err == nil || !strings.Contains(err.Error(), "longer than 64 MiB") {
		t.Errorf("ReceiveMessage = %v, want an error that says how long it may be", err)
	}
}

// TestAttackSwitchedEndpoint: a reply 101 Switching Protocols is an error. Its body is the bare connection, of
// which no context ends a read: a receive would hang for as long as the endpoint keeps the connection open.
func TestAttackSwitchedEndpoint(t *testing.T) {
	done := make(chan struct{})
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		<-done
	}))
	defer endpoint.Close()
	defer close(done)
	for name, options := range map[string][]func(*sqs.Options){
		"the SDK's client":  {reprise.Tuned(reprise.Transport{})},
		"the user's client": {func(o *sqs.Options) { o.HTTPClient = new(http.Client) }, reprise.Tuned(reprise.Transport{})},
	} {
		result := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			once := func(o *sqs.Options) { o.Retryer = aws.NopRetryer{} }
			_, err := kit.NewClient(endpoint.URL, append(options, once)...).ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: aws.String(endpoint.URL + "/1/orders")})
			result <- err
		}()
		select {
		case err := <-result:
			if err == nil || !strings.Contains(err.Error(), "101 Switching Protocols") {
				t.Errorf("%s: ReceiveMessage = %v, want an error about the reply", name, err)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s: ReceiveMessage hangs although its context has ended", name)
		}
	}
}

// TestAttackHeadersOfAnEndpoint: a head of more than 64 KiB is an error, so that an endpoint cannot make each
// connection hold 10 MiB.
func TestAttackHeadersOfAnEndpoint(t *testing.T) {
	for size, fits := range map[int]bool{60 << 10: true, 70 << 10: false} {
		endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-amz-json-1.0")
			w.Header().Set("X-Long", strings.Repeat("x", size))
			_, _ = io.WriteString(w, "{}")
		}))
		defer endpoint.Close()
		_, err := kit.NewClient(endpoint.URL, reprise.Tuned(reprise.Transport{})).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(endpoint.URL + "/1/orders")})
		if (err == nil) != fits {
			t.Errorf("a head of %d bytes: ReceiveMessage = %v, want it accepted: %v", size, err, fits)
		}
	}
}
