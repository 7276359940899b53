package cli

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/awsclient"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/daemon"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestFaultsPassTheServersOwnReads: what the server reads of itself, for the watcher and the dashboard,
// neither meets faults nor is one of the chances that these count. So what strikes a client is decided by
// the client's requests alone.
func TestFaultsPassTheServersOwnReads(t *testing.T) {
	faults := []sqsserver.Fault{
		{Kind: sqsserver.FaultServerError, Action: "GetQueueAttributes", Skip: 1, Every: 2, Limit: 1},
		{Kind: sqsserver.FaultWrongCounts},
	}
	d, err := daemon.New(daemon.Config{
		Addr: "127.0.0.1:0", Region: "us-east-1", Logger: slog.New(slog.DiscardHandler), Queues: []daemon.Queue{{Name: "orders"}},
		Serving: daemon.Serving{Faults: map[string][]sqsserver.Fault{"orders": faults, "*": faults}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	for range 3 {
		described := queuesOfServer(t.Context(), d)
		if len(described) != 1 || described[0].Problem != "" || described[0].Attributes["ApproximateNumberOfMessages"] != "0" {
			t.Errorf("queues %+v", described)
		}
	}
	for queue, counts := range d.SQS().AllFaults() {
		for _, f := range counts {
			if f.Chances != 0 || f.Strikes != 0 {
				t.Errorf("%s of %q has had %d chances and %d strikes", f.Kind, queue, f.Chances, f.Strikes)
			}
		}
	}
}

// TestQueuesOfSeveralServers: a worker that consumes queues of two servers asks each for its own dead-letter queues,
// lanes and their messages, also where names are the same.
func TestQueuesOfSeveralServers(t *testing.T) {
	here, there := serveNoting(t), serveNoting(t)
	var all []daemon.Consumed
	want := make(map[string]string)
	for _, s := range []*notingServer{here, there} {
		at := s.URL + "/000000000000/"
		all = append(all, daemon.Consumed{QueueURL: at + "orders", Client: awsclient.Local(s.URL, "us-east-1"), Config: reprise.Config{RetryLane: reprise.RetryLane{URL: at + "parked"}}})
		for _, name := range []string{"orders", "dead", "parked"} {
			want[at+name] = s.URL
		}
	}
	refs, described, err := describeConsumed(t.Context(), all)
	if err != nil || len(described) != len(refs) {
		t.Fatalf("%d queues, %d described, %v", len(refs), len(described), err)
	}
	got := make(map[string]string)
	for i, ref := range refs {
		got[ref.URL] = aws.ToString(ref.Client.(*sqs.Client).Options().BaseEndpoint)
		if described[i].URL != ref.URL {
			t.Errorf("queue %d is %s, and described as %s", i, ref.URL, described[i].URL)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("queues and where they are asked for (-want +got):\n%s", diff)
	}
}

// TestJobOnAQueueOfAnotherRegion: a server has queues of other regions, which no URL names. A job on one that is named
// by its ARN is refused, and not carried out on the queue of the same name here.
func TestJobOnAQueueOfAnotherRegion(t *testing.T) {
	cfg := daemon.Config{Addr: "127.0.0.1:0", Region: "us-east-1", Logger: slog.New(slog.DiscardHandler), Queues: []daemon.Queue{{Name: "orders"}}}
	d, err := daemon.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	adminOfDaemon(admin.Config{Events: new(admin.Events)}, d, cfg, nil)
	drain, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- d.Run(context.Background(), drain) }()
	defer func() {
		close(drain)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	if _, err := awsclient.Local(d.URL(), "eu-west-1").CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("orders")}); err != nil {
		t.Fatal(err)
	}
	url := d.QueueURL("orders")
	if _, err := d.Client().SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("order")}); err != nil {
		t.Fatal(err)
	}
	server, err := admin.NewClient(d.URL(), "")
	if err != nil {
		t.Fatal(err)
	}
	for queue, code := range map[string]string{"arn:aws:sqs:eu-west-1:000000000000:orders": "no-such-queue", d.QueueARN("orders"): "", "orders": "", url: ""} {
		j, err := server.StartJob(t.Context(), admin.JobRequest{Action: admin.JobDelete, Queue: queue, All: true, DryRun: true, Force: true})
		got := ""
		if refused, ok := errors.AsType[*admin.Error](err); ok {
			got, err = refused.Code, nil
		}
		if err != nil || got != code || code == "" && j.URL != url {
			t.Errorf("a job on %s: the code %q, on %q, %v; want the code %q", queue, got, j.URL, err, code)
		}
	}
}
