package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/reprise-sqs/reprise/bench/canned"
)

// Every comparison with other consumers runs to its end, also on the server, and its table has a
// row for each of them.
func TestPeersRun(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs the program, which takes a while: run without -short")
	}
	var out strings.Builder
	if err := run(&out, scale{rounds: 2, peers: shortPeers}, "peers"); err != nil {
		t.Fatal(err)
	}
	for _, p := range peers() {
		if got := strings.Count(out.String(), " "+p.name+"  "); got < 2 {
			t.Errorf("%d rows for %q, want one with canned replies and one on the server, in\n%s", got, p.name, out.String())
		}
		if strings.Contains(p.name, "unknown") {
			t.Errorf("%q does not say which version is measured", p.name)
		}
	}
	for _, want := range []string{"early: 0\n", "calls per ten renewals"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// A gate passes as many messages as it is told to, and answers other receives as SQS does: with no
// messages, after a long poll.
func TestGateHoldsReceives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue, gate := canned.New(), newGate()
		client := queue.SDK(gate.install)
		receive := func() int { return receiveAndDelete(t, client) }
		go queue.Work(12)
		synctest.Wait()

		began := time.Now()
		if got, took := receive(), time.Since(began); got != 0 || took != longPoll {
			t.Errorf("a held receive brought %d messages after %v, want none after %v", got, took, longPoll)
		}
		worked := make(chan error, 1)
		go func() { worked <- gate.work(12, time.Minute) }()
		synctest.Wait()
		if got := receive() + receive(); got != 12 {
			t.Errorf("two receives brought %d messages, want the 12 that are let through", got)
		}
		if err := <-worked; err != nil {
			t.Error(err)
		}
		if got := gate.calls.Load(); got != 14 {
			t.Errorf("%d calls counted, want the 2 receives that passed and 12 deletes", got)
		}
	})
}

// receiveAndDelete makes one receive, and returns how many messages it brought.
func receiveAndDelete(t *testing.T, client *sqs.Client) int {
	out, err := client.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(canned.URL), MaxNumberOfMessages: 10})
	if err != nil {
		t.Error(err)
		return 0
	}
	for _, m := range out.Messages {
		if _, err := client.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: aws.String(canned.URL), ReceiptHandle: m.ReceiptHandle}); err != nil {
			t.Error(err)
		}
	}
	return len(out.Messages)
}

// Two receives that compete for the last messages use up all that is permitted, whichever of them
// gets more than it has reserved.
func TestGateCountsWhatRacesBring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue, gate := canned.New(), newGate()
		client := queue.SDK(gate.install)
		gate.allow(12)
		go receiveAndDelete(t, client) // reserves 10
		go receiveAndDelete(t, client) // reserves 2, and asks for 10 all the same
		synctest.Wait()
		queue.Work(12)
		synctest.Wait()
		if gate.allowed != 0 {
			t.Errorf("%d messages are allowed that are not there", gate.allowed)
		}
	})
}

// If work is not done in time, the result is an error, not a figure.
func TestGateLosesPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := newGate().work(5, time.Minute)
		if err == nil || !strings.Contains(err.Error(), "of 5 messages 5 are not deleted") {
			t.Errorf("got %v", err)
		}
	})
}

// A receive that waits ends with its context, and when the gate is closed.
func TestGateEndsReceives(t *testing.T) {
	gate := newGate()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if n, err := gate.reserve(ctx, 10); n != 0 || err == nil {
		t.Errorf("reserve after its context's end: %d, %v", n, err)
	}
	gate.close()
	if n, err := gate.reserve(t.Context(), 10); n != 0 || err != nil {
		t.Errorf("reserve at a closed gate: %d, %v, want an empty receive", n, err)
	}
}
