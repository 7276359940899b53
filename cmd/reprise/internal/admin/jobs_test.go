package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// jobQueue finds the queues of withMessages. Their clients are not called: deletes and exports look at
// the server's messages.
func jobQueue(_ context.Context, queue string) (admin.JobQueue, error) {
	var found []string
	if queue == "dead" || queue == "orders" {
		found = []string{queueURL + queue}
	}
	url, err := admin.OneQueue(queue, found)
	return admin.JobQueue{URL: url}, err
}

// run starts a job, which must succeed, and waits for its end.
func (s *served) run(body string) admin.Job {
	s.t.Helper()
	status, text := s.call("POST", admin.Path+"jobs", body)
	if status != 200 {
		s.t.Fatalf("%s: %d %s", body, status, text)
	}
	return s.await(decode[admin.Job](s.t, text).ID)
}

func (s *served) await(id string) admin.Job {
	s.t.Helper()
	for {
		_, text := s.call("GET", admin.Path+"jobs/"+id, "")
		if j := decode[admin.Job](s.t, text); j.State != admin.JobRunning {
			return j
		}
		if s.t.Context().Err() != nil {
			s.t.Fatalf("it runs still: %s", text)
		}
		time.Sleep(time.Millisecond)
	}
}

func bodies(t *testing.T, server *sqsserver.Server, queue string) (ids []string) {
	t.Helper()
	all, err := server.Messages(queue, sqsserver.Page{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range all {
		ids = append(ids, all[i].ID)
	}
	return ids
}

// TestJobs: a dry run counts, an export has the messages, a delete deletes those that are selected and
// visible and no other, without a receive; the log has who did what, and how it ended.
func TestJobs(t *testing.T) {
	s, server := withMessages(t)
	before := bodies(t, server, "dead")

	dry := s.run(`{"action":"delete","queue":"dead","selection":{"error":"ending in 400[0-2]"},"dry_run":true}`)
	if dry.State != admin.JobDone || dry.Looked != 5 || dry.Matched != 3 || dry.Done != 3 || dry.Failed != 0 || dry.Ended.IsZero() || !strings.HasPrefix(dry.Remote, "127.0.0.1:") {
		t.Errorf("dry run %+v", dry)
	}
	if after := bodies(t, server, "dead"); !slices.Equal(before, after) {
		t.Error("a dry run has deleted something")
	}

	exported := s.run(`{"action":"export","queue":"orders","all":true}`)
	if exported.Looked != 10 || exported.Done != 10 {
		t.Errorf("export %+v", exported)
	}
	_, text := s.call("GET", admin.Path+"jobs/"+exported.ID+"/messages", "")
	if page := decode[admin.Exported](t, text); len(page.Messages) != 10 || page.Next != "" || page.Messages[0].Attributes["tenant"].Value != "acme" || len(page.Messages[0].Body) < 2000 {
		t.Errorf("exported %s", text)
	}
	_, text = s.call("GET", admin.Path+"jobs/"+exported.ID+"/messages?after=9", "")
	if page := decode[admin.Exported](t, text); len(page.Messages) != 1 {
		t.Errorf("the last page %s", text)
	}

	limited := s.run(`{"action":"delete","queue":"dead","selection":{"error":"ending in 400[0-2]"},"limit":2}`)
	if limited.Done != 2 || len(bodies(t, server, "dead")) != 3 {
		t.Errorf("with a limit %+v", limited)
	}
	rest := s.run(`{"action":"delete","queue":"dead","selection":{"reasons":["permanent"],"ids":["o-2"]}}`)
	if left := bodies(t, server, "dead"); rest.Done != 1 || !slices.Equal(left, before[3:]) {
		t.Errorf("delete %+v leaves %q", rest, left)
	}
	s.run(`{"action":"delete","queue":"orders","all":true}`)
	if left := bodies(t, server, "orders"); len(left) != 2 { // the one in flight, and the delayed one
		t.Errorf("%d messages are left of those that others have", len(left))
	}

	_, text = s.call("GET", admin.Path+"jobs", "")
	list := decode[admin.JobList](t, text).Jobs
	if len(list) != 5 || list[3].ID != exported.ID || list[4].ID != dry.ID {
		t.Errorf("the list %s", text)
	}
	log := s.log.String()
	for _, want := range []string{
		`msg="admin action" action=delete queue=` + queueURL + `dead with="{\"action\":\"delete\",\"queue\":\"dead\",\"selection\":{\"error\":\"ending in 400[0-2]\"},\"limit\":2}" remote=127.0.0.1:`,
		`msg="admin job ended" action=delete queue=` + queueURL + `dead job=` + limited.ID + ` state=done dry_run=false looked=2 matched=2 done=2 failed=0 remote=127.0.0.1:`,
	} {
		if strings.Count(log, want) != 1 {
			t.Errorf("the log has no line, or several, with %s:\n%s", want, log)
		}
	}
}

// TestJobLimitOverPages: the limit of a job holds for all messages that it deletes, of which it has 64 in memory at a time.
func TestJobLimitOverPages(t *testing.T) {
	s, server := withMessages(t)
	for range 150 {
		in := &sqsserver.SendMessageInput{QueueUrl: "dead"}
		in.MessageBody = "letter"
		if _, err := server.SendMessage(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	before := bodies(t, server, "dead")
	j := s.run(`{"action":"delete","queue":"dead","all":true,"limit":100}`)
	if left := bodies(t, server, "dead"); j.Done != 100 || j.Matched != 100 || !slices.Equal(left, before[100:]) {
		t.Errorf("%+v: %d of %d messages are left", j, len(left), len(before))
	}
}

// TestJobsEnd: a job that is slow is alone on its queue, can be cancelled, and is told of as it runs; of
// those that have ended a hundred are remembered; none starts after the stop, which ends all.
func TestJobsEnd(t *testing.T) {
	s, server := withMessages(t)
	const slow = `{"action":"delete","queue":"orders","all":true,"rate":0.01}`
	_, text := s.call("POST", admin.Path+"jobs", slow)
	id := decode[admin.Job](t, text).ID
	if status, text := s.call("POST", admin.Path+"jobs", slow); status != 409 || !strings.Contains(text, id) {
		t.Errorf("a second job: %d %s", status, text)
	}
	status, text := s.call("DELETE", admin.Path+"jobs/"+id, "")
	if status != 200 {
		t.Errorf("cancel: %d %s", status, text)
	}
	if j := s.await(id); j.State != admin.JobCancelled || j.Done != 1 || len(bodies(t, server, "orders")) != 11 {
		t.Errorf("cancelled %+v", j)
	}
	for range 101 {
		s.run(`{"action":"export","queue":"dead","all":true}`)
	}
	_, text = s.call("GET", admin.Path+"jobs", "")
	if n := len(decode[admin.JobList](t, text).Jobs); n != 100 {
		t.Errorf("%d jobs are remembered", n)
	}
	if status, _ := s.call("GET", admin.Path+"jobs/"+id, ""); status != 404 {
		t.Errorf("the oldest is not forgotten: %d", status)
	}

	_, text = s.call("POST", admin.Path+"jobs", slow)
	last := decode[admin.Job](t, text).ID
	if err := s.api.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if j := s.await(last); j.State != admin.JobCancelled {
		t.Errorf("after the stop %+v", j)
	}
	if status, text := s.call("POST", admin.Path+"jobs", slow); status != 503 {
		t.Errorf("after the stop one starts: %d %s", status, text)
	}
}

// TestJobStream: a stream of one job begins with the job as it is, also when a client comes back, and
// ends with its end. That of a job that has ended says how.
func TestJobStream(t *testing.T) {
	s, _ := withMessages(t)
	_, text := s.call("POST", admin.Path+"jobs", `{"action":"delete","queue":"orders","all":true,"rate":0.01}`)
	id := decode[admin.Job](t, text).ID
	open := func() *streamOf {
		r := s.open("jobs/" + id + "/events")
		if name, data := r.next(); name != admin.EventJob || decode[admin.Job](t, data).ID != id {
			t.Fatalf("the stream begins with %s %s", name, data)
		}
		return r
	}
	open().body.Close()
	first, second := open(), open()
	s.run(`{"action":"export","queue":"dead","all":true}`) // of which the streams say nothing
	s.call("DELETE", admin.Path+"jobs/"+id, "")
	for _, r := range []*streamOf{first, second} {
		state := ""
		for {
			name, data := r.next()
			if name == "" {
				break
			}
			if j := decode[admin.Job](t, data); j.ID == id {
				state = j.State
				continue
			}
			t.Errorf("another job's event %s", data)
		}
		if state != admin.JobCancelled {
			t.Errorf("the last event says %q", state)
		}
	}
	r := s.open("jobs/" + id + "/events")
	if name, data := r.next(); name != admin.EventJob || decode[admin.Job](t, data).State != admin.JobCancelled {
		t.Errorf("the stream of a job that has ended: %s %s", name, data)
	}
	if name, data := r.next(); name != "" {
		t.Errorf("after the end: %s %s", name, data)
	}
	for range 40 { // more than a client may have at once: each that has ended makes room
		for r := s.open("jobs/" + id + "/events"); ; {
			if name, _ := r.next(); name == "" {
				break
			}
		}
	}
}

// TestJobMistakes name the input and the remedy, and start nothing.
func TestJobMistakes(t *testing.T) {
	s, server := withMessages(t)
	for _, test := range []struct {
		method, path, body string
		status             int
		text               string
	}{
		{"POST", "jobs", `{"action":"delete","queue":"dead"}`, 400, "all: true for all"},
		{"POST", "jobs", `{"action":"delete","queue":"dead","all":true,"selection":{"ids":["x"]}}`, 400, "all: true for all"},
		{"POST", "jobs", `{"action":"drop","queue":"dead","all":true}`, 400, `action is \"drop\"`},
		{"POST", "jobs", `{"action":"move","queue":"dead","all":true}`, 400, "to is missing"},
		{"POST", "jobs", `{"action":"move","queue":"dead","to":"dead","all":true}`, 400, "name another queue"},
		{"POST", "jobs", `{"action":"delete","queue":"dead","to":"orders","all":true}`, 400, "to is for redrive and move"},
		{"POST", "jobs", `{"action":"delete","queue":"absent","all":true}`, 404, `no queue \"absent\"`},
		{"POST", "jobs", `{"action":"delete","all":true}`, 400, "queue is missing"},
		{"POST", "jobs", `{"action":"delete","queue":"dead","all":true,"limit":-1}`, 400, "limit is below 0"},
		{"POST", "jobs", `{"action":"delete","queue":"dead","all":true,"rate":-1}`, 400, "rate is out of range"},
		{"POST", "jobs", `{"action":"delete","queue":"dead","selection":{"error":"("}}`, 400, `error \"(\"`},
		{"POST", "jobs", `{"action":"delete","queue":"dead","selection":{"where":["x"]}}`, 400, "path=value"},
		{"POST", "jobs", `{"action":"delete","queue":"dead","selection":{"older_than":"soon"}}`, 400, "positive duration"},
		{"POST", "jobs", `{"action":"delete","queue":"dead","selection":{"colour":"red"}}`, 400, "unknown field"},
		{"POST", "jobs", `{"action":"delete","queue":"dead","all":true,"edit":{"remove":["x"]}}`, 400, "edit is for redrive"},
		{"POST", "jobs", `{"action":"redrive","queue":"dead","all":true,"edit":{"find":"("}}`, 400, "find cannot be used"},
		{"POST", "jobs", `{"action":"redrive","queue":"dead","all":true,"edit":{"replace":"x"}}`, 400, "replace needs find"},
		{"POST", "jobs", `{"action":"redrive","queue":"dead","all":true,"edit":{"set":{"x":""}}}`, 400, "nor empty values"},
		{"POST", "jobs", ``, 415, "application/json"},
		{"GET", "jobs/job-x", ``, 404, "no job"},
		{"GET", "jobs/job-x/messages", ``, 404, "no job"},
		{"GET", "jobs/job-x/events", ``, 404, "no job"},
		{"GET", "jobs/job-x/messages?after=x", ``, 400, "next of the page before"},
		{"DELETE", "jobs/job-x", ``, 404, "no job"},
		{"PUT", "jobs/job-x", `{}`, 405, "use "},
	} {
		status, text := s.call(test.method, admin.Path+test.path, test.body)
		if status != test.status || !strings.Contains(text, test.text) {
			t.Errorf("%s %s %s: %d %s, want %d and %q", test.method, test.path, test.body, status, text, test.status, test.text)
		}
	}
	if _, text := s.call("GET", admin.Path+"jobs", ""); strings.TrimSpace(text) != `{"jobs":[]}` || len(bodies(t, server, "dead")) != 5 {
		t.Errorf("something was started: %s", text)
	}
	readOnly := serve(t, func(cfg *admin.Config) { cfg.Server, cfg.JobQueue, cfg.ReadOnly = server, jobQueue, true })
	for _, request := range [][2]string{{"POST", "jobs"}, {"DELETE", "jobs/job-x"}} {
		if status, text := readOnly.call(request[0], admin.Path+request[1], `{"action":"delete","queue":"dead","all":true}`); status != 403 || !strings.Contains(text, "read-only") {
			t.Errorf("read-only %s: %d %s", request, status, text)
		}
	}
	broken := serve(t, func(cfg *admin.Config) {
		cfg.JobQueue = func(context.Context, string) (admin.JobQueue, error) { return admin.JobQueue{}, errors.New("no route") }
	})
	if status, text := broken.call("POST", admin.Path+"jobs", `{"action":"delete","queue":"dead","all":true}`); status != 500 || !strings.Contains(text, "no route") {
		t.Errorf("%d %s", status, text)
	}
}

// TestJobEvents: those who watch learn of the end of a job.
func TestJobEvents(t *testing.T) {
	s, _ := withMessages(t)
	client, err := admin.NewClient(s.URL, "")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan string, 100)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_ = client.Watch(ctx, nil, []string{admin.EventJob}, func(name string, data json.RawMessage) error {
			j := decode[admin.Job](t, string(data))
			seen <- fmt.Sprint(name, " ", j.Action, " ", j.State, " ", j.Done)
			return nil
		})
	}()
	for { // the stream may not have begun
		s.run(`{"action":"export","queue":"dead","all":true}`)
		select {
		case got := <-seen:
			for got != "job export done 5" {
				got = <-seen
			}
			return
		default:
		}
	}
}

// TestExportsAreBounded: of the exports of a process, those that ended first are dropped when a later one needs the
// memory, which their jobs say; one that does not fit beside those that run fails.
func TestExportsAreBounded(t *testing.T) {
	s, _ := withMessages(t)
	admin.KeepExports(s.api, 12_000) // two exports of five dead letters
	var exports []admin.Job
	for range 3 {
		exports = append(exports, s.run(`{"action":"export","queue":"dead","all":true}`))
	}
	for i, want := range []string{`"dropped":true`, `"done":5`, `"done":5`} {
		_, job := s.call("GET", admin.Path+"jobs/"+exports[i].ID, "")
		status, messages := s.call("GET", admin.Path+"jobs/"+exports[i].ID+"/messages", "")
		dropped := i == 0
		if !strings.Contains(job, want) || strings.Contains(job, "dropped") != dropped || (status == 409) != dropped || strings.Contains(messages, "no longer kept") != dropped {
			t.Errorf("export %d: %s%d %s", i+1, job, status, messages)
		}
		if !dropped && len(decode[admin.Exported](t, messages).Messages) != 5 {
			t.Errorf("export %d: %s", i+1, messages)
		}
	}
	for range 100 { // the process forgets the exports, and that they took memory
		s.run(`{"action":"export","queue":"dead","all":true,"dry_run":true}`)
	}
	if j := s.run(`{"action":"export","queue":"dead","all":true}`); j.State != admin.JobDone || j.Done != 5 {
		t.Errorf("after the exports before are forgotten: %+v", j)
	}
	admin.KeepExports(s.api, 3000)
	_, text := s.call("POST", admin.Path+"jobs", `{"action":"export","queue":"dead","all":true}`)
	if j := s.await(decode[admin.Job](t, text).ID); j.State != admin.JobFailed || !strings.Contains(j.Problem, "reprise dead export, which writes a file") {
		t.Errorf("one that is too large: %+v", j)
	}
}
