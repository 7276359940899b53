//go:build unix

package main_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// orderTarget is a target that works off orders and refuses some, until it is down.
type orderTarget struct {
	*httptest.Server
	down atomic.Bool
}

func newOrderTarget(t *testing.T) *orderTarget {
	t.Helper()
	s := new(orderTarget)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.Header.Get("Reprise-Attribute-Number"))
		switch {
		case s.down.Load():
			http.Error(w, "upstream connect error or disconnect/reset before headers. reset reason: connection timeout, database pool of 10.2.3.4:5432 exhausted", http.StatusServiceUnavailable)
		case n%50 == 49:
			http.Error(w, fmt.Sprintf("order %d: the customer has no address", n), http.StatusUnprocessableEntity)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// orderEntry is a message about an order, one of which is refused.
func orderEntry(i int) types.SendMessageBatchRequestEntry {
	return types.SendMessageBatchRequestEntry{
		Id:                aws.String(strconv.Itoa(i)),
		MessageBody:       aws.String(fmt.Sprintf(`{"order":%d,"customer":{"id":%d,"name":"Zoë Ångström","address":"12 Long Street"},"lines":[{"sku":"lamp-%d","count":2,"price":49.9}],"total":99.8}`, 1_000_000+i, i%100, i%7)),
		MessageAttributes: map[string]types.MessageAttributeValue{"tenant": {DataType: aws.String("String"), StringValue: aws.String("shop-" + strconv.Itoa(i%5))}},
	}
}

// deadOrderEntry is an order that was given up, for one of a few reasons.
func deadOrderEntry(i int) types.SendMessageBatchRequestEntry {
	e := orderEntry(i)
	story := fmt.Sprintf(`{"reason":%q,"attempts":%d,"error":%q,"source":"arn:aws:sqs:us-east-1:000000000000:orders","first":"2026-11-24T10:00:00Z","last":"2026-11-24T11:00:00Z"}`,
		[]string{"attempts", "permanent", "attempts"}[i%3], []int{20, 1, 20}[i%3],
		[]string{
			fmt.Sprintf("the target answered 500 Internal Server Error: order %d: pq: deadlock detected while locking row of customer %d", i, i*7),
			"the target answered 422 Unprocessable Entity: the customer has no address",
			`Post "https://billing.internal.example.com/v2/charges/reconcile?tenant=shop-1": dial tcp 10.2.3.4:443: i/o timeout`,
		}[i%3])
	e.MessageAttributes["reprise-story"] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &story}
	return e
}

// sendBatches sends n messages in batches.
func sendBatches(t *testing.T, endpoint, queue string, n int, entry func(int) types.SendMessageBatchRequestEntry) {
	t.Helper()
	batches := make(chan int)
	var senders sync.WaitGroup
	for range min(8, (n+9)/10) {
		senders.Go(func() {
			c := client(endpoint)
			for first := range batches {
				in := &sqs.SendMessageBatchInput{QueueUrl: queueURL(endpoint, queue)}
				for i := first; i < min(first+10, n); i++ {
					in.Entries = append(in.Entries, entry(i))
				}
				if out, err := c.SendMessageBatch(t.Context(), in); err != nil || len(out.Failed) > 0 {
					if t.Context().Err() == nil {
						t.Errorf("sending to %s: %v %v", queue, out, err)
					}
				}
			}
		})
	}
	for first := 0; first < n; first += 10 {
		batches <- first
	}
	close(batches)
	senders.Wait()
}
