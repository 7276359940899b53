package admin_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// TestCountIsCarriedOutOnce: a job that names a count is refused if that has counted something else, nothing, or too
// long ago, and if it was carried out: of many that come at once one begins, and what came after the count is left.
func TestCountIsCarriedOutOnce(t *testing.T) {
	s, server := withMessages(t)
	send := func() {
		t.Helper()
		in := &sqsserver.SendMessageInput{QueueUrl: "dead"}
		in.MessageBody = "came after the count"
		if _, err := server.SendMessage(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(count, rest string) string {
		return fmt.Sprintf(`{"action":"delete","counted":%q,%s}`, count, rest)
	}
	const all, some = `"queue":"dead","all":true`, `"queue":"dead","selection":{"reasons":["permanent"]}`
	counted := s.run(`{"action":"delete","dry_run":true,` + all + `}`).ID
	nothing := s.run(`{"action":"delete","queue":"dead","selection":{"error":"absent"},"dry_run":true}`).ID
	exported := s.run(`{"action":"export",` + all + `}`).ID
	for name, body := range map[string]string{
		"no such job":       ask("job-absent", all),
		"no count":          ask(exported, all),
		"nothing":           ask(nothing, `"queue":"dead","selection":{"error":"absent"}`),
		"other messages":    ask(counted, some),
		"another queue":     ask(counted, `"queue":"orders","all":true`),
		"another action":    `{"action":"redrive","any_queue":true,"counted":"` + counted + `",` + all + `}`,
		"another receiver":  `{"action":"move","to":"orders","counted":"` + counted + `",` + all + `}`,
		"an export of them": `{"action":"export","counted":"` + counted + `",` + all + `}`,
	} {
		if status, text := s.call("POST", admin.Path+"jobs", body); status != 409 || !strings.Contains(text, "not-counted") || !strings.Contains(text, "has not counted these messages in the last 15m") {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}
	if status, text := s.call("POST", admin.Path+"jobs", `{"action":"delete","dry_run":true,"counted":"`+counted+`",`+all+`}`); status != 400 || !strings.Contains(text, "leave one of them out") {
		t.Errorf("a count of a count: %d %s", status, text)
	}
	if n := len(bodies(t, server, "dead")); n != 5 {
		t.Fatalf("%d letters are left, want all 5", n)
	}

	// The clicks come one after the other's end, too: each takes the letter that has come before it.
	var mu sync.Mutex
	began := 0
	var clicks sync.WaitGroup
	for range 8 {
		clicks.Go(func() {
			status, text := s.call("POST", admin.Path+"jobs", ask(counted, all+`,"limit":5`))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case status == 200:
				began++
				s.await(decode[admin.Job](t, text).ID)
				send()
			case status != 409 || !strings.Contains(text, `"busy"`) && !strings.Contains(text, "was done already: count again"):
				t.Errorf("%d %s", status, text)
			}
		})
	}
	clicks.Wait()
	if n := len(bodies(t, server, "dead")); began != 1 || n != 1 {
		t.Errorf("%d of 8 have begun, %d letters are left; want one, and the letter that came after it", began, n)
	}
}

// TestCountOfAnEdit: a count says what an edit would do to letters, with an example. A job that edits them otherwise,
// or not at all, or sends them elsewhere, does not do what was counted.
func TestCountOfAnEdit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := reprisetest.NewQueue(t, nil)
		dead, elsewhere := source.NewDeadLetterQueue(3), source.NewQueue(nil)
		dead.Send("1 SEK", "2 SEK")
		_, client := ofSQS(t, source, dead, elsewhere)
		request := func(find string) admin.JobRequest {
			r := admin.JobRequest{Action: admin.JobRedrive, Queue: dead.Name(), To: source.Name(), All: true}
			if find != "" {
				r.Edit = operate.Rewrite{Find: find, Replace: "EUR"}
			}
			return r
		}
		count := request("SEK")
		count.DryRun = true
		counted := toItsEnd(t, client, count)
		if counted.Done != 2 || counted.Edited != 2 {
			t.Fatalf("the count: %+v", counted)
		}
		other := request("SEK")
		other.To = elsewhere.Name()
		for name, r := range map[string]admin.JobRequest{"another edit": request("2"), "no edit": request(""), "another receiver": other} {
			r.Counted = counted.ID
			if j, err := client.StartJob(t.Context(), r); err == nil || !strings.Contains(err.Error(), "has not counted these messages") {
				t.Errorf("%s: %+v, %v; want that it is refused", name, j, err)
			}
			time.Sleep(time.Minute)
		}
		if n := len(dead.Messages()); n != 2 {
			t.Fatalf("%d letters are left, want both", n)
		}
		r := request("SEK")
		r.Counted = counted.ID
		if j := toItsEnd(t, client, r); j.Done != 2 || j.Edited != 2 || len(source.Messages()) != 2 {
			t.Errorf("what was counted: %+v", j)
		}
	})
}
