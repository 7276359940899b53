package sqsserver_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// Far too many tags are refused before they are copied, which is done while every
// queue waits.
func TestFarTooManyTags(t *testing.T) {
	b := newTestServer(t, nil)
	tags := make(map[string]string)
	for i := range 10_000 {
		tags[fmt.Sprint("k", i)] = ""
	}
	allocations := testing.AllocsPerRun(10, func() {
		err := b.server.TagQueue(t.Context(), &sqsserver.TagQueueInput{QueueUrl: b.url, Tags: tags})
		if err == nil || !strings.Contains(err.Error(), "Too many tags added for queue q.") {
			t.Fatalf("TagQueue: %v", err)
		}
	})
	if allocations > 10 {
		t.Errorf("%v allocations for a refusal, want a handful", allocations)
	}
}
