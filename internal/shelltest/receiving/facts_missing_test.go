package receiving

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/shelltest/kit"
	"github.com/reprise-sqs/reprise/plan"
	"github.com/reprise-sqs/reprise/reprisetest"
)

// TestQueueThatDoesNotExist: the finding says that the queue does not exist, not that a permission
// is missing.
func TestQueueThatDoesNotExist(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := reprisetest.NewQueue(t, nil)
		watch := &kit.Spy{Client: q.Direct()}
		watch.Attributes = func(context.Context, *sqs.GetQueueAttributesInput) (*sqs.GetQueueAttributesOutput, error) {
			return nil, &types.QueueDoesNotExist{}
		}
		var found []plan.Finding
		q.ConsumeWith(watch, reprise.HandlerFunc(kit.Succeed), reprise.Config{Observer: reprise.Observer{
			Finding: func(_ context.Context, f plan.Finding) { found = append(found, f) },
		}})
		time.Sleep(time.Second)
		synctest.Wait()
		if len(found) != 1 || found[0].Code != "queue-does-not-exist" || !strings.Contains(found[0].Remedy, "create it") {
			t.Errorf("found %+v, want that the queue does not exist", found)
		}
	})
}
