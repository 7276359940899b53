//go:build unix

package main_test

// Holds off: a client without a key, which may connect to the server and send any bytes.

import (
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/journal"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestAttackRegionReachesNoTerminal: if an older journal has a region with control characters,
// check prints it escaped, the server starts, and /metrics stays text. New regions are checked.
func TestAttackRegionReachesNoTerminal(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	j, err := journal.Open(journal.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	old, err := sqsserver.Open(j, sqsserver.Config{Region: "eu\x1b[31m\xff", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := old.CreateQueue(t.Context(), &sqsserver.CreateQueueInput{QueueName: "q"}); err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	got := reprise(t, "", "check", dir)
	if got.code != 0 || strings.ContainsAny(got.stdout+got.stderr, "\x1b") || !strings.Contains(got.stdout, "eu") {
		t.Errorf("check: %d %+q %+q", got.code, got.stdout, got.stderr)
	}
	endpoint := start(t, "serve", "--addr", "127.0.0.1:0", "--data", dir).await("SQS endpoint")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint+"/?Action=CreateQueue&QueueName=q", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=any/20261123/eu\u009b2J/sqs/aws4_request")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d, want 400", response.StatusCode)
	}
	_, text := fetch(t, http.DefaultClient, endpoint+"/metrics")
	if strings.ContainsAny(text, "\x1b\u009b") || !utf8.ValidString(text) || !strings.Contains(text, "eu\uFFFD[31m\uFFFD") {
		t.Errorf("/metrics: %.2000q", text)
	}
}
