package dashboard

import (
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// TestOfferOfACount: the button that carries out what was counted is there until the same has begun: what matches
// then was not counted.
func TestOfferOfACount(t *testing.T) {
	now := time.Now()
	count := admin.Job{
		ID: "job-count", State: admin.JobDone, Action: admin.JobDelete, URL: "https://sqs.invalid/1/dead", With: operate.Criteria{Error: "refused"}, DryRun: true,
		Matched: 7, Done: 3, Created: now.Add(-3 * time.Minute), Ended: now.Add(-2 * time.Minute),
	}
	same := count
	same.ID, same.DryRun, same.Created, same.Ended = "job-same", false, now.Add(-time.Minute), now.Add(-time.Second)
	for _, test := range []struct {
		name   string
		change func(count, other *admin.Job)
		want   string
	}{
		{"it was done", func(_, _ *admin.Job) {}, ""},
		{"it is being done", func(_, other *admin.Job) { other.State, other.Ended = admin.JobRunning, time.Time{} }, ""},
		{"the same was done before", func(count, other *admin.Job) {
			other.Created, other.Ended = count.Created, count.Ended.Add(time.Second)
		}, "Delete 3 letters"},
		{"it was counted again", func(_, other *admin.Job) { other.DryRun = true }, "Delete 3 letters"},
		{"another action", func(_, other *admin.Job) { other.Action = admin.JobRedrive }, "Delete 3 letters"},
		{"another selection", func(_, other *admin.Job) { other.With.Error = "accepted" }, "Delete 3 letters"},
		{"it was done to another receiver", func(_, other *admin.Job) { other.To = "https://sqs.invalid/1/elsewhere" }, ""},
		{"a queue of that name elsewhere", func(_, other *admin.Job) { other.URL = "https://sqs.invalid/2/dead" }, "Delete 3 letters"},
		{"the count runs", func(count, other *admin.Job) { count.State, other.DryRun = admin.JobRunning, true }, ""},
		{"the count is old", func(count, other *admin.Job) { count.Ended, other.DryRun = now.Add(-15*time.Minute), true }, ""},
		{"the count is nearly old", func(count, other *admin.Job) { count.Ended, other.DryRun = now.Add(time.Second-15*time.Minute), true }, "Delete 3 letters"},
		{"nothing would be done", func(count, other *admin.Job) { count.Done, other.DryRun = 0, true }, ""},
	} {
		count, other := count, same
		test.change(&count, &other)
		if got := (jobTable{Jobs: []admin.Job{other, count}, Now: now}).Offer(count); got != test.want {
			t.Errorf("%s: the button is %q, want %q", test.name, got, test.want)
		}
	}
}
