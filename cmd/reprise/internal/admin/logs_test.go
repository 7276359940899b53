package admin_test

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
)

// TestLogHasNoContent: what an edit writes into messages, and what a message has that is sent, may be secret. The log,
// which is kept elsewhere and longer than the timeline, says what was done without it.
func TestLogHasNoContent(t *testing.T) {
	s := serve(t, func(cfg *admin.Config) {
		cfg.JobQueue = func(_ context.Context, queue string) (admin.JobQueue, error) {
			return admin.JobQueue{URL: queueURL + queue, Client: awsclient.Local("http://127.0.0.1:1", "us-east-1", func(o *sqs.Options) { o.RetryMaxAttempts = 1 })}, nil
		}
	})
	s.call("POST", admin.Path+"jobs", `{"action":"redrive","queue":"dead","any_queue":true,"all":true,"edit":{"find":"a","replace":"secret-7","set":{"tenant":"secret-8"},"remove":["trace"]}}`)
	s.call("POST", admin.Path+"queues/orders/messages", `{"body":"secret-9","attributes":{"a":{"type":"String","value":"secret-9"}}}`)
	if err := s.api.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	log := s.log.String()
	if strings.Contains(log, "secret-") {
		t.Errorf("the log has the content of messages:\n%s", log)
	}
	for _, want := range []string{"action=redrive", "tenant", "trace", "action=send"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log does not say %q:\n%s", want, log)
		}
	}
}
