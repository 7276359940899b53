//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// visibleIn returns how many messages of a queue are visible and in flight.
func visibleIn(t *testing.T, endpoint, queue string) (visible, inFlight string) {
	t.Helper()
	out, err := client(endpoint).GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: queueURL(endpoint, queue), AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Attributes["ApproximateNumberOfMessages"], out.Attributes["ApproximateNumberOfMessagesNotVisible"]
}

// records reads lines of JSON.
func records(t *testing.T, text string) (found []map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		found = append(found, record)
	}
	return found
}

// TestQueues: all queues, or those asked for, with their counts and findings.
func TestQueues(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "orders,dead-letter=orders-dead", "--queue", "bare")
	sendJSON(t, endpoint, "orders", "{}", nil)
	sendJSON(t, endpoint, "orders-dead", "{}", nil)
	got := reprise(t, "", "queues", "--endpoint", endpoint)
	rows := records(t, got.stdout)
	if got.code != 0 || len(rows) != 3 || rows[1]["name"] != "orders" || rows[1]["visible"] != 1.0 || rows[1]["dead_letter_queue"] != "orders-dead" {
		t.Fatalf("exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
	for i, code := range []string{"no-dead-letter-queue", "", "dead-letters"} {
		if text := fmt.Sprint(rows[i]["findings"]); code != "" && !strings.Contains(text, code) || code == "" && rows[i]["findings"] != nil {
			t.Errorf("%s has the findings %s, want %q", rows[i]["name"], text, code)
		}
	}
	for _, args := range [][]string{{"--prefix", "orders-"}, {"orders-dead"}, {*queueURL(endpoint, "orders-dead")}} {
		got := reprise(t, "", append([]string{"queues", "--endpoint", endpoint}, args...)...)
		if rows := records(t, got.stdout); got.code != 0 || len(rows) != 1 || rows[0]["name"] != "orders-dead" {
			t.Errorf("%q: exit code %d, %s%s", args, got.code, got.stdout, got.stderr)
		}
	}
}

// TestPeek: a look prints messages with all of their attributes and gives them back at once.
func TestPeek(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--no-admin", "--queue", "orders,dead-letter=orders-dead,max-receives=2", "--queue", "f.fifo")
	odd := "caf\u00e9 \u202e\U0001F600 \u0085 \"quoted\"\ttab"
	sendDeadLetter(t, endpoint, "f.fifo", "a", "first", "g")
	sendJSON(t, endpoint, "orders", odd, nil)
	for range 2 {
		got := reprise(t, "", "peek", "orders", "--endpoint", endpoint)
		rows := records(t, got.stdout)
		if got.code != 0 || len(rows) != 1 || rows[0]["body"] != odd || !strings.Contains(got.stderr, "to SQS a look is a receive") {
			t.Fatalf("exit code %d, %s%s", got.code, got.stdout, got.stderr)
		}
		if strings.ContainsAny(got.stdout, "\u202e\u0085") {
			t.Errorf("the output can steer a terminal: %q", got.stdout)
		}
		if atLimit := strings.Contains(got.stderr, "1 of them have now been received 2 times"); atLimit != (rows[0]["receives"] == 2.0) {
			t.Errorf("received %v times: %s", rows[0]["receives"], got.stderr)
		}
		if visible, inFlight := visibleIn(t, endpoint, "orders"); visible != "1" || inFlight != "0" {
			t.Errorf("%s visible and %s in flight after a look", visible, inFlight)
		}
	}
	got := reprise(t, "", "peek", "f.fifo", "--endpoint", endpoint, "-o", "table")
	if got.code != 0 || !strings.Contains(got.stdout, "group  why       body\n") || !strings.Contains(got.stdout, "g      attempts  first\n") {
		t.Errorf("exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
	got = reprise(t, "", "peek", "orders-dead", "--endpoint", endpoint)
	if got.code != 0 || got.stdout != "" || got.stderr != "reprise: looked at 0 messages\n" {
		t.Errorf("empty: exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
}

// TestLookWithoutReceives: a reprise server shows its messages to peek, search and dead, those that are hidden,
// too, without a receive: so nothing is moved to a dead-letter queue for it, and no --yes is needed.
func TestLookWithoutReceives(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "orders,dead-letter=orders-dead,max-receives=1", "--queue", "f.fifo,dead-letter=dead.fifo")
	sendJSON(t, endpoint, "orders", `{"order":1}`, nil)
	receive(t, endpoint, "orders")
	sendJSON(t, endpoint, "orders", `{"order":2}`, nil)
	story := map[string]any{"reason": "permanent", "error": "no such card"}
	sendJSON(t, endpoint, "orders-dead", `{"order":3}`, story)
	sendJSON(t, endpoint, "orders-dead", `{"order":4}`, story)
	receive(t, endpoint, "orders-dead")
	for i := range 25 {
		sendDeadLetter(t, endpoint, "f.fifo", "", fmt.Sprint(i), "g")
	}
	for _, test := range []struct {
		args   []string
		lines  int
		looked string
	}{
		{[]string{"peek", "orders"}, 1, "looked at 1 message; the server showed them"},
		{[]string{"peek", "orders", "--hidden"}, 2, "looked at 2 messages; the server showed them"},
		{[]string{"peek", "orders", "--hidden", "--limit", "1"}, 1, "looked at 1 message; the server showed them"},
		{[]string{"peek", "f.fifo", "--limit", "20"}, 20, "looked at 20 messages"},
		{[]string{"search", "orders", "--where", "order=1"}, 1, "looked at 2 messages, of which 1 matched"},
		{[]string{"search", "f.fifo", "--group", "g"}, 25, "looked at 25 messages"},
		{[]string{"search", "f.fifo", "--body", "1", "--limit", "2"}, 2, "looked at 25 messages"},
		{[]string{"dead", "orders-dead", "--error", "card"}, 1, "looked at 2 messages"},
		{[]string{"dead", "orders-dead", "--where", "order=7"}, 0, "looked at 2 messages, of which 0 matched"},
		{[]string{"dead", "delete", "orders-dead", "--error", "card", "--dry-run"}, 0, "0 dead letters of 2 would be deleted"},
	} {
		got := reprise(t, "", append(test.args, "-o", "json", "--endpoint", endpoint)...)
		if got.code != 0 || len(records(t, got.stdout)) != test.lines || !strings.Contains(got.stderr, test.looked) || strings.Contains(got.stderr, "raised") {
			t.Errorf("%q: exit code %d, want %d messages and %q: %s%s", test.args, got.code, test.lines, test.looked, got.stdout, got.stderr)
		}
	}
	for i, m := range records(t, reprise(t, "", "search", "orders", "--body", ".", "--endpoint", endpoint).stdout) {
		if m["receives"] != []any{1.0, nil}[i] {
			t.Errorf("after all looks message %d has been received %v times", i+1, m["receives"])
		}
		if standing, _ := m["standing"].(map[string]any); (standing["state"] == "in flight") != (i == 0) {
			t.Errorf("message %d stands so: %v", i+1, standing)
		}
	}
	setFaults(t, endpoint, "orders", `[{"kind":"throttle","action":"ReceiveMessage"}]`)
	if got := reprise(t, "", "peek", "orders", "--endpoint", endpoint); got.code != 0 {
		t.Errorf("peek receives: exit code %d, %s", got.code, got.stderr)
	}
}

// TestLookEnds: a search ends although messages are sent faster than it can look at them.
func TestLookEnds(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "orders")
	to, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	send := func(n int, body string) {
		got := reprise(t, strings.Repeat(body+"\n", n), "send", "orders", "--endpoint", endpoint)
		if got.code != 0 {
			t.Error(got.stderr)
		}
	}
	send(1100, "old")
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		proxy.ServeHTTP(w, r)
		if strings.HasSuffix(r.URL.Path, "/messages") {
			send(600, "new") // more than a page has
		}
	}))
	defer front.Close()
	got := reprise(t, "", "search", "orders", "--endpoint", front.URL, "--body", ".", "-o", "json")
	old := strings.Count(got.stdout, `"body":"old"`)
	if rows := records(t, got.stdout); got.code != 0 || old != 1100 || len(rows) > 2000 {
		t.Errorf("exit code %d after %d messages, %d of 1100 old ones among them: %s", got.code, len(rows), old, got.stderr)
	}
}

