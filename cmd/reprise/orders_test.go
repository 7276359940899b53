//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// runQueue starts reprise run for the queue orders of the server at endpoint, which it
// finds as the AWS CLI would, and returns it with the URL of its health and metrics.
func runQueue(t *testing.T, endpoint string, args ...string) (p *process, admin string) {
	t.Helper()
	p = startIn(t, environment("AWS_ENDPOINT_URL_SQS="+endpoint),
		append([]string{"run", "--queue", "orders", "--admin-addr", "127.0.0.1:0"}, args...)...)
	admin, _, _ = strings.Cut(p.await("admin         "), "/health")
	return p, admin
}

// orders starts a server with a queue and its dead-letter queue.
func orders(t *testing.T) (endpoint string) {
	t.Helper()
	_, endpoint = serve(t, "--queue", "orders,dead-letter=orders-dead,max-receives=100")
	return endpoint
}

// health is the answer of GET /health.
type health struct {
	Status, Problem string
	Consumer        struct {
		Running, Waiting, Settling int
		InBackoff                  int `json:"in_backoff"`
		Deleted, Retried           int
		DeadLettered               int `json:"dead_lettered"`
	}
	Breakers []struct {
		State, Problem string
		Held           int
		NextProbe      time.Time `json:"next_probe"`
	}
	Queues []struct {
		Queue, Status string
		Consumer      struct{ Deleted int }
	}
}

// awaitHealth waits until the health of the program is as it should be.
func awaitHealth(t *testing.T, url string, good func(health) bool) (h health) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		_, text := fetch(t, http.DefaultClient, url+"/health")
		h = health{}
		if err := json.Unmarshal([]byte(text), &h); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if good(h) {
			return h
		}
		if time.Now().After(deadline) {
			t.Fatalf("the health never became what it should be: %s", text)
		}
	}
}

// inQueue is how many messages a queue has, those in flight included.
func inQueue(t *testing.T, endpoint, name string) (n int) {
	t.Helper()
	out, err := client(endpoint).GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: queueURL(endpoint, name), AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible", "ApproximateNumberOfMessagesDelayed"} {
		var some int
		fmt.Sscan(out.Attributes[name], &some)
		n += some
	}
	return n
}

// sendOrders sends n messages, whose bodies are numbers.
func sendOrders(t *testing.T, endpoint string, n int) {
	t.Helper()
	var lines strings.Builder
	for i := range n {
		fmt.Fprintln(&lines, i)
	}
	if got := reprise(t, lines.String(), "send", "--endpoint", endpoint, "orders"); got.code != 0 {
		t.Fatalf("send: %+v", got)
	}
}
