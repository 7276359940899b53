//go:build unix

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	library "github.com/reprise-sqs/reprise"
)

// TestDeadEdit: one letter is mended and sent back, and then deleted; what changes is shown first, and
// nothing is sent for a mistake.
func TestDeadEdit(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "orders,dead-letter=dead", "--queue", "other")
	fillDead(t, endpoint)
	mended := filepath.Join(t.TempDir(), "mended.json")
	if err := os.WriteFile(mended, []byte("{\n \"order\": 404,\n \"title\": \"\u202eowned\"\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) result {
		t.Helper()
		return reprise(t, "", append(args, "--endpoint", endpoint)...)
	}
	left := func(want string) {
		t.Helper()
		if visible, inFlight := visibleIn(t, endpoint, "dead"); visible != want || inFlight != "0" {
			t.Errorf("%s visible and %s in flight, want %s", visible, inFlight, want)
		}
	}
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--set-body", mended}, 2, "say which letter to edit"},
		{[]string{"--where", "order=1"}, 2, "no terminal for an editor"},
		{[]string{"--where", "order=1", "--set-body", mended}, 2, "nobody can be asked"},
		{[]string{"--where", "order=99", "--set-body", mended, "--yes"}, 1, "none of 20 dead letters matches"},
		{[]string{"--reason", "permanent", "--set-body", mended, "--yes"}, 2, "5 dead letters match: name one with --id"},
		{[]string{"--where", "order=1", "--set-body", "/nonexistent", "--yes"}, 1, "--set-body"},
		{[]string{"--where", "order=1", "--set-body", "/dev/null", "--yes"}, 2, "the new body is empty"},
		{[]string{"--where", "order=1", "--set-attribute", "x", "--yes"}, 2, "not of the form name=value"},
		{[]string{"--where", "order=1", "--set-attribute", library.StoryAttribute + "=x", "--yes"}, 2, "written by consumers"},
		{[]string{"--where", "order=1", "--remove-attribute", "x", "--yes"}, 2, `has no attribute "x"`},
		{[]string{"--where", "order=1", "--set-body", mended, "--to", "absent", "--yes"}, 5, `"absent" does not exist`},
		{[]string{"--where", "order=19", "--set-body", mended, "--yes"}, 3, "the letter is still in the queue"},
	} {
		if got := run(append([]string{"dead", "edit", "dead"}, test.args...)...); got.code != test.code || !strings.Contains(got.stdout+got.stderr, test.want) {
			t.Errorf("%q: exit code %d, %s%s; want %d and %q", test.args, got.code, got.stdout, got.stderr, test.code, test.want)
		}
	}
	left("20")

	got := run("dead", "edit", "dead", "--where", "order=4", "--set-body", mended, "--set-attribute", "tenant=acme", "--dry-run", "-o", "table")
	want := " of " + *queueURL(endpoint, "dead") + `
body
-   "order": 4
+   "order": 404,
+   "title": "\u202eowned"
attribute tenant
+ String acme
1 would be sent back to ` + *queueURL(endpoint, "orders") + "\n"
	if _, rest, _ := strings.Cut(got.stdout, " "); got.code != 0 || " "+rest != want {
		t.Errorf("dry run: exit code %d, %s%s; want %s", got.code, got.stdout, got.stderr, want)
	}
	left("20")
	got = run("dead", "edit", "dead", "--where", "order=4", "--set-body", mended, "--set-attribute", "tenant=acme", "--yes")
	if rows := records(t, got.stdout); got.code != 0 || len(rows) != 1 || rows[0]["to"] != *queueURL(endpoint, "orders") || rows[0]["before"].(map[string]any)["body"] != `{"order":4}` {
		t.Errorf("edit: exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
	left("19")
	out, err := client(endpoint).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queueURL(endpoint, "orders"), MaxNumberOfMessages: 10, WaitTimeSeconds: 1, MessageAttributeNames: []string{"All"}})
	if err != nil || len(out.Messages) != 1 {
		t.Fatalf("%v, %d messages", err, len(out.Messages))
	}
	if m := out.Messages[0]; !strings.HasPrefix(*m.Body, "{\n \"order\": 404,") || len(m.MessageAttributes) != 1 || *m.MessageAttributes["tenant"].StringValue != "acme" {
		t.Errorf("sent was %+v", m)
	}
}

