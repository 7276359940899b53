package operate_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestPassBehindItsOwn: SQS shows no message of a FIFO group behind those that a pass holds, and the pass says so. What
// it deletes holds up nothing.
func TestPassBehindItsOwn(t *testing.T) {
	for _, test := range []struct {
		name    string
		n       int
		verdict operate.Verdict
		looked  int
		partial string
	}{
		{"all of a group", 10, operate.Keep, 10, ""},
		{"more than SQS shows", 25, operate.Keep, 10, "15 more"},
		{"deleted", 25, operate.Delete, 25, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := reprisetest.NewQueue(t, map[string]string{"FifoQueue": "true"})
				for i := range test.n {
					q.SendMessage(sqsserver.SendMessageEntry{MessageBody: fmt.Sprint(i), MessageGroupId: "g", MessageDeduplicationId: fmt.Sprint(i)})
				}
				o, err := pass(q).Run(t.Context(), never, func(batch []operate.Message, _ time.Time) ([]operate.Verdict, error) {
					verdicts := make([]operate.Verdict, len(batch))
					for i := range verdicts {
						verdicts[i] = test.verdict
					}
					return verdicts, nil
				})
				if err != nil || o.Looked != test.looked || !strings.Contains(o.Partial, test.partial) || (o.Partial == "") != (test.partial == "") {
					t.Errorf("%+v, %v", o, err)
				}
			})
		})
	}
}
