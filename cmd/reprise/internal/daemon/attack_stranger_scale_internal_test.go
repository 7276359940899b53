package daemon

// Holds off: a client without a key, who asks what this process has.

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestAttackScaleNamesNoQueue: /scale, which requires no signature, tells no name of a queue to who does not know it.
func TestAttackScaleNamesNoQueue(t *testing.T) {
	for _, queues := range [][]string{nil, {"payroll"}, {"payroll", "orders"}} {
		server := sqsserver.New(sqsserver.Config{})
		for _, name := range queues {
			if _, err := server.CreateQueue(t.Context(), &sqsserver.CreateQueueInput{QueueName: name}); err != nil {
				t.Fatal(err)
			}
		}
		d := &Daemon{sqs: server}
		d.cfg.Region = "us-east-1"
		for _, query := range []string{"", "?queue=x", "?queue=%2A"} {
			w := httptest.NewRecorder()
			d.serveScale(w, httptest.NewRequest("GET", "/scale"+query, nil))
			if text := w.Body.String(); strings.Contains(text, "payroll") || strings.Contains(text, "orders") {
				t.Errorf("/scale%s of %q answers %s", query, queues, text)
			}
		}
		w := httptest.NewRecorder()
		d.serveScale(w, httptest.NewRequest("GET", "/scale?queue=payroll", nil))
		if known := len(queues) > 0; known != strings.Contains(w.Body.String(), `"queue":"payroll"`) {
			t.Errorf("who knows the name gets %d %s", w.Code, w.Body)
		}
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	}
}