// TestDeadEditOfFIFO: a mended letter is sent although a redrive of the same letter was, a moment ago:
// its deduplication id tells of its content.
func TestDeadEditOfFIFO(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "q.fifo", "--queue", "dead.fifo")
	send := func(queue, body, dedup string) {
		if _, err := client(endpoint).SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: queueURL(endpoint, queue), MessageBody: &body, MessageGroupId: aws.String("g"), MessageDeduplicationId: &dedup}); err != nil {
			t.Fatal(err)
		}
	}
	send("dead.fifo", "wrong", "1")
	letter := records(t, reprise(t, "", "peek", "dead.fifo", "--endpoint", endpoint).stdout)[0]
	send("q.fifo", "wrong", "redrive-"+fmt.Sprint(letter["id"])) // as a redrive would, whose delete failed
	got := reprise(t, "right", "dead", "edit", "dead.fifo", "--id", fmt.Sprint(letter["id"]), "--set-body", "-", "--to", "q.fifo", "--yes", "--endpoint", endpoint)
	if got.code != 0 {
		t.Fatalf("exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
	if n := inQueue(t, endpoint, "q.fifo"); n != 2 {
		t.Errorf("%d messages are in the queue: the mended one was dropped", n)
	}
}

// TestDeadImport: an import is the inverse of an export; a wrong line is named, and then none is sent.
func TestDeadImport(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "orders,dead-letter=dead", "--queue", "q.fifo")
	fillDead(t, endpoint)
	odd := "caf\u00e9 \u202e\U0001F600\r\n\"<&"
	if _, err := client(endpoint).SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: queueURL(endpoint, "dead"), MessageBody: &odd, MessageAttributes: map[string]types.MessageAttributeValue{
		"key": {DataType: aws.String("Binary"), BinaryValue: []byte{0, 255}}, "n": {DataType: aws.String("Number.int"), StringValue: aws.String("42")},
	}}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "letters.jsonl")
	run := func(args ...string) result {
		t.Helper()
		return reprise(t, "", append(args, "--endpoint", endpoint)...)
	}
	if got := run("dead", "export", "dead", "--file", file); got.code != 0 {
		t.Fatalf("export: %+v", got)
	}
	groups := func() string {
		t.Helper()
		var all []string
		for _, g := range records(t, run("dead", "dead").stdout) {
			all = append(all, fmt.Sprint(g["count"], " ", g["reason"], " ", g["source"], " ", g["pattern"]))
		}
		return strings.Join(all, "; ")
	}
	before := groups()
	if got := run("purge", "dead", "--yes"); got.code != 0 {
		t.Fatalf("purge: %+v", got)
	}
	if got := run("dead", "import", "dead", file, "--dry-run"); got.code != 0 || got.stdout != "21 dead letters would be sent to "+*queueURL(endpoint, "dead")+"\n" || inQueue(t, endpoint, "dead") != 0 {
		t.Errorf("dry run: %+v", got)
	}
	if got := run("dead", "import", "dead", file); got.code != 0 || got.stdout != "21 sent to "+*queueURL(endpoint, "dead")+"\n" {
		t.Errorf("import: %+v", got)
	}
	if after := groups(); after != before {
		t.Errorf("the groups were %s and are %s", before, after)
	}
	same := false
	for _, m := range records(t, run("dead", "export", "dead", "--body", "caf").stdout) {
		same = m["body"] == odd && fmt.Sprint(m["attributes"]) == "map[key:map[binary:AP8= type:Binary] n:map[type:Number.int value:42]]"
	}
	if !same {
		t.Error("the odd letter is not as it was")
	}
	if got := run("redrive", "dead", "--reason", "permanent"); got.code != 0 || !strings.HasPrefix(got.stdout, "5 sent back to ") {
		t.Errorf("redrive of what was imported: %+v", got)
	}

	count := inQueue(t, endpoint, "dead")
	for _, test := range []struct {
		queue, text string
		code        int
		want        string
	}{
		{"dead", "{\"body\":\"x\"}\nplain\n{\"body\":\"\"}\n", 1, "line 2, is not a message in JSON"},
		{"dead", "{\"body\":\"x\"}\nplain\n{\"body\":\"\"}\n", 1, "line 3, has no body"},
		{"dead", "{\"body\":\"x\"}\nplain\n{\"body\":\"\"}\n", 1, "nothing was sent: 2 lines of 3 cannot be used"},
		{"dead", `{"body":"x","attributes":{"a":{"type":"Colour","value":"red"}}}`, 1, `attribute "a" of type "Colour"`},
		{"dead", `{"body":"x","attributes":{"a":{"type":"String"}}}`, 1, "without a value"},
		{"dead", `{"body":"` + strings.Repeat("x", 1<<20+1) + `"}`, 1, "has 1048577 bytes"},
		{"dead", "\n", 1, "has no letters"},
		{"q.fifo", `{"body":"x"}`, 1, `has no "group"`},
		{"absent", `{"body":"x"}`, 5, `"absent" does not exist`},
	} {
		wrong := filepath.Join(t.TempDir(), "wrong.jsonl")
		if err := os.WriteFile(wrong, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := run("dead", "import", test.queue, wrong); got.code != test.code || !strings.Contains(got.stderr, test.want) {
			t.Errorf("%.100s: exit code %d, %s; want %d and %q", test.text, got.code, got.stderr, test.code, test.want)
		}
	}
	if n := inQueue(t, endpoint, "dead"); n != count {
		t.Errorf("%d letters were sent in spite of mistakes", n-count)
	}
}
