package admin_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestTimelineOfABacklogAtTheStart: messages that have waited for an hour when the process starts are no problem at once:
// their consumers have a minute to receive.
func TestTimelineOfABacklogAtTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := sqsserver.New(sqsserver.Config{})
		defer server.Close()
		events, oldest := new(admin.Events), time.Now().Add(-time.Hour)
		api := admin.New(admin.Config{
			Version: "v1", Events: events, Logger: slog.New(slog.DiscardHandler), Consumers: func() []admin.Running { return nil }, Server: server,
			Queues: func(context.Context) ([]operate.Described, bool, error) {
				return []operate.Described{
					{URL: queueURL + "dead", Attributes: map[string]string{"QueueArn": "arn:aws:sqs:us-east-1:000000000000:dead", "MessageRetentionPeriod": "1209600"}},
					{URL: queueURL + "orders", Oldest: oldest, Attributes: map[string]string{
						"QueueArn": "arn:aws:sqs:us-east-1:000000000000:orders", "VisibilityTimeout": "30", "MessageRetentionPeriod": "345600", "ApproximateNumberOfMessages": "3",
						"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":100}`,
					}},
				}, true, nil
			},
			Traffic: func() map[string]admin.Traffic { return nil }, // since the start nothing was received
		})
		api.Start()
		time.Sleep(50 * time.Second)
		synctest.Wait()
		expect(t, "within the first minute", admin.Remembered(events), " start: ")
		time.Sleep(20 * time.Second)
		synctest.Wait()
		expect(t, "after it", admin.Remembered(events),
			"orders finding: A problem began: no consumer receives from it: the oldest of 3 messages has waited for 1h", " start: ")
		if err := api.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
