package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/plan"
)

func TestReadQueue(t *testing.T) {
	for _, tt := range []struct {
		name       string
		attributes map[string]string
		want       plan.Queue
		says       []string // of the error; none: no error
	}{
		{name: "nothing"},
		{
			name: "a standard queue",
			attributes: map[string]string{
				"QueueArn": orders, "VisibilityTimeout": "30", "MessageRetentionPeriod": "345600", "DelaySeconds": "900",
				"MaximumMessageSize": "1048576", "ApproximateNumberOfMessages": "7", "SqsManagedSseEnabled": "false",
				"KmsMasterKeyId": "alias/orders",
				"RedrivePolicy":  `{"deadLetterTargetArn":"` + dead + `","maxReceiveCount":5}`,
			},
			want: plan.Queue{
				ARN: orders, Visibility: 30 * time.Second, Retention: 4 * day, Delay: 15 * time.Minute,
				KMSKey: "alias/orders", DeadLetterARN: dead, MaxReceives: 5,
			},
		},
		{
			name: "a FIFO queue",
			attributes: map[string]string{
				"QueueArn": ordersFIFO, "FifoQueue": "true", "ContentBasedDeduplication": "true",
				"DeduplicationScope": "messageGroup", "FifoThroughputLimit": "perMessageGroupId", "DelaySeconds": "0",
			},
			want: plan.Queue{ARN: ordersFIFO, FIFO: true, ContentDeduplication: true, HighThroughput: true},
		},
		{
			name:       "a count in quotes, as other servers have it",
			attributes: map[string]string{"RedrivePolicy": `{"maxReceiveCount": "3", "deadLetterTargetArn": "` + dead + `"}`},
			want:       plan.Queue{DeadLetterARN: dead, MaxReceives: 3},
		},
		{
			name: "what cannot be read leaves the rest",
			attributes: map[string]string{
				"VisibilityTimeout": "soon", "MessageRetentionPeriod": "-1", "DelaySeconds": "10",
				"RedrivePolicy": `{"deadLetterTargetArn":"` + dead + `","maxReceiveCount":"many"}`,
			},
			want: plan.Queue{Delay: 10 * time.Second, DeadLetterARN: dead},
			says: []string{`VisibilityTimeout is "soon"`, `MessageRetentionPeriod is "-1"`, "RedrivePolicy", "many", "maxReceiveCount"},
		},
		{
			name:       "a redrive policy that is none",
			attributes: map[string]string{"RedrivePolicy": "null and void"},
			says:       []string{`RedrivePolicy is "null and void"`, "not a redrive policy"},
		},
		{
			name:       "a redrive policy without a count",
			attributes: map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + dead + `"}`},
			want:       plan.Queue{DeadLetterARN: dead},
			says:       []string{"RedrivePolicy"},
		},
		{
			name:       "one receive",
			attributes: map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + dead + `","maxReceiveCount":1}`},
			want:       plan.Queue{DeadLetterARN: dead, MaxReceives: 1},
		},
		{
			name:       "no receive",
			attributes: map[string]string{"RedrivePolicy": `{"deadLetterTargetArn":"` + dead + `","maxReceiveCount":0}`},
			want:       plan.Queue{DeadLetterARN: dead},
			says:       []string{"RedrivePolicy"},
		},
		{
			name:       "seconds that no duration holds",
			attributes: map[string]string{"MessageRetentionPeriod": "99999999999999999999"},
			says:       []string{"MessageRetentionPeriod"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := plan.ReadQueue(tt.attributes)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (err != nil) != (len(tt.says) > 0) {
				t.Fatalf("error %v, want one: %v", err, len(tt.says) > 0)
			}
			for _, word := range tt.says {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("%v; it does not say %s", err, word)
				}
			}
		})
	}
}

func TestReadDeadLetter(t *testing.T) {
	q := sound
	if err := q.ReadDeadLetter(map[string]string{
		"QueueArn": dead, "MessageRetentionPeriod": "60", "VisibilityTimeout": "7", "KmsMasterKeyId": key,
	}); err != nil {
		t.Fatal(err)
	}
	want := sound
	want.DeadLetterRetention, want.DeadLetterKMSKey = time.Minute, key
	if diff := cmp.Diff(want, q); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// An attribute that cannot be read does not hide the others.
	err := q.ReadDeadLetter(map[string]string{"MessageRetentionPeriod": "long", "KmsMasterKeyId": "alias/other"})
	if err == nil || !strings.Contains(err.Error(), `MessageRetentionPeriod is "long"`) {
		t.Errorf("a retention of \"long\": %v", err)
	}
	if q.DeadLetterRetention != 0 || q.DeadLetterKMSKey != "alias/other" {
		t.Errorf("with a retention that cannot be read: %v, key %q", q.DeadLetterRetention, q.DeadLetterKMSKey)
	}
}
