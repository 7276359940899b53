package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// notingServer has the queues orders, whose dead letters go to dead, and parked, and an admin API that does nothing:
// it notes what it is asked for, and replies what it is told to.
type notingServer struct {
	*httptest.Server
	sqs *sqsserver.Server

	mu       sync.Mutex
	requests []admin.JobRequest
	acts     []string         // the paths of actions, unescaped
	reply    admin.Job        // to the start of a job
	refuse   http.HandlerFunc // replies to the start of a job, if it is not nil
}

func serveNoting(t *testing.T) *notingServer {
	t.Helper()
	s := &notingServer{sqs: sqsserver.New(sqsserver.Config{})}
	reply := func(w http.ResponseWriter, what any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(what)
	}
	mux := http.NewServeMux()
	mux.Handle("/", s.sqs)
	mux.HandleFunc("GET "+admin.Path+"{$}", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, admin.Process{Description: admin.Path + "openapi.json"})
	})
	mux.HandleFunc("GET "+admin.Path+"consumers", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, admin.Consumers{Consumers: []admin.Consumer{{Queue: "orders", URL: "https://eu.invalid/1/orders"}, {Queue: "orders", URL: "https://us.invalid/1/orders"}}})
	})
	mux.HandleFunc("POST "+admin.Path+"consumers/{queue}/{action}", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.acts = append(s.acts, r.PathValue("action")+" "+r.PathValue("queue"))
		if r.PathValue("queue") == "unknown" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"error": "this process knows no queue \"unknown\"", "code": "no-such-queue"}`)
			return
		}
		reply(w, admin.Done{Consumer: admin.Consumer{Queue: "orders"}, Woken: 1})
	})
	mux.HandleFunc("GET "+admin.Path+"jobs/{job}/messages", func(w http.ResponseWriter, _ *http.Request) { reply(w, admin.Exported{}) })
	mux.HandleFunc("POST "+admin.Path+"jobs", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		var request admin.JobRequest
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			t.Error(err)
		}
		s.requests = append(s.requests, request)
		if s.refuse != nil {
			s.refuse(w, r)
			return
		}
		j := s.reply
		j.ID, j.Action, j.DryRun = "job-1", request.Action, request.DryRun
		reply(w, j)
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	for _, q := range []struct{ name, policy string }{
		{"dead", ""}, {"parked", ""}, {"orders", `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:dead","maxReceiveCount":"3"}`},
	} {
		in := &sqsserver.CreateQueueInput{QueueName: q.name, Attributes: map[string]string{}}
		if q.policy != "" {
			in.Attributes["RedrivePolicy"] = q.policy
		}
		if _, err := s.sqs.CreateQueue(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// begin forgets the jobs that were asked for, and has refuse reply to the start of one, if it is not nil.
func (s *notingServer) begin(refuse http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests, s.refuse = nil, refuse
}

// asked returns the jobs that were asked for.
func (s *notingServer) asked() []admin.JobRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// runHere runs a command as the program does, but in this process, where nobody can be asked.
func runHere(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var files [3]*os.File
	for i, name := range []string{"in", "out", "err"} {
		f, err := os.Create(filepath.Join(t.TempDir(), name))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	a := &app{stdin: files[0], stdout: newStream(files[1]), stderr: newStream(files[2]), ctx: ctx, drain: make(chan struct{})}
	root := a.root()
	root.SetArgs(args)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	_, err = root.ExecuteContextC(ctx)
	var texts [2]string
	for i, f := range files[1:] {
		text, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(text)
	}
	return texts[0], texts[1], err
}

// exitCodeOf returns the program's exit code for the error of a command.
func exitCodeOf(err error) int {
	failed, ok := errors.AsType[*failure](err)
	switch {
	case err == nil:
		return exitOK
	case !ok:
		return exitUsage
	}
	return failed.code
}

// TestCommandsAskForWhatTheyWereAsked: a command that has a process do the work passes on every flag. Each has a value
// of its own: a flag that is left out moves other letters, more of them, or to another queue.
func TestCommandsAskForWhatTheyWereAsked(t *testing.T) {
	s := serveNoting(t)
	s.reply = admin.Job{State: admin.JobDone}
	const arn = "arn:aws:sqs:us-east-1:000000000000:"
	selected := operate.Criteria{Reasons: []string{"age"}, Error: "e", NewerThan: "1h0m0s"}
	edit := operate.Rewrite{Find: "a", Replace: "b"}
	byJob := []string{"--job", "--admin", s.URL}
	byServer := []string{"--endpoint", s.URL, "--region", "us-east-1"}
	choosing := []string{"--reason", "age", "--error", "e", "--newer-than", "1h"}
	for _, test := range []struct {
		args []string
		want admin.JobRequest
	}{
		{slices.Concat([]string{"redrive", "dead", "--to", "parked", "--limit", "3", "--rate", "5", "--dry-run", "--any-queue", "--find", "a", "--replace", "b"}, choosing, byJob),
			admin.JobRequest{Action: admin.JobRedrive, Queue: "dead", To: "parked", Limit: 3, Rate: 5, DryRun: true, AnyQueue: true, Force: true, Selection: selected, Edit: edit}},
		{slices.Concat([]string{"redrive", "dead"}, byJob), admin.JobRequest{Action: admin.JobRedrive, Queue: "dead", All: true, Force: true}},
		{slices.Concat([]string{"move", "orders", "parked", "--limit", "3", "--rate", "5", "--dry-run", "--yes"}, choosing, byJob),
			admin.JobRequest{Action: admin.JobMove, Queue: "orders", To: "parked", Limit: 3, Rate: 5, DryRun: true, Force: true, Selection: selected}},
		{slices.Concat([]string{"move", "orders", "parked"}, byJob), admin.JobRequest{Action: admin.JobMove, Queue: "orders", To: "parked", All: true}},
		{slices.Concat([]string{"redrive", "dead", "--to", "parked", "--limit", "3", "--rate", "5", "--dry-run", "--find", "a", "--replace", "b"}, choosing, byServer),
			admin.JobRequest{Action: admin.JobRedrive, Queue: arn + "dead", To: arn + "parked", Limit: 3, Rate: 5, DryRun: true, AnyQueue: true, Force: true, Attached: true, Selection: selected, Edit: edit}},
		{slices.Concat([]string{"redrive", "dead"}, byServer),
			admin.JobRequest{Action: admin.JobRedrive, Queue: arn + "dead", All: true, AnyQueue: true, Force: true, Attached: true}},
		{slices.Concat([]string{"move", "orders", "parked", "--limit", "3", "--rate", "5", "--dry-run"}, choosing, byServer),
			admin.JobRequest{Action: admin.JobMove, Queue: arn + "orders", To: arn + "parked", Limit: 3, Rate: 5, DryRun: true, Force: true, Attached: true, Selection: selected}},
		{slices.Concat([]string{"move", "orders", "parked"}, byServer),
			admin.JobRequest{Action: admin.JobMove, Queue: arn + "orders", To: arn + "parked", All: true, Force: true, Attached: true}},
	} {
		s.begin(nil)
		_, stderr, err := runHere(t, test.args...)
		if asked := s.asked(); err != nil || len(asked) != 1 || !reflect.DeepEqual(asked[0], test.want) {
			t.Errorf("%q: %v\n%sasked for %+v\nwant      %+v", test.args, err, stderr, asked, test.want)
		}
	}
}

// TestJobsEndWithTheirExitCode: a script learns by the exit code whether a job has done all: not if it failed, was
// cancelled, left letters, or has not looked at all of them.
func TestJobsEndWithTheirExitCode(t *testing.T) {
	const anyCode = -1
	s := serveNoting(t)
	for _, test := range []struct {
		reply           admin.Job
		byJob, byServer int
	}{
		{admin.Job{State: admin.JobDone, Done: 3}, exitOK, exitOK},
		{admin.Job{State: admin.JobFailed, Problem: "no route"}, exitFailure, exitFailure},
		{admin.Job{State: admin.JobCancelled, Done: 3}, exitUnsettled, exitUnsettled},
		{admin.Job{State: admin.JobDone, Done: 3, Failed: 1}, exitUnsettled, exitUnsettled},
		{admin.Job{State: admin.JobDone, Done: 3, Failed: 1, Problem: "received meanwhile"}, exitUnsettled, exitUnsettled},
		{admin.Job{State: admin.JobDone, Done: 3, Problem: "looked at 10 messages"}, exitUnsettled, anyCode}, // a server looks at all
	} {
		s.reply = test.reply
		for _, how := range []struct {
			args []string
			want int
		}{
			{[]string{"redrive", "dead", "--job", "--admin", s.URL}, test.byJob},
			{[]string{"dead", "export", "dead", "--job", "--admin", s.URL}, test.byJob},
			{[]string{"redrive", "dead", "--endpoint", s.URL, "--region", "us-east-1"}, test.byServer},
		} {
			if stdout, stderr, err := runHere(t, how.args...); exitCodeOf(err) != how.want && how.want != anyCode {
				t.Errorf("%q, which ends with %+v: exit code %d (%v), want %d\n%s%s", how.args, test.reply, exitCodeOf(err), err, how.want, stdout, stderr)
			}
		}
	}
}

// TestAllNamesQueuesByURL: --all means each consumer of the process, also where two queues have one name.
func TestAllNamesQueuesByURL(t *testing.T) {
	s := serveNoting(t)
	for _, action := range []string{"pause", "resume", "wake", "probe"} {
		s.acts = nil
		_, stderr, err := runHere(t, action, "--all", "--admin", s.URL)
		want := []string{action + " https://eu.invalid/1/orders", action + " https://us.invalid/1/orders"}
		if err != nil || !slices.Equal(s.acts, want) {
			t.Errorf("%s --all: %v\n%sasked for %q, want %q", action, err, stderr, s.acts, want)
		}
	}
}

// TestPurgeDryRunDeletesNothing: not with --yes either, in any order.
func TestPurgeDryRunDeletesNothing(t *testing.T) {
	s := serveNoting(t)
	in := &sqsserver.SendMessageInput{QueueUrl: "orders"}
	in.MessageBody = "order"
	if _, err := s.sqs.SendMessage(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	left := func() int {
		all, err := s.sqs.Messages("orders", sqsserver.Page{})
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	at := []string{"purge", "orders", "--endpoint", s.URL, "--region", "us-east-1"}
	for _, flags := range [][]string{{"--dry-run"}, {"--yes", "--dry-run"}, {"--dry-run", "--yes"}} {
		stdout, _, err := runHere(t, append(slices.Clone(at), flags...)...)
		if err != nil || left() != 1 || !strings.Contains(stdout, "1 visible, 0 in flight, 0 delayed would be deleted") {
			t.Errorf("purge %q leaves %d messages: %q, %v; want 1", flags, left(), stdout, err)
		}
	}
	if _, _, err := runHere(t, at...); exitCodeOf(err) != exitUsage || left() != 1 {
		t.Errorf("purge, where nobody can be asked, leaves %d messages: %v; want 1, and a usage error", left(), err)
	}
	if _, stderr, err := runHere(t, append(slices.Clone(at), "--yes")...); err != nil || left() != 0 {
		t.Errorf("purge --yes leaves %d messages: %v\n%s", left(), err, stderr)
	}
}

// TestActionsNameTheirQueue: without --all, the queues that are named and no others.
func TestActionsNameTheirQueue(t *testing.T) {
	s := serveNoting(t)
	queue := "https://eu.invalid/1/orders"
	if _, stderr, err := runHere(t, "pause", queue, "mails", "--admin", s.URL); err != nil || !slices.Equal(s.acts, []string{"pause " + queue, "pause mails"}) {
		t.Errorf("%v\n%sasked for %q", err, stderr, s.acts)
	}
}

// TestActionGoesOnBehindARefusal: a queue that a process does not know keeps no other from being paused, and what was
// done is shown.
func TestActionGoesOnBehindARefusal(t *testing.T) {
	s := serveNoting(t)
	stdout, _, err := runHere(t, "pause", "first", "unknown", "last", "-o", "json", "--admin", s.URL)
	if want := []string{"pause first", "pause unknown", "pause last"}; !slices.Equal(s.acts, want) {
		t.Errorf("it asked for %q, want %q", s.acts, want)
	}
	if n := strings.Count(stdout, `"queue":"orders"`); n != 2 {
		t.Errorf("it shows %d consumers, want the 2 that are paused: %s", n, stdout)
	}
	if code := exitCodeOf(err); code != exitAccess || !strings.Contains(err.Error(), "unknown") {
		t.Errorf("exit code %d, and the error %v", code, err)
	}
}

// TestServerThatMayHaveBegun: if a server does not say whether it does what a command asks for, or is busy with the
// queue, the command ends there. It does not do the same beside the server, which would move, or delete, twice as many
// messages.
func TestServerThatMayHaveBegun(t *testing.T) {
	s := serveNoting(t)
	count := func() (all [3]int) {
		t.Helper()
		for i, queue := range []string{"dead", "orders", "parked"} {
			messages, err := s.sqs.Messages(queue, sqsserver.Page{})
			if err != nil {
				t.Fatal(err)
			}
			for j := range messages {
				if messages[j].Receives > 0 {
					t.Errorf("a message of %s was received", queue)
				}
			}
			all[i] = len(messages)
		}
		return all
	}
	for _, queue := range []string{"dead", "orders"} {
		in := &sqsserver.SendMessageInput{QueueUrl: queue}
		in.MessageBody = "order"
		if _, err := s.sqs.SendMessage(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	problem := func(status int, code string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"error": "not now", "code": "`+code+`"}`)
		}
	}
	for name, refuse := range map[string]http.HandlerFunc{
		"has not said whether it began": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"busy":                          problem(http.StatusConflict, "busy"),
		"too many":                      problem(http.StatusTooManyRequests, "too-many"),
		"failed":                        problem(http.StatusInternalServerError, "failed"),
	} {
		for _, args := range [][]string{{"move", "orders", "parked"}, {"redrive", "dead", "--to", "parked"}, {"dead", "delete", "dead", "--all", "--yes"}} {
			s.begin(refuse)
			_, stderr, err := runHere(t, append(args, "--endpoint", s.URL, "--region", "us-east-1")...)
			if n := len(s.asked()); exitCodeOf(err) != exitFailure || !strings.Contains(err.Error(), s.URL) || n != 1 || count() != [3]int{1, 1, 0} {
				t.Fatalf("%s, %q: %v, after %d requests there are %d messages\n%s", name, args, err, n, count(), stderr)
			}
		}
	}
}