// TestSearch: what is selected is found in the whole queue, and all of it is given back.
func TestSearch(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--no-admin", "--queue", "orders", "--queue", "guarded,dead-letter=dead")
	for i := range 25 {
		sendJSON(t, endpoint, "orders", fmt.Sprintf(`{"order":%d,"customer":{"id":%d}}`, i, i%5), map[string]any{"reason": "attempts", "error": fmt.Sprint("error ", i), "source": "x", "origin": fmt.Sprint("o-", i)})
	}
	for _, test := range []struct {
		args []string
		want int
	}{
		{[]string{"--where", "customer.id=3"}, 5},
		{[]string{"--where", "customer.id=3", "--error", "error 1.$"}, 2},
		{[]string{"--id", "o-7", "--id", "o-8"}, 2},
		{[]string{"--body", `"order":1\b`}, 1},
		{[]string{"--body", "order", "--limit", "3"}, 3},
		{[]string{"--attribute", "tenant=x"}, 0},
		{[]string{"--newer-than", "1h", "--reason", "attempts"}, 25},
		{[]string{"--older-than", "1h"}, 0},
	} {
		got := reprise(t, "", append([]string{"search", "orders", "--endpoint", endpoint}, test.args...)...)
		if got.code != 0 || len(records(t, got.stdout)) != test.want {
			t.Errorf("%q: exit code %d, want %d messages: %s%s", test.args, got.code, test.want, got.stdout, got.stderr)
		}
		if visible, inFlight := visibleIn(t, endpoint, "orders"); visible != "25" || inFlight != "0" {
			t.Errorf("%q: %s visible and %s in flight after the search", test.args, visible, inFlight)
		}
	}
	sendJSON(t, endpoint, "guarded", "{}", nil)
	if got := reprise(t, "", "search", "guarded", "--endpoint", endpoint, "--body", "x"); got.code != 1 || !strings.Contains(got.stderr, "--yes") {
		t.Errorf("exit code %d, %s", got.code, got.stderr)
	}
	if got := reprise(t, "", "search", "guarded", "--endpoint", endpoint, "--body", "{}", "--yes"); got.code != 0 || len(records(t, got.stdout)) != 1 {
		t.Errorf("exit code %d, %s%s", got.code, got.stdout, got.stderr)
	}
}

