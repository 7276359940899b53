package reprise_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise"
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
	_, err := client(endpoint.URL, reprise.Tuned(reprise.Transport{})).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(endpoint.URL + "/1/orders")})
	if err == nil || !strings.Contains(err.Error(), "longer than 64 MiB") {
		t.Errorf("ReceiveMessage = %v, want an error that says how long it may be", err)
	}
}
