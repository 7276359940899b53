//go:build unix

package main_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// TestJobs: a server and a worker carry out what commands ask for, with the counts and exit codes of the
// commands, and on queues that they know.
func TestJobs(t *testing.T) {
	t.Parallel()
	p, endpoint := serve(t, "--queue", "orders,dead-letter=dead", "--queue", "parked", "--queue", "idle,dead-letter=dead")
	fillDead(t, endpoint)
	w := startIn(t, environment("AWS_ENDPOINT_URL_SQS="+endpoint), "run", "--queue", "idle", "--exec", "true", "--admin-addr", "127.0.0.1:0")
	worker, _, _ := strings.Cut(w.await("admin         "), "/health")
	w.await("msg=consuming")
	for _, test := range []struct {
		admin string
		args  []string
		code  int
		want  string
	}{
		{endpoint, []string{"redrive", "dead", "--reason", "permanent", "--dry-run"}, 0, "5 would be sent back to " + *queueURL(endpoint, "orders")},
		{endpoint, []string{"redrive", "dead", "--reason", "permanent", "--limit", "2"}, 0, "2 sent back to " + *queueURL(endpoint, "orders")},
		{worker, []string{"redrive", "dead", "--reason", "permanent"}, 0, "3 sent back to " + *queueURL(endpoint, "orders")},
		{worker, []string{"redrive", "dead", "--where", "order=19"}, 3, "dead letters that do not say which queue they came from"},
		{endpoint, []string{"dead", "export", "dead", "--reason", "attempts"}, 0, `"reason":"attempts"`},
		{worker, []string{"dead", "export", "dead", "--where", "order=1"}, 0, "exported 1 dead letter of 15"},
		{endpoint, []string{"move", "dead", "parked", "--where", "order=1"}, 0, "1 moved to " + *queueURL(endpoint, "parked")},
		{endpoint, []string{"move", "orders", "parked"}, 0, "5 moved to " + *queueURL(endpoint, "parked")},
		{worker, []string{"dead", "delete", "dead", "--where", "order=2", "--dry-run"}, 0, "1 would be deleted from "},
		{worker, []string{"dead", "delete", "dead", "--where", "order=2", "--yes"}, 0, "1 deleted from "},
		{endpoint, []string{"dead", "delete", "dead", "--where", "order=3", "--yes"}, 0, "1 deleted from "},
		{worker, []string{"redrive", "parked"}, 5, `knows no queue "parked"`},
		{worker, []string{"redrive", "dead", "--to", "parked"}, 5, `knows no queue "parked"`},
		{worker, []string{"dead", "delete", "dead", "--all"}, 2, "a job does not ask"},
		{worker, []string{"dead", "delete", "dead", "--yes"}, 2, "or --all for all"},
		{worker, []string{"redrive", "dead", "--error", "("}, 2, "--error"},
		{worker, []string{"redrive", "dead", "--task"}, 2, "use one of them"},
		{worker, []string{"redrive", "dead", "--endpoint", endpoint}, 2, "leave --endpoint and --region out"},
	} {
		got := reprise(t, "", append(test.args, "--job", "--admin", test.admin)...)
		if got.code != test.code || !strings.Contains(got.stdout+got.stderr, test.want) {
			t.Errorf("%q: exit code %d, %s%s; want %d and %q", test.args, got.code, got.stdout, got.stderr, test.code, test.want)
		}
	}
	if visible, inFlight := visibleIn(t, endpoint, "dead"); visible != "12" || inFlight != "0" {
		t.Errorf("%s dead letters are visible and %s in flight, want the 12 that nothing was done to", visible, inFlight)
	}
	if visible, _ := visibleIn(t, endpoint, "parked"); visible != "6" {
		t.Errorf("%s messages were moved, want 6", visible)
	}
	p.signal(os.Interrupt)
	_, output := p.wait()
	for _, want := range []string{`msg="admin action" action=redrive queue=` + *queueURL(endpoint, "dead"), `state=done dry_run=true looked=20 matched=5 done=5 failed=0 `} {
		if !strings.Contains(output, want) {
			t.Errorf("the log has no %s", want)
		}
	}
}

