//go:build unix

package main_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	library "github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// redriveBySQS has SQS send the dead letters back to the retry queue.
func (s *asyncSystem) redriveBySQS() {
	s.t.Helper()
	in := &sqsserver.StartMessageMoveTaskInput{SourceArn: asyncARN("dead"), DestinationArn: asyncARN("retries")}
	if _, err := s.sqs.StartMessageMoveTask(s.t.Context(), in); err != nil {
		s.t.Fatal(err)
	}
}

// redrive has the program send one dead letter back to where it came from.
func (s *asyncSystem) redrive() {
	s.t.Helper()
	got := reprise(s.t, "", "redrive", "dead", "--endpoint", s.queues.URL, "--limit", "1")
	if got.code != 0 || !strings.HasPrefix(got.stdout, "1 sent back to ") || !strings.HasSuffix(got.stdout, "/retries\n") {
		s.t.Errorf("exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
}

// sendDeadLetter puts a dead letter into a queue, whose story names its source if there is
// one.
func sendDeadLetter(t *testing.T, endpoint, queue, source, body, group string) {
	t.Helper()
	in := &sqs.SendMessageInput{QueueUrl: queueURL(endpoint, queue), MessageBody: &body}
	if source != "" {
		story := fmt.Sprintf(`{"reason":"attempts","source":"arn:aws:sqs:us-east-1:000000000000:%s"}`, source)
		in.MessageAttributes = map[string]types.MessageAttributeValue{library.StoryAttribute: {DataType: aws.String("String"), StringValue: &story}}
	}
	if group != "" {
		in.MessageGroupId, in.MessageDeduplicationId = &group, &body
	}
	if _, err := client(endpoint).SendMessage(t.Context(), in); err != nil {
		t.Fatal(err)
	}
}

// setFaults has the server misbehave at a queue.
func setFaults(t *testing.T, endpoint, queue, faults string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, endpoint+"/_reprise/faults/"+queue, strings.NewReader(faults))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode/100 != 2 {
		t.Fatalf("setting faults: %s", answer.Status)
	}
}

// received returns the messages that n or more receives bring.
func received(t *testing.T, endpoint, queue string, n int) []string {
	t.Helper()
	var bodies []string
	for end := time.Now().Add(patience); len(bodies) < n; {
		if time.Now().After(end) {
			t.Fatalf("queue %s has had %q, want %d messages", queue, bodies, n)
		}
		bodies = append(bodies, receive(t, endpoint, queue)...)
	}
	return bodies
}

// TestRedrive: letters go back to their sources, though SQS refuses sends for a while;
// a look before changes nothing, and what has no source stays.
func TestRedrive(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "a,dead-letter=dead", "--queue", "b,dead-letter=dead")
	setFaults(t, endpoint, "a", `[{"kind":"throttle","action":"SendMessageBatch","limit":2},{"kind":"fail-entry","action":"SendMessageBatch","every":3}]`)
	var wantA []string
	for i := range 12 {
		wantA = append(wantA, fmt.Sprintf("a%02d", i))
		sendDeadLetter(t, endpoint, "dead", "a", wantA[i], "")
	}
	sendDeadLetter(t, endpoint, "dead", "b", "b", "")
	sendDeadLetter(t, endpoint, "dead", "", "no story", "")
	sendDeadLetter(t, endpoint, "dead", "gone", "gone", "")

	for _, test := range []struct {
		args []string
		want string // of what is said of a
	}{
		{[]string{"--dry-run"}, "12 would be sent back to "},
		{nil, "12 sent back to "},
	} {
		got := reprise(t, "", append([]string{"redrive", "dead", "--endpoint", endpoint}, test.args...)...)
		if got.code != 3 || !strings.HasPrefix(got.stdout, test.want+*queueURL(endpoint, "a")) || !strings.Contains(got.stderr, "left in the queue: 2 dead letters") {
			t.Errorf("%q: exit code %d, %s%s", test.args, got.code, got.stdout, got.stderr)
		}
		for _, want := range []string{"back to " + *queueURL(endpoint, "b"), "1 left in " + *queueURL(endpoint, "dead") + ": dead letters that do not say which queue", `gone", which does not exist`} {
			if !strings.Contains(got.stdout, want) {
				t.Errorf("%q: does not say %q: %s", test.args, want, got.stdout)
			}
		}
	}
	gotA := received(t, endpoint, "a", 12)
	slices.Sort(gotA)
	if !slices.Equal(gotA, wantA) {
		t.Errorf("a holds %q", gotA)
	}
	if got := received(t, endpoint, "b", 1); !slices.Equal(got, []string{"b"}) {
		t.Errorf("b holds %q", got)
	}
	got := reprise(t, "", "redrive", *queueURL(endpoint, "dead"), "--to", "b")
	if got.code != 0 || got.stdout != "2 sent back to "+*queueURL(endpoint, "b")+"\n" {
		t.Errorf("--to: exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
	got = reprise(t, "", "redrive", "dead", "--endpoint", endpoint)
	if got.code != 0 || got.stdout != "0 sent back from "+*queueURL(endpoint, "dead")+"\n" {
		t.Errorf("empty: exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
}

// TestRedriveFIFO: groups and their order are those of the letters.
func TestRedriveFIFO(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "a.fifo,dead-letter=dead.fifo")
	for i := range 3 {
		for _, group := range []string{"g", "h"} {
			sendDeadLetter(t, endpoint, "dead.fifo", "a.fifo", fmt.Sprint(group, i), group)
		}
	}
	got := reprise(t, "", "redrive", "dead.fifo", "--endpoint", endpoint)
	if got.code != 0 || got.stdout != "6 sent back to "+*queueURL(endpoint, "a.fifo")+"\n" {
		t.Errorf("exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
	groups := make(map[byte]string)
	for _, body := range received(t, endpoint, "a.fifo", 6) {
		groups[body[0]] += body
	}
	if groups['g'] != "g0g1g2" || groups['h'] != "h0h1h2" {
		t.Errorf("received %q", groups)
	}
}

// TestRedriveStops: Ctrl-C ends it after the batches under way, and it says so. Every letter is in one
// queue or the other.
func TestRedriveStops(t *testing.T) {
	t.Parallel()
	for how, args := range map[string][]string{
		"by the server": {"--rate", "100"},
		"by receives":   {"--signing-key-file", written(t, "keys", keyText+"\n")}, // which the server does not have
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			testRedriveStops(t, args)
		})
	}
}

func testRedriveStops(t *testing.T, args []string) {
	const letters = 400 // more than are under way at once
	_, endpoint := serve(t, "--queue", "a,dead-letter=dead")
	setFaults(t, endpoint, "a", `[{"kind":"slow-reply","action":"SendMessageBatch","delay":"1s"}]`)
	for i := range letters {
		sendDeadLetter(t, endpoint, "dead", "a", fmt.Sprint(i), "")
	}
	p := start(t, append([]string{"redrive", "dead", "--endpoint", endpoint}, args...)...)
	received(t, endpoint, "a", 1) // the first batches are under way
	p.signal(os.Interrupt)
	code, output := p.wait()
	sent := 0
	for line := range strings.Lines(output) {
		if n, _, found := strings.Cut(line, " sent back to "); found {
			sent, _ = strconv.Atoi(n)
		}
	}
	visible, hidden := visibleIn(t, endpoint, "dead")
	if code != 3 || sent < 10 || sent > letters-10 || visible != strconv.Itoa(letters-sent) || hidden != "0" || !strings.Contains(output, "run it again") {
		t.Errorf("exit code %d, %d sent back, %s letters are left, and %s hidden: %s", code, sent, visible, hidden, output)
	}
}

// TestRedriveRefused: mistakes and missing queues are named, with the remedy.
func TestRedriveRefused(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "dead", "--queue", "live")
	sendJSON(t, endpoint, "dead", "alive", nil)
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{nil, 2, "accepts 1 arg"},
		{[]string{"dead", "--limit", "-1"}, 2, "--limit is -1"},
		{[]string{"absent"}, 5, `queue "absent" does not exist`},
		{[]string{"dead", "--to", "absent"}, 5, `queue "absent" does not exist`},
		{[]string{"dead", "--to", "dead", "--any-queue"}, 1, "name another queue"},
		{[]string{"arn:aws:sqs:us-east-1:000000000000:dead"}, 2, "is an ARN: pass the queue's URL or its name"},
		{[]string{"dead", "--dry-run"}, 2, `no queue names "dead" as its dead-letter queue`},
		{[]string{"dead", "--to", "live"}, 2, "pass --any-queue"},
		{[]string{"http://127.0.0.1:1/000000000000/q"}, 5, `queue "http://127.0.0.1:1/000000000000/q" does not exist`},
	} {
		got := reprise(t, "", append([]string{"redrive", "--endpoint", endpoint}, test.args...)...)
		if got.code != test.code || !strings.Contains(got.stderr, test.want) || got.stdout != "" {
			t.Errorf("%q: exit code %d, %s%s; want %d and %q", test.args, got.code, got.stdout, got.stderr, test.code, test.want)
		}
	}
	out, err := client(endpoint).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: queueURL(endpoint, "dead"), MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})
	if err != nil || len(out.Messages) != 1 || out.Messages[0].Attributes["ApproximateReceiveCount"] != "1" {
		t.Errorf("a refused command has received the message, or moved it: %+v, %v", out, err)
	}
}

