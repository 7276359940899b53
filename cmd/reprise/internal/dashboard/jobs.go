package dashboard

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// Jobs of a dead-letter queue: the form of its page starts them, and its table shows them.

// jobTable is what the template jobs shows.
type jobTable struct {
	Jobs     []admin.Job
	ReadOnly bool
	Now      time.Time
}

// Offer is the label of the button that carries out what a job has counted; empty: it cannot be.
func (t jobTable) Offer(job admin.Job) string {
	if !job.CanCarryOut(t.Now) || job.CarriedOut(t.Jobs) {
		return ""
	}
	return strings.ToUpper(job.Action[:1]) + job.Action[1:] + " " + counted(job.Done, "letter")
}

// CarryOutURL takes the form with that button.
func (t jobTable) CarryOutURL(job admin.Job) string { return deadURL(job.Queue) + "/carry-out" }

// queueJobs are the jobs of a queue.
type queueJobs struct {
	deadQueue
	Jobs []admin.Job
	// Changed is the job that has just changed which letters there are: the groups are looked at again. Empty: none.
	Changed string
}

// justEnded is how long a job is one that has just ended: longer than the page takes to ask for jobs again.
const justEnded = 10 * time.Second

func (v *view) queueJobs() (any, error) {
	all, err := v.api.Jobs(v.Context())
	p := &queueJobs{deadQueue: deadQueue{Queue: v.PathValue("queue")}}
	for _, job := range all {
		if job.Queue != p.Queue && job.URL != p.Queue {
			continue
		}
		p.Jobs = append(p.Jobs, job)
		if p.Changed == "" && !job.DryRun && job.Action != admin.JobExport && !job.Ended.IsZero() && v.now.Sub(job.Ended) < justEnded {
			p.Changed = job.ID
		}
	}
	return p, err
}

// startJob starts what the form asks for. Letters are deleted only after they were counted: see carryOut.
func (v *view) startJob() (string, error) {
	if err := v.ParseForm(); err != nil {
		return "", err
	}
	form := v.PostForm
	request := admin.JobRequest{
		Queue: v.PathValue("queue"), Action: form.Get("action"), Selection: criteriaOf(form), DryRun: form.Get("do") == "count",
		All: form.Get("all") != "", To: strings.TrimSpace(form.Get("to")), DeadOnly: true, Force: true,
	}
	if request.Action == admin.JobDelete || request.Action == admin.JobExport {
		request.To = ""
	}
	if request.Action == admin.JobRedrive {
		request.Edit = rewriteOf(form)
	}
	if text := strings.TrimSpace(form.Get("rate")); text != "" {
		rate, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return "", errors.New("The rate is not a number: give how many messages a second, or leave it empty.")
		}
		request.Rate = rate
	}
	if text := strings.TrimSpace(form.Get("limit")); text != "" {
		limit, err := strconv.Atoi(text)
		if err != nil {
			return "", errors.New("The limit is not a whole number: give how many messages at most, or leave it empty.")
		}
		request.Limit = limit
	}
	if selection, err := request.Selection.Selection(); err == nil && selection.Empty() != request.All {
		if request.All {
			return "", errors.New("Fields are set, and All letters is ticked, too: choose one of them.")
		}
		return "", errors.New("Nothing says which letters are meant: set a field, or tick All letters.")
	}
	if request.Action == admin.JobDelete && !request.DryRun && !v.cfg.ReadOnly { // which the API refuses
		return "", errors.New("Nothing was deleted: click Count first. The count has a button that deletes what it has counted.")
	}
	job, err := v.api.StartJob(v.Context(), request)
	if err != nil {
		return "", err
	}
	if !request.DryRun {
		return begun(job), nil
	}
	return v.counted(job)
}

func begun(job admin.Job) string {
	return job.ID + " has begun to " + job.Action + ": its progress is below and on the page Dead letters."
}

// rewriteOf is what the form has changed of each letter that is redriven.
func rewriteOf(form url.Values) operate.Rewrite {
	edit := operate.Rewrite{Find: form.Get("find"), Replace: fromForm(form.Get("replace"), ""), Remove: strings.Fields(form.Get("remove"))}
	if name := strings.TrimSpace(form.Get("set-name")); name != "" || form.Get("set-value") != "" {
		edit.Set = map[string]string{name: fromForm(form.Get("set-value"), "")}
	}
	return edit
}

// carryOut does what a job has counted, to at most as many letters.
func (v *view) carryOut() (string, error) {
	id := v.PostFormValue("job")
	if id == "" {
		return "", errors.New("the form names no job: click Count first again")
	}
	counted, err := v.api.Job(v.Context(), id)
	switch {
	case err != nil:
		return "", err
	case counted.Queue != v.PathValue("queue") && counted.URL != v.PathValue("queue"):
		return "", fmt.Errorf("%s has counted letters of another queue: click Count first again", counted.ID)
	}
	selection, err := counted.With.Selection()
	if err != nil {
		return "", err
	}
	job, err := v.api.StartJob(v.Context(), admin.JobRequest{
		Queue: counted.URL, Action: counted.Action, To: counted.To, Selection: counted.With, All: selection.Empty(), DeadOnly: true, Force: true,
		Counted: counted.ID, Edit: counted.Edit, Rate: counted.Rate, Limit: cmp.Or(counted.Limit, counted.Matched),
	})
	if err != nil {
		return "", err
	}
	return begun(job), nil
}

// counted waits a little for the end of a dry run, and says what it has counted.
func (v *view) counted(job admin.Job) (string, error) {
	for deadline := time.Now().Add(countWait); ; {
		j, err := v.api.Job(v.Context(), job.ID)
		if err != nil {
			return "", err
		}
		switch {
		case j.State == admin.JobFailed:
			return "", errors.New(j.Problem)
		case j.State != admin.JobRunning:
			left := ""
			for why, n := range j.Left {
				left += "; " + counted(n, "letter") + " would be left: letters that " + why
			}
			if j.Problem != "" {
				left += "; there may be more: " + j.Problem
			}
			edited := ""
			if !j.Edit.IsZero() {
				edited = ", " + grouped(int64(j.Edited)) + " of them edited"
			}
			return counted(j.Matched, "letter") + " of " + grouped(int64(j.Looked)) + " match; " + grouped(int64(j.Done)) + " would be " + participles[j.Action] + edited + left + ".", nil
		case time.Now().After(deadline):
			return job.ID + " counts: its progress is below and on the page Dead letters.", nil
		}
		select {
		case <-v.Context().Done():
			return "", v.Context().Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// participles say what becomes of letters.
var participles = map[string]string{admin.JobRedrive: "redriven", admin.JobExport: "exported", admin.JobDelete: "deleted"}

// countWait is how long a form waits for a count.
const countWait = 3 * time.Second
