//go:build unix

package main_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
)

// fillDead puts 20 dead letters of three kinds into a queue.
func fillDead(t *testing.T, endpoint string) {
	t.Helper()
	for i := range 20 {
		story := map[string]any{"reason": "attempts", "error": fmt.Sprintf("order %d: connection refused", i), "source": "arn:aws:sqs:us-east-1:000000000000:orders"}
		if i%4 == 0 {
			story["reason"], story["error"] = "permanent", "bad order"
		}
		if i == 19 {
			story = nil
		}
		sendJSON(t, endpoint, "dead", fmt.Sprintf(`{"order":%d}`, i), story)
	}
}

// TestDead: letters are grouped, the selected ones exported, redriven and deleted, and no other is
// touched.
func TestDead(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "orders,dead-letter=dead")
	fillDead(t, endpoint)
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

	var got result
	for told, args := range map[string][]string{
		"has 20 messages in the queue; none was received": nil,
		"the server showed them, and none was received":   {"--newer-than", "24h"},
		"raised their receive counts":                     {"--newer-than", "24h", "--signing-key-file", written(t, "keys", keyText+"\n")},
	} {
		got = run(append([]string{"dead", "dead"}, args...)...)
		var groups []string
		for _, g := range records(t, got.stdout) {
			groups = append(groups, fmt.Sprint(g["count"], " ", g["reason"], " ", g["source"], " ", g["pattern"]))
		}
		if diff := cmp.Diff([]string{"14 attempts orders order <n>: connection refused", "5 permanent orders bad order", "1 unknown <nil> <nil>"}, groups); diff != "" || got.code != 0 || !strings.Contains(got.stderr, told) {
			t.Errorf("exit code %d, groups (-want +got):\n%s%s", got.code, diff, got.stderr)
		}
		left("20")
	}

	file := filepath.Join(t.TempDir(), "letters.jsonl")
	if got = run("dead", "export", "dead", "--reason", "permanent", "--file", file); got.code != 0 || !strings.Contains(got.stderr, "exported 5 dead letters of 20") {
		t.Errorf("export: exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
	text, err := os.ReadFile(file)
	if about, statErr := os.Stat(file); err != nil || statErr != nil || about.Mode().Perm() != 0o600 || len(records(t, string(text))) != 5 {
		t.Errorf("%v, %v: %s", err, statErr, text)
	}
	if got = run("dead", "export", "dead", "--file", file); got.code != 2 || !strings.Contains(got.stderr, "name a new file") {
		t.Errorf("export to a file that exists: exit code %d, %s", got.code, got.stderr)
	}
	none := filepath.Join(t.TempDir(), "none.jsonl")
	for _, args := range [][]string{{"dead", "--job", "--admin", "unix:/nonexistent/s"}, {"none"}} {
		got := run(append([]string{"dead", "export", "--file", none}, args...)...)
		if _, err := os.Stat(none); got.code == 0 || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("an export that could not begin: exit code %d, %s; its file: %v", got.code, got.stderr, err)
		}
	}
	left("20")

	if got = run("redrive", "dead", "--where", "order=1", "--where", "order!=2", "--dry-run"); got.code != 0 || !strings.HasPrefix(got.stdout, "1 would be sent back to ") {
		t.Errorf("dry run: exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
	if got = run("redrive", "dead", "--error", "connection refused", "--limit", "10", "--rate", "1000"); got.code != 0 || !strings.HasPrefix(got.stdout, "10 sent back to ") {
		t.Errorf("redrive: exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
	left("10")

	if got = run("dead", "delete", "dead", "--reason", "permanent", "--dry-run"); got.code != 0 || !strings.Contains(got.stderr, "5 dead letters of 10 would be deleted") {
		t.Errorf("dry run: exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
	left("10")
	if got = run("dead", "delete", "dead", "--reason", "permanent", "--yes"); got.code != 0 || got.stdout != "5 dead letters deleted from "+*queueURL(endpoint, "dead")+"\n" {
		t.Errorf("delete: exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
	left("5")

	if got = reprise(t, "", "send", "orders", "--endpoint", endpoint, "--messages", "--file", file); got.code != 0 || !strings.HasPrefix(got.stdout, "5 sent to ") {
		t.Errorf("import: exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
	if visible, _ := visibleIn(t, endpoint, "orders"); visible != "15" {
		t.Errorf("orders holds %s, want the 10 redriven and the 5 imported", visible)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"dead", "delete", "dead", "--yes"}, "or --all for all"},
		{[]string{"dead", "delete", "dead", "--all", "--reason", "age", "--yes"}, "or --all for all"},
		{[]string{"dead", "delete", "dead", "--all"}, "there is no terminal to ask on"},
		{[]string{"dead", "export", "dead", "-o", "table"}, "leave --output out"},
		{[]string{"redrive", "dead", "--rate", "-1"}, "--rate is -1"},
		{[]string{"redrive", "dead", "--error", "("}, "--error"},
	} {
		if got := run(test.args...); got.code != 2 || !strings.Contains(got.stderr, test.want) {
			t.Errorf("%q: exit code %d, %s", test.args, got.code, got.stderr)
		}
	}
	left("5")
	if got = run("dead", "delete", "dead", "--all", "--yes"); got.code != 0 {
		t.Errorf("delete all: exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
	left("0")
}

// TestSendMessages: a message that was exported is sent whole, to the bit, and a mistake names its line.
func TestSendMessages(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "a", "--queue", "b", "--queue", "f.fifo")
	odd, binary := "caf\u00e9 \u202e\U0001F600 \u0085\r\n\t\"<&", []byte{0, 1, 255}
	attributes := map[string]types.MessageAttributeValue{
		"tenant": {DataType: aws.String("String"), StringValue: aws.String("acme \u202e")}, "n": {DataType: aws.String("Number.int"), StringValue: aws.String("42")},
		"key": {DataType: aws.String("Binary"), BinaryValue: binary},
	}
	if _, err := client(endpoint).SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: queueURL(endpoint, "a"), MessageBody: &odd, MessageAttributes: attributes}); err != nil {
		t.Fatal(err)
	}
	exported := reprise(t, "", "peek", "a", "--endpoint", endpoint)
	if got := reprise(t, exported.stdout, "send", "b", "--endpoint", endpoint, "--messages", "--rate", "100"); got.code != 0 {
		t.Fatalf("exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
	out, err := client(endpoint).ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: queueURL(endpoint, "b"), WaitTimeSeconds: 10, MessageAttributeNames: []string{"All"}})
	if err != nil || len(out.Messages) != 1 || *out.Messages[0].Body != odd {
		t.Fatalf("%v: %+v", err, out)
	}
	got := out.Messages[0].MessageAttributes
	if len(got) != 3 || *got["tenant"].StringValue != "acme \u202e" || *got["n"].DataType != "Number.int" || string(got["key"].BinaryValue) != string(binary) {
		t.Errorf("attributes %+v", got)
	}
	lines := `{"body":"1","group":"g","deduplication":"same"}` + "\n" + `{"body":"2","group":"g","deduplication":"same"}` + "\n" + `{"body":"3","group":"h"}`
	if got := reprise(t, lines, "send", "f.fifo", "--endpoint", endpoint, "--messages"); got.code != 0 || strings.Join(received(t, endpoint, "f.fifo", 2), " ") != "1 3" {
		t.Errorf("FIFO: exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
	for line, want := range map[string]string{
		`{"body":"x"}` + "\nplain":    "standard input, line 2, is not a message in JSON",
		`{"body":"x","colour":"red"}`: `unknown field "colour"`,
		`{"body":""}`:                 "has no body",
		`{"body":"x"} {"body":"y"}`:   "more than one JSON value",
	} {
		if got := reprise(t, line, "send", "b", "--endpoint", endpoint, "--messages"); got.code == 0 || !strings.Contains(got.stderr, want) {
			t.Errorf("%q: exit code %d, %s", line, got.code, got.stderr)
		}
	}
	if got := reprise(t, `{"body":"x"}`, "send", "f.fifo", "--endpoint", endpoint, "--messages"); got.code == 0 || !strings.Contains(got.stderr, `has no "group"`) {
		t.Errorf("exit code %d, %s", got.code, got.stderr)
	}
}

// TestDeadDeleteSparesTheLiving: --all means dead letters. In a queue that is nobody's dead-letter
// queue, messages that nothing says are dead letters stay.
func TestDeadDeleteSparesTheLiving(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "plain", "--queue", "orders,dead-letter=dead")
	fill := func(queue string) {
		sendJSON(t, endpoint, queue, "{}", nil)
		sendJSON(t, endpoint, queue, "{}", map[string]any{"reason": "permanent", "message": "m", "origin": "o", "source": "orders"})
	}
	fill("plain")
	fill("dead")
	for _, test := range []struct {
		args []string
		code int
		want string
		left string
	}{
		{[]string{"plain", "--all", "--dry-run"}, 3, "1 dead letter of 2 would be deleted", "2"},
		{[]string{"plain", "--all", "--dry-run", "--job", "--admin", endpoint}, 3, "1 message left: nothing says", "2"},
		{[]string{"plain", "--all", "--yes"}, 3, "1 message left: nothing says", "1"},
		{[]string{"plain", "--all", "--yes", "--job", "--admin", endpoint}, 3, "1 message left: nothing says", "1"},
		{[]string{"plain", "--older-than", "1ms", "--yes"}, 0, "1 dead letter deleted", "0"},
		{[]string{"dead", "--all", "--yes"}, 0, "2 dead letters deleted", "0"},
	} {
		args := append([]string{"dead", "delete"}, test.args...)
		if !slices.Contains(args, "--job") {
			args = append(args, "--endpoint", endpoint)
		}
		r := reprise(t, "", args...)
		if visible, _ := visibleIn(t, endpoint, test.args[0]); r.code != test.code || !strings.Contains(r.stdout+r.stderr, test.want) || visible != test.left {
			t.Errorf("dead delete %q: exit code %d, %s left, want %q:\n%s%s", test.args, r.code, visible, test.want, r.stdout, r.stderr)
		}
	}
}

// TestDeadReceivesNothingUnasked: a server that fails to tell its groups is not asked for the letters by
// receives, which would raise their counts.
func TestDeadReceivesNothingUnasked(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "orders,dead-letter=dead")
	sendJSON(t, endpoint, "dead", "{}", nil)
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	for name, fail := range map[string]http.HandlerFunc{
		"no reply": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"a failure": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, `{"error":"too slow","code":"failed"}`)
		},
	} {
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(r.URL.Path, admin.Path) {
				fail(w, r)
				return
			}
			proxy.ServeHTTP(w, r)
		}))
		r := reprise(t, "", "dead", "dead", "--endpoint", front.URL)
		story := reprise(t, "", "trace", "no-such-id", "dead", "--endpoint", front.URL)
		for _, args := range [][]string{{"peek", "dead"}, {"search", "dead", "--body", "."}, {"dead", "dead", "--newer-than", "1h"}, {"dead", "delete", "dead", "--all", "--dry-run"}} {
			if got := reprise(t, "", append(args, "--endpoint", front.URL)...); got.code != 1 || !strings.Contains(got.stderr, "has not shown the messages") {
				t.Errorf("%q, %s: exit code %d, %s%s", args, name, got.code, got.stdout, got.stderr)
			}
		}
		front.Close()
		if visible, _ := visibleIn(t, endpoint, "dead"); story.code != 1 || !strings.Contains(story.stderr, "has not told the story") || visible != "1" {
			t.Errorf("trace, %s: exit code %d, %s visible:\n%s%s", name, story.code, visible, story.stdout, story.stderr)
		}
		if visible, _ := visibleIn(t, endpoint, "dead"); r.code != 1 || !strings.Contains(r.stderr, "has not said what is in the queue") || visible != "1" {
			t.Errorf("%s: exit code %d, %s visible:\n%s%s", name, r.code, visible, r.stdout, r.stderr)
		}
	}
	list := records(t, reprise(t, "", "peek", "dead", "--endpoint", endpoint, "-o", "json").stdout)
	if len(list) != 1 || list[0]["receives"] != nil {
		t.Errorf("it was received: %v", list)
	}
}

// TestDeadOfALiveQueue: messages of a queue that is nobody's dead-letter queue are not called dead
// letters of an unknown reason.
func TestDeadOfALiveQueue(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "plain", "--queue", "orders,dead-letter=dead")
	for _, queue := range []string{"plain", "dead"} {
		sendJSON(t, endpoint, queue, "{}", nil)
		sendJSON(t, endpoint, queue, "{}", map[string]any{"reason": "permanent", "error": "permanent: no such customer", "source": "orders"})
	}
	for _, test := range []struct{ queue, want string }{{"plain", "not dead"}, {"dead", "unknown"}} {
		for _, how := range [][]string{nil, {"--newer-than", "1h"}} { // told by the server, and received
			r := reprise(t, "", append([]string{"dead", test.queue, "--endpoint", endpoint, "-o", "json"}, how...)...)
			reasons := make(map[any]any)
			for _, g := range records(t, r.stdout) {
				reasons[g["reason"]] = g["error"]
			}
			if _, found := reasons[test.want]; !found || len(reasons) != 2 || reasons["permanent"] != "no such customer" {
				t.Errorf("dead %s %q: %v, want %q", test.queue, how, reasons, test.want)
			}
			if says := strings.Contains(r.stderr, "1 message: nothing says that these are dead letters"); says != (test.queue == "plain") {
				t.Errorf("dead %s %q says %s", test.queue, how, r.stderr)
			}
		}
	}
}

// TestDeadDeleteAllDenied: who may not ask which queues name this one learns what to permit, and the way
// without; nothing is deleted.
func TestDeadDeleteAllDenied(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "orders,dead-letter=dead")
	sendJSON(t, endpoint, "dead", "{}", nil)
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".ListDeadLetterSourceQueues") {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"__type":"com.amazonaws.sqs#AccessDeniedException","message":"not you"}`)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	r := reprise(t, "", "dead", "delete", "dead", "--all", "--yes", "--endpoint", front.URL)
	if visible, _ := visibleIn(t, endpoint, "dead"); r.code != 5 || visible != "1" || !strings.Contains(r.stderr, "sqs:ListDeadLetterSourceQueues") || !strings.Contains(r.stderr, "by a selection") {
		t.Errorf("exit code %d, %s left: %s%s", r.code, visible, r.stdout, r.stderr)
	}
}

// TestPurge: counts come first, and nothing is deleted unasked.
func TestPurge(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "q")
	for range 3 {
		sendJSON(t, endpoint, "q", "{}", nil)
	}
	for _, test := range []struct {
		args []string
		code int
		want string
		left string
	}{
		{[]string{"q"}, 2, "3 visible, 0 in flight, 0 delayed would be deleted, and there is no terminal to confirm that on", "3"},
		{[]string{"q", "--dry-run"}, 0, "3 visible, 0 in flight, 0 delayed would be deleted", "3"},
		{[]string{"absent", "--yes"}, 5, `"absent" does not exist`, "3"},
		{[]string{"q", "--yes"}, 0, "purged (3 visible", "0"},
		{[]string{"q", "--yes"}, 1, "less than 60 seconds ago", "0"},
	} {
		got := reprise(t, "", append([]string{"purge", "--endpoint", endpoint}, test.args...)...)
		if got.code != test.code || !strings.Contains(got.stdout+got.stderr, test.want) {
			t.Errorf("%q: exit code %d, %s%s; want %d and %q", test.args, got.code, got.stdout, got.stderr, test.code, test.want)
		}
		if visible, _ := visibleIn(t, endpoint, "q"); visible != test.left {
			t.Errorf("%q: %s left, want %s", test.args, visible, test.left)
		}
	}
}
