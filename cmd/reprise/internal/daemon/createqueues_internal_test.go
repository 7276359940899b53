package daemon

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestCreateQueues: a dead-letter queue that is not given is created with the longest retention, in the server's
// region, unless it is there already: then it keeps the attributes that it has.
func TestCreateQueues(t *testing.T) {
	d, err := New(Config{Addr: "127.0.0.1:0", Region: "eu-west-1", Logger: slog.New(slog.DiscardHandler), Queues: []Queue{
		{Name: "kept", Attributes: map[string]string{"MessageRetentionPeriod": "3600"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	err = d.createQueues([]Queue{{Name: "orders", DeadLetter: "orders-dead"}, {Name: "refunds", DeadLetter: "kept", MaxReceives: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ queue, attribute, want string }{
		{"orders-dead", "MessageRetentionPeriod", maxRetention},
		{"kept", "MessageRetentionPeriod", "3600"},
		{"orders", "RedrivePolicy", `{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:000000000000:orders-dead","maxReceiveCount":20}`},
		{"refunds", "RedrivePolicy", `{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:000000000000:kept","maxReceiveCount":1}`},
	} {
		out, err := d.sqs.GetQueueAttributes(t.Context(), &sqsserver.GetQueueAttributesInput{QueueUrl: d.QueueURL(test.queue), AttributeNames: []string{test.attribute}})
		if err != nil || out.Attributes[test.attribute] != test.want {
			t.Errorf("%s of %s: %q, %v; want %q", test.attribute, test.queue, out.Attributes[test.attribute], err, test.want)
		}
	}
}

// TestMaxReceivesNeedADeadLetterQueue: of every number, the least too.
func TestMaxReceivesNeedADeadLetterQueue(t *testing.T) {
	for _, n := range []string{"1", "2", "20", "1000"} {
		if q, err := ParseQueue("orders,max-receives=" + n); err == nil || !strings.Contains(err.Error(), "dead-letter") {
			t.Errorf("max-receives=%s without a dead-letter queue: %+v, %v", n, q, err)
		}
		if _, err := ParseQueue("orders,dead-letter=d,max-receives=" + n); err != nil {
			t.Error(err)
		}
	}
}
