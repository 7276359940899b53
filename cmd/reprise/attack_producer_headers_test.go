//go:build unix

package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// The attacker is a producer, who may send to the queue and nothing else. It sends attributes
// that SQS accepts and no HTTP header can carry.

// TestAttackAttributesThatNoHeaderCarries: thirty messages with such an attribute reach
// the target of reprise run, once each, with their number in a header and a line in
// the log.
func TestAttackAttributesThatNoHeaderCarries(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	calls, told := 0, 0
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		calls++
		if r.Header.Get("X-Reprise-Left-Out") == "2" && r.Header.Get("X-Aws-Sqsd-Attr-Plain") == "kept" {
			told++
		}
	}))
	defer srv.Close()
	endpoint := orders(t)
	text := func(s string) types.MessageAttributeValue {
		return types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &s}
	}
	for i := range 30 {
		_, err := client(endpoint).SendMessage(t.Context(), &sqs.SendMessageInput{
			QueueUrl: queueURL(endpoint, "orders"), MessageBody: aws.String(fmt.Sprint(i)),
			MessageAttributes: map[string]types.MessageAttributeValue{"é": text("x"), "lines": text("a\nX-Evil: b"), "plain": text("kept")},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	p, admin := runQueue(t, endpoint, "--url", srv.URL)
	h := awaitHealth(t, admin, func(h health) bool { return h.Consumer.Deleted == 30 })
	if h.Consumer.Retried != 0 || calls != 30 || told != 30 {
		t.Errorf("%d calls, %d of them with the number of what is left out, %d retries; want 30, 30 and 0", calls, told, h.Consumer.Retried)
	}
	output := p.output()
	if n := strings.Count(output, "attribute left out"); n != 2 {
		t.Errorf("the log says %d times that an attribute is left out, want once for each name:\n%s", n, output)
	}
}