// TestJobTrustsSignedStories: a job sends letters back to the queue that a story names if the process
// has the key that signed it. What senders have written, or what has no key here, decides nothing.
func TestJobTrustsSignedStories(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env  []string
		code int
		want string
	}{
		"with keys":    {[]string{"REPRISE_SIGNING_KEYS=" + keyText}, 3, "1 sent back to "},
		"without keys": {nil, 3, "left in the queue: 2 dead letters"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, endpoint := serve(t, "--queue", "orders", "--queue", "graves") // which is no queue's dead-letter queue to SQS
			p := startIn(t, environment(append(c.env, "AWS_ENDPOINT_URL_SQS="+endpoint)...), "run", "--queue", "orders", "--exec", "exit 100", "--dead-letter", "graves", "--admin-addr", "127.0.0.1:0")
			worker, _, _ := strings.Cut(p.await("admin         "), "/health")
			sendOrders(t, endpoint, 1)
			p.await("message dead-lettered")
			sendJSON(t, endpoint, "graves", "{}", map[string]any{"reason": "permanent", "source": "arn:aws:sqs:us-east-1:000000000000:orders", "message": "m", "origin": "o"})
			pause := reprise(t, "", "pause", "orders", "--admin", worker)
			got := reprise(t, "", "redrive", "graves", "--any-queue", "--job", "--admin", worker)
			if text := got.stdout + got.stderr; pause.code != 0 || got.code != c.code || !strings.Contains(text, c.want) || strings.Contains(text, "cHJvZHVj") {
				t.Errorf("exit codes %d and %d, want %q:\n%s%s", pause.code, got.code, c.want, pause.stderr, text)
			}
		})
	}
}

// TestJobOutlivesItsClient: Ctrl-C leaves a job alone, and another client finds and cancels it; the
// messages are in one queue or the other.
func TestJobOutlivesItsClient(t *testing.T) {
	t.Parallel()
	_, endpoint := serve(t, "--queue", "a", "--queue", "b")
	for i := range 30 {
		sendJSON(t, endpoint, "a", fmt.Sprint(i), nil)
	}
	p := start(t, "move", "a", "b", "--rate", "1", "--job", "--admin", endpoint)
	id := strings.TrimSpace(strings.TrimSuffix(p.await("reprise: job-"), " began"))
	p.signal(os.Interrupt)
	if code, output := p.wait(); code != 3 || !strings.Contains(output, "job-"+id+" goes on in the process") {
		t.Errorf("after Ctrl-C: exit code %d, %s", code, output)
	}
	list := records(t, reprise(t, "", "jobs", "--admin", endpoint).stdout)
	if len(list) != 1 || list[0]["id"] != "job-"+id || list[0]["state"] != "running" {
		t.Errorf("the list %v", list)
	}
	if got := reprise(t, "", "jobs", "cancel", "job-"+id, "--admin", endpoint); got.code != 0 {
		t.Errorf("cancel: %+v", got)
	}
	job := func() map[string]any {
		return records(t, reprise(t, "", "jobs", "job-"+id, "--admin", endpoint).stdout)[0]
	}
	for deadline := time.Now().Add(patience); job()["state"] == "running" && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
	}
	if j := job(); j["state"] != "cancelled" || j["done"].(float64) >= 30 {
		t.Errorf("the job %v", j)
	}
	if n := inQueue(t, endpoint, "a") + inQueue(t, endpoint, "b"); n != 30 {
		t.Errorf("%d messages of 30 are left", n)
	}
	table := reprise(t, "", "jobs", "--admin", endpoint, "-o", "table").stdout
	if !strings.Contains(table, "job-"+id+"  move    a      cancelled") {
		t.Errorf("the table:\n%s", table)
	}
	for _, args := range [][]string{{"jobs", "job-x"}, {"jobs", "cancel", "job-x"}} {
		if got := reprise(t, "", append(args, "--admin", endpoint)...); got.code != 1 || !strings.Contains(got.stderr, `no job "job-x"`) {
			t.Errorf("%q: %+v", args, got)
		}
	}
}
