package cli

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
)

// TestDeadLetterQueueOfItsOwner: the dead-letter queue of a queue that another account shares is looked for in that
// account: the caller's own may have one of the same name.
func TestDeadLetterQueueOfItsOwner(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ QueueName, QueueOwnerAWSAccountId string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_ = json.NewEncoder(w).Encode(map[string]string{"QueueUrl": "https://sqs/" + cmp.Or(in.QueueOwnerAWSAccountId, "the caller's") + "/" + in.QueueName})
	}))
	defer service.Close()
	for _, owner := range []string{"111111111111", "222222222222"} {
		to := target{client: awsclient.Local(service.URL, "us-east-1"), url: service.URL + "/222222222222/orders"}
		got, err := to.urlOf(t.Context(), "arn:aws:sqs:us-east-1:"+owner+":dead")
		if want := "https://sqs/" + owner + "/dead"; err != nil || got != want {
			t.Errorf("the dead-letter queue of %s is at %s, %v; want %s", owner, got, err, want)
		}
	}
}

// TestSameQueues: each region of AWS has queues of its own; a server may have one set for all regions.
func TestSameQueues(t *testing.T) {
	west, east, server, other := "eu-west-1", "us-east-1", aws.String("http://127.0.0.1:9324"), aws.String("http://127.0.0.1:9325")
	for _, test := range []struct {
		one, other sqs.Options
		want       bool
	}{
		{sqs.Options{Region: west}, sqs.Options{Region: west}, true},
		{sqs.Options{Region: west}, sqs.Options{Region: east}, false},
		{sqs.Options{Region: west, BaseEndpoint: server}, sqs.Options{Region: east, BaseEndpoint: server}, true},
		{sqs.Options{Region: west, BaseEndpoint: server}, sqs.Options{Region: east, BaseEndpoint: other}, false},
		{sqs.Options{Region: west, BaseEndpoint: server}, sqs.Options{Region: east}, false},
		{sqs.Options{Region: west}, sqs.Options{Region: east, BaseEndpoint: server}, false},
	} {
		if got := sameQueues(test.one, test.other); got != test.want {
			t.Errorf("%s at %q and %s at %q have the same queues: %v, want %v", test.one.Region, aws.ToString(test.one.BaseEndpoint),
				test.other.Region, aws.ToString(test.other.BaseEndpoint), got, test.want)
		}
	}
}
