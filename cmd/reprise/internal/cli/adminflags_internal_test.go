package cli

import (
	"log/slog"
	"testing"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestFaultsPassTheServersOwnReads: what the server reads of itself, for the watcher and the dashboard,
// neither meets faults nor is one of the chances that these count. So what strikes a client is decided by
// the client's requests alone.
func TestFaultsPassTheServersOwnReads(t *testing.T) {
	faults := []sqsserver.Fault{
		{Kind: sqsserver.FaultServerError, Action: "GetQueueAttributes", Skip: 1, Every: 2, Limit: 1},
		{Kind: sqsserver.FaultWrongCounts},
	}
	d, err := daemon.New(daemon.Config{
		Addr: "127.0.0.1:0", Region: "us-east-1", Logger: slog.New(slog.DiscardHandler), Queues: []daemon.Queue{{Name: "orders"}},
		Serving: daemon.Serving{Faults: map[string][]sqsserver.Fault{"orders": faults, "*": faults}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	for range 3 {
		described := queuesOfServer(t.Context(), d)
		if len(described) != 1 || described[0].Problem != "" || described[0].Attributes["ApproximateNumberOfMessages"] != "0" {
			t.Errorf("queues %+v", described)
		}
	}
	for queue, counts := range d.SQS().AllFaults() {
		for _, f := range counts {
			if f.Chances != 0 || f.Strikes != 0 {
				t.Errorf("%s of %q has had %d chances and %d strikes", f.Kind, queue, f.Chances, f.Strikes)
			}
		}
	}
}
