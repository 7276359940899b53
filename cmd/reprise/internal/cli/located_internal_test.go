package cli

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/configfile"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/delivery"
)

// TestToQueueElsewhere: a queue of --to-queue that is given by its URL is called where that leads, and one that is given
// by its name where the queue is that is consumed.
func TestToQueueElsewhere(t *testing.T) {
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_SQS": "", "AWS_PROFILE": "", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
		"AWS_CONFIG_FILE": "/nonexistent", "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
	} {
		t.Setenv(name, value)
	}
	here, there := serveNoting(t), serveNoting(t) // both have such a queue
	found, err := awsclient.Find(t.Context(), here.URL, "us-east-1", "orders")
	if err != nil {
		t.Fatal(err)
	}
	for to, at := range map[string]string{"parked": here.URL, there.URL + "/000000000000/parked": there.URL} {
		q := foundQueue{located: located{client: found.Client}}
		if err := new(runFlags).findTarget(t.Context(), &consumed{Settings: &delivery.Settings{ToQueue: to}}, &q); err != nil {
			t.Fatal(err)
		}
		if got := aws.ToString(q.to.Options().BaseEndpoint); got != at || q.toQueue == "" {
			t.Errorf("--to-queue %s: queue %q is called at %s, want %s", to, q.toQueue, got, at)
		}
	}
}

// TestQueuesOfUp: a queue that is consumed gets a dead-letter queue, unless the file gives it one, or a RedrivePolicy, which
// stays as it is; a queue that is not consumed gets none.
func TestQueuesOfUp(t *testing.T) {
	const policy = `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:shared","maxReceiveCount":3}`
	ofFile := []daemon.Queue{
		{Name: "plain"}, {Name: "own", DeadLetter: "own-lost", MaxReceives: 7}, {Name: "policy", Attributes: map[string]string{"RedrivePolicy": policy}}, {Name: "shared"},
	}
	var queues []configfile.Queue
	for _, q := range ofFile {
		queues = append(queues, configfile.Queue{Queue: q})
	}
	var consume []*consumed
	for _, name := range []string{"plain", "own", "policy", "new.fifo"} {
		consume = append(consume, &consumed{name: name, Settings: new(delivery.Settings)})
	}
	consume = append(consume, &consumed{name: "named", Settings: &delivery.Settings{DeadLetter: "plain"}})
	got, err := upQueues(consume, queues)
	if err != nil {
		t.Fatal(err)
	}
	most := maxReceives(new(delivery.Settings).Policy().WithDefaults())
	want := []daemon.Queue{
		{Name: "plain", DeadLetter: "plain-dead", MaxReceives: most}, ofFile[1], ofFile[2], ofFile[3],
		{Name: "new.fifo", DeadLetter: "new-dead.fifo", MaxReceives: most}, {Name: "named", DeadLetter: "plain", MaxReceives: most},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("queues (-want +got):\n%s", diff)
	}
}

// TestToQueueOfTheSameName: a queue of the same account and name is another one in another region. Only the queue
// itself would get its own messages again.
func TestToQueueOfTheSameName(t *testing.T) {
	client := func(region string) *sqs.Client { return awsclient.Local("http://127.0.0.1:1", region) }
	const here, there = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders", "https://sqs.us-east-1.amazonaws.com/123456789012/orders"
	for _, test := range []struct {
		to, region string
		round      bool
	}{{here, "eu-west-1", true}, {"https://eu-west-1.queue.amazonaws.com/123456789012/orders", "eu-west-1", true}, {there, "us-east-1", false}, {here + "-2", "eu-west-1", false}} {
		c := &consumed{name: here, Settings: &delivery.Settings{ToQueue: test.to}, located: located{client: client("eu-west-1"), url: here, to: client(test.region), toQueue: test.to}}
		if err := c.checkToQueue(); (err != nil) != test.round {
			t.Errorf("--to-queue %s: %v", test.to, err)
		}
	}
}