// TestSearchStops: Ctrl-C ends a search, which gives everything back and says that there may be more.
func TestSearchStops(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--access-key", "a", "--secret", "b", "--admin", "--queue", "orders")
	setFaults(t, endpoint, "orders", `[{"kind":"slow-reply","action":"ReceiveMessage","delay":"500ms"}]`)
	for i := range 40 {
		sendJSON(t, endpoint, "orders", fmt.Sprint(i), nil)
	}
	p := startIn(t, environment("AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b"), "search", "orders", "--endpoint", endpoint, "--body", ".", "-o", "json")
	p.await(`"body"`)
	p.signal(os.Interrupt)
	code, output := p.wait()
	if code != 3 || !strings.Contains(output, "not all messages were searched") {
		t.Errorf("exit code %d: %s", code, output)
	}
	deadline := time.Now().Add(patience)
	for {
		visible, _ := visibleIn(t, endpoint, "orders")
		if visible == "40" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s visible after the search, want 40", visible)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestOperateMistakes: mistakes are named, with the remedy, and cost nothing.
func TestOperateMistakes(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "orders")
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"queues", "--retry", "x()"}, 2, "--retry"},
		{[]string{"queues", "orders", "--prefix", "o"}, 2, "leave it out, or the names"},
		{[]string{"queues", "absent"}, 5, `queue "absent" does not exist`},
		{[]string{"peek"}, 2, "accepts 1 arg"},
		{[]string{"peek", "absent"}, 5, `queue "absent" does not exist`},
		{[]string{"peek", "a/b"}, 2, "neither a name nor a URL"},
		{[]string{"peek", "orders", "--limit", "0"}, 2, "reprise search"},
		{[]string{"search", "orders"}, 2, "nothing says what to search for"},
		{[]string{"search", "orders", "--limit", "-1"}, 2, "--limit is -1"},
		{[]string{"search", "orders", "--error", "("}, 2, "--error"},
		{[]string{"search", "orders", "--attribute", "x"}, 2, "name=pattern"},
		{[]string{"search", "orders", "--attribute", "x=("}, 2, `--attribute "x=("`},
		{[]string{"search", "orders", "--where", "x"}, 2, "customer.id=42"},
		{[]string{"search", "orders", "--older-than", "-1h"}, 2, "positive durations"},
		{[]string{"search", "absent", "--body", "x"}, 5, `queue "absent" does not exist`},
	} {
		got := reprise(t, "", append(test.args, "--endpoint", endpoint)...)
		if got.code != test.code || !strings.Contains(got.stderr, test.want) || got.stdout != "" {
			t.Errorf("%q: exit code %d, %s%s; want %d and %q", test.args, got.code, got.stdout, got.stderr, test.code, test.want)
		}
	}
	nobody := "http://127.0.0.1:1"
	for _, args := range [][]string{{"queues"}, {"queues", "q"}, {"peek", "q"}} {
		got := reprise(t, "", append(args, "--endpoint", nobody)...)
		if got.code != 1 || !strings.Contains(got.stderr, "reprise serve") || !strings.Contains(got.stderr, nobody) {
			t.Errorf("%q: exit code %d, %s", args, got.code, got.stderr)
		}
	}
}
