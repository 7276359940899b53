package cli

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/configfile"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/delivery"
	"github.com/reprise-sqs/reprise/retry"
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

// TestMaxReceivesOfUp: SQS takes a message away long after the policy has given it up, and as late as it can if the
// policy never does.
func TestMaxReceivesOfUp(t *testing.T) {
	for attempts, want := range map[int]int{1: 10, 20: 200, 100: 1000, 101: 1000, -1: 1000} {
		if got := maxReceives(retry.Policy{MaxAttempts: attempts}); got != want {
			t.Errorf("%d attempts: %d receives, want %d", attempts, got, want)
		}
	}
}

// TestQueuesOfUpAreLocated: each queue that the settings name is found in its place, and a policy without attempts has
// those of its defaults: the maxReceiveCount of the queue, which up sets itself, is ten times as many.
func TestQueuesOfUpAreLocated(t *testing.T) {
	var queues []daemon.Queue
	for _, name := range []string{"orders", "lost", "lane", "parked", "mails"} {
		queues = append(queues, daemon.Queue{Name: name})
	}
	d, err := daemon.New(daemon.Config{Addr: "127.0.0.1:0", Region: "eu-west-1", Logger: slog.New(slog.DiscardHandler), Queues: queues})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	orders := &consumed{name: "orders", Settings: &delivery.Settings{DeadLetter: "lost", RetryLane: "lane", ToQueue: "parked"}}
	mails := &consumed{name: "mails", Settings: new(delivery.Settings), config: reprise.Config{Retry: retry.Policy{MaxAttempts: 3}}}
	if err := locateOwn(d, []*consumed{orders, mails}); err != nil {
		t.Fatal(err)
	}
	type place struct{ url, deadLetter, retryLane, toQueue, arn string }
	const arn = "arn:aws:sqs:eu-west-1:000000000000:"
	for c, want := range map[*consumed]place{
		orders: {d.QueueURL("orders"), d.QueueURL("lost"), d.QueueURL("lane"), d.QueueURL("parked"), arn + "orders"},
		mails:  {url: d.QueueURL("mails"), arn: arn + "mails"},
	} {
		at := c.located
		if got := (place{at.url, at.deadLetter, at.retryLane, at.toQueue, at.arn}); got != want || at.client == nil || at.to == nil {
			t.Errorf("%s is located at %+v, want %+v", c.name, got, want)
		}
	}
	if most := (retry.Policy{}).WithDefaults().MaxAttempts; orders.config.Retry.MaxAttempts != most || mails.config.Retry.MaxAttempts != 3 {
		t.Errorf("%d and %d attempts, want %d and 3", orders.config.Retry.MaxAttempts, mails.config.Retry.MaxAttempts, most)
	}
	for _, missing := range []delivery.Settings{{DeadLetter: "x"}, {RetryLane: "x"}, {ToQueue: "x"}} {
		if err := locateOwn(d, []*consumed{{name: "orders", Settings: &missing}}); exitCodeOf(err) != exitUsage || !strings.Contains(err.Error(), `no queue "x"`) {
			t.Errorf("%+v: %v", missing, err)
		}
	}
}

// TestFunctionOfAnotherRegion: a function that is named by its ARN is invoked in the region of that, and one that is
// named by its name in that of the command.
func TestFunctionOfAnotherRegion(t *testing.T) {
	signed := make(chan string, 1)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signed <- r.Header.Get("Authorization")
		_, _ = io.WriteString(w, "{}")
	}))
	defer api.Close()
	t.Setenv("AWS_ENDPOINT_URL_LAMBDA", api.URL)
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	for function, region := range map[string]string{"ship": "us-east-1", "arn:aws:lambda:eu-west-1:123456789012:function:ship": "eu-west-1"} {
		cmd := new(app).run()
		if err := cmd.ParseFlags([]string{"--lambda", function}); err != nil {
			t.Fatal(err)
		}
		set, err := given(cmd)
		if err != nil {
			t.Fatal(err)
		}
		queues, err := (&consumeFlags{queue: "orders"}).queues(set, configfile.Config{})
		if err != nil {
			t.Fatal(err)
		}
		q, a, logger := queues[0], &app{ctx: t.Context()}, slog.New(slog.DiscardHandler)
		if err := errors.Join(q.prepare(a, logger), q.connect(a, "us-east-1", logger)); err != nil {
			t.Fatal(err)
		}
		if err := q.handler.Handle(t.Context(), &reprise.Message{ID: "m", Body: "{}"}); err != nil {
			t.Errorf("%s: %v", function, err)
		}
		if by := <-signed; !strings.Contains(by, "/"+region+"/lambda/") {
			t.Errorf("%s is invoked by a request that is signed by %q, want the region %s", function, by, region)
		}
	}
}

// TestToQueueOfTheSameName: a queue of the same account and name is another one in another region of AWS, but not on a
// server that two regions reach by one address. Only the queue itself would get its own messages again.
func TestToQueueOfTheSameName(t *testing.T) {
	client := func(region, server string) *sqs.Client {
		if server == "" {
			server = "https://sqs." + region + ".amazonaws.com"
		}
		return awsclient.Local(server, region)
	}
	const here, there = "https://sqs.eu-west-1.amazonaws.com/123456789012/orders", "https://sqs.us-east-1.amazonaws.com/123456789012/orders"
	for _, test := range []struct {
		to, region, server string
		round              bool
	}{
		{here, "eu-west-1", "", true}, {"https://eu-west-1.queue.amazonaws.com/123456789012/orders", "eu-west-1", "", true},
		{there, "us-east-1", "", false}, {here + "-2", "eu-west-1", "", false}, {there, "us-east-1", "http://127.0.0.1:1", true},
	} {
		c := &consumed{name: here, Settings: &delivery.Settings{ToQueue: test.to}, located: located{client: client("eu-west-1", test.server), url: here, to: client(test.region, test.server), toQueue: test.to}}
		if err := c.checkToQueue(); (err != nil) != test.round {
			t.Errorf("--to-queue %s: %v", test.to, err)
		}
	}
}
