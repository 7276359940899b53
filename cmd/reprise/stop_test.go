//go:build unix

package main_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// TestStopAnswersPolls: a stop answers every long poll that waits, with nothing and
// without an error, instead of letting it wait or cutting it off.
func TestStopAnswersPolls(t *testing.T) {
	t.Parallel()
	p, endpoint := serve(t, "--queue", "q")
	const polls = 100
	answers := make(chan error, polls)
	for range polls {
		go func() {
			out, err := clientWith(endpoint, "a", "b").ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queueURL(endpoint, "q"), WaitTimeSeconds: 20})
			if err == nil && len(out.Messages) > 0 {
				err = fmt.Errorf("received %d messages", len(out.Messages))
			}
			answers <- err
		}()
	}
	waiting := fmt.Sprintf("reprise_queue_long_polls{arn=\"arn:aws:sqs:us-east-1:000000000000:q\",queue=\"q\"} %d\n", polls)
	for begin := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		_, metrics := fetch(t, http.DefaultClient, endpoint+"/metrics")
		if strings.Contains(metrics, waiting) {
			break
		}
		if len(answers) > 0 || time.Since(begin) > patience {
			t.Fatalf("the polls never waited all at once:\n%s", metrics)
		}
	}
	p.signal(os.Interrupt)
	for range polls {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if code, output := p.wait(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, output)
	}
}
