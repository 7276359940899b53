//go:build unix

package main_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	library "github.com/reprise-sqs/reprise"
)

// TestMove: the selected messages go to the other queue whole and in order, the others stay.
func TestMove(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "a", "--queue", "b", "--queue", "guarded,dead-letter=dead", "--queue", "f.fifo", "--queue", "g.fifo")
	for i := range 12 {
		sendJSON(t, endpoint, "a", fmt.Sprintf(`{"order":%d}`, i%3), map[string]any{"reason": "age", "source": "x"})
	}
	run := func(args ...string) result {
		t.Helper()
		return reprise(t, "", append(args, "--endpoint", endpoint)...)
	}
	b := *queueURL(endpoint, "b")
	for _, test := range []struct {
		args []string
		want string
		left string
	}{
		{[]string{"move", "a", "b", "--where", "order=1", "--dry-run"}, "4 would be moved to " + b + "\n", "12"},
		{[]string{"move", "a", "b", "--where", "order=1"}, "4 moved to " + b + "\n", "8"},
		{[]string{"move", "a", b, "--limit", "5", "--rate", "1000"}, "5 moved to " + b + "\n", "3"},
		{[]string{"move", "a", "b"}, "3 moved to " + b + "\n", "0"},
		{[]string{"move", "a", "b"}, "0 moved from " + *queueURL(endpoint, "a") + "\n", "0"},
	} {
		got := run(test.args...)
		if visible, inFlight := visibleIn(t, endpoint, "a"); got.code != 0 || got.stdout != test.want || visible != test.left || inFlight != "0" {
			t.Errorf("%q: exit code %d, %s left, %s in flight, %s%s", test.args, got.code, visible, inFlight, got.stdout, got.stderr)
		}
	}
	out, err := client(endpoint).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &b, WaitTimeSeconds: 10, MessageAttributeNames: []string{"All"}})
	if err != nil || len(out.Messages) == 0 || !strings.Contains(*out.Messages[0].MessageAttributes[library.StoryAttribute].StringValue, `"age"`) {
		t.Errorf("%v: the story is lost: %+v", err, out)
	}

	for i := range 6 {
		sendDeadLetter(t, endpoint, "f.fifo", "", fmt.Sprint(i), "group")
	}
	got := run("move", "f.fifo", "g.fifo")
	if bodies := received(t, endpoint, "g.fifo", 6); got.code != 0 || !slices.IsSorted(bodies) {
		t.Errorf("FIFO: exit code %d, %q, %s%s", got.code, bodies, got.stdout, got.stderr)
	}

	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"a"}, 2, "accepts 2 arg"},
		{[]string{"a", "a"}, 2, "name another queue"},
		{[]string{"a", "absent"}, 5, `"absent" does not exist`},
		{[]string{"absent", "a"}, 5, `"absent" does not exist`},
		{[]string{"a", "x/y"}, 2, "TO"},
		{[]string{"guarded", "a", "--signing-key-file", written(t, "keys", keyText+"\n")}, 1, "--yes"}, // the server does not have the key
		{[]string{"a", "b", "--limit", "-1"}, 2, "--limit is -1"},
		{[]string{"a", "b", "--rate", "-1"}, 2, "--rate is -1"},
		{[]string{"a", "b", "--body", "("}, 2, "--body"},
	} {
		if got := run(append([]string{"move"}, test.args...)...); got.code != test.code || !strings.Contains(got.stderr, test.want) || got.stdout != "" {
			t.Errorf("%q: exit code %d, %s%s; want %d and %q", test.args, got.code, got.stdout, got.stderr, test.code, test.want)
		}
	}
}

// TestRedriveTask: SQS itself moves letters, and what it says about its task is passed on.
func TestRedriveTask(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "a,dead-letter=dead,max-receives=1", "--queue", "b")
	run := func(args ...string) result {
		t.Helper()
		return reprise(t, "", append(append([]string{"redrive", "dead"}, args...), "--endpoint", endpoint)...)
	}
	for i := range 5 {
		sendJSON(t, endpoint, "dead", fmt.Sprint(i), nil)
	}
	if got := run("--task", "--to", "b", "--rate", "500"); got.code != 0 || got.stdout != "5 of 5 dead letters moved by SQS\n" {
		t.Errorf("exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
	if visible, _ := visibleIn(t, endpoint, "b"); visible != "5" {
		t.Errorf("b holds %s", visible)
	}
	tasks, err := client(endpoint).ListMessageMoveTasks(t.Context(), &sqs.ListMessageMoveTasksInput{SourceArn: aws.String("arn:aws:sqs:us-east-1:000000000000:dead")})
	if err != nil || len(tasks.Results) != 1 || aws.ToInt32(tasks.Results[0].MaxNumberOfMessagesPerSecond) != 500 {
		t.Errorf("SQS was not told the rate: %+v, %v", tasks, err)
	}
	sendJSON(t, endpoint, "dead", "no source", nil)
	if got := run("--task"); got.code == 0 || !strings.Contains(got.stderr, "FAILED") {
		t.Errorf("a letter without a source: exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
	for _, args := range [][]string{{"--reason", "age"}, {"--limit", "1"}, {"--dry-run"}, {"--rate", "501"}, {"--rate", "0.5"}} {
		if got := run(append(args, "--task")...); got.code != 2 {
			t.Errorf("%q: exit code %d, %s", args, got.code, got.stderr)
		}
	}
}