// TestRedriveByServer: the server of the queues moves letters itself: no letter is received, not even for
// a dry run, what a consumer has stays, and the selection, the maximum and the report are those of a
// redrive by receives.
func TestRedriveByServer(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "a,dead-letter=dead", "--queue", "parked")
	for i := range 30 {
		sendDeadLetter(t, endpoint, "dead", "a", fmt.Sprint("m", i), "")
	}
	held := receive(t, endpoint, "dead") // for its visibility timeout
	run := func(want string, code int, args ...string) {
		t.Helper()
		got := reprise(t, "", append(args, "--endpoint", endpoint)...)
		if got.code != code || !strings.HasPrefix(got.stdout, want) || !strings.Contains(got.stderr, fmt.Sprint(len(held), " message")) && !slices.Contains(args, "--limit") {
			t.Errorf("%q: exit code %d, %s%s; want %q, and how many are in flight", args, got.code, got.stdout, got.stderr, want)
		}
	}
	left := 30 - len(held)
	run(fmt.Sprint(left, " would be sent back to ", *queueURL(endpoint, "a")), 0, "redrive", "dead", "--dry-run")
	run("1 sent back to "+*queueURL(endpoint, "a"), 0, "redrive", "dead", "--body", "^m29$")
	run("2 sent back to "+*queueURL(endpoint, "a"), 0, "redrive", "dead", "--limit", "2")
	run("1 moved to "+*queueURL(endpoint, "parked"), 0, "move", "dead", "parked", "--body", "^m28$")
	run("1 dead letter deleted from "+*queueURL(endpoint, "dead"), 0, "dead", "delete", "dead", "--body", "^m27$", "--yes")
	out, err := client(endpoint).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: queueURL(endpoint, "dead"), MaxNumberOfMessages: 10, MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})
	if err != nil || len(out.Messages) == 0 {
		t.Fatal(out, err)
	}
	for _, m := range out.Messages {
		if m.Attributes["ApproximateReceiveCount"] != "1" {
			t.Errorf("%s was received %s times, want once, now", *m.Body, m.Attributes["ApproximateReceiveCount"])
		}
	}
	if visible, hidden := visibleIn(t, endpoint, "dead"); visible != strconv.Itoa(left-5-len(out.Messages)) || hidden != strconv.Itoa(len(held)+len(out.Messages)) {
		t.Errorf("%s are visible and %s in flight, of which %d and %d were received", visible, hidden, len(held), len(out.Messages))
	}
}
