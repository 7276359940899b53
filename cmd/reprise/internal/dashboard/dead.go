package dashboard

import (
	"errors"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
)

const deadPath = Path + "dead"

// The page of all dead-letter queues, and of the jobs that work them off.
var deadPage = page{
	path: deadPath, template: "dead", nav: "Dead letters", live: 2 * time.Second,
	data: func(v *view) (string, any, error) {
		now, _, err := v.samples.latest(v.Context())
		if err != nil {
			return "", nil, err
		}
		jobs, err := v.api.Jobs(v.Context())
		if err != nil {
			return "", nil, err
		}
		p := &deadQueues{At: now.At, Jobs: jobs}
		for i := range now.Queues {
			if q := &now.Queues[i].Queue; len(q.DeadLettersOf) > 0 {
				p.Queues = append(p.Queues, *q)
			}
		}
		return "Dead letters", p, nil
	},
	actions: map[string]func(*view) (string, error){
		"cancel": func(v *view) (string, error) {
			job, err := v.api.CancelJob(v.Context(), v.PostFormValue("job"))
			return "Cancelled: " + job.ID + " ends after what is under way.", err
		},
	},
}

type deadQueues struct {
	At     time.Time
	Queues []operate.Queue
	Jobs   []admin.Job
}

// The page of a dead-letter queue: its letters in groups, and a form that names some of them and says what to do.
var deadQueuePage = page{
	path: deadPath + "/{queue}", template: "deadqueue",
	data: func(v *view) (string, any, error) {
		queue := v.PathValue("queue")
		p := &deadQueue{Queue: queue, Own: v.cfg.Own, Criteria: criteriaOf(v.URL.Query())}
		return "Dead letters in " + queue, p, nil
	},
	parts: map[string]func(*view) (any, error){
		"groups": func(v *view) (any, error) {
			dead, err := v.api.RecentDead(v.Context(), v.PathValue("queue"))
			return &deadGroups{v.PathValue("queue"), dead}, err
		},
		"queue-jobs": (*view).queueJobs,
	},
	actions: map[string]func(*view) (string, error){"start": (*view).startJob},
}

// deadQueue is what the page shows without having looked at the letters.
type deadQueue struct {
	Queue    string
	Own      bool
	Criteria operate.Criteria
}

// criteriaOf is the selection that a link names.
func criteriaOf(query url.Values) operate.Criteria {
	c := operate.Criteria{Source: query.Get("source"), Error: query.Get("error"), Body: query.Get("body"), OlderThan: query.Get("older"), NewerThan: query.Get("newer")}
	if reason := query.Get("reason"); reason != "" {
		c.Reasons = []string{reason}
	}
	for id := range strings.FieldsSeq(query.Get("ids")) {
		c.IDs = append(c.IDs, id)
	}
	for where := range strings.Lines(query.Get("where")) {
		if where = strings.TrimSpace(where); where != "" {
			c.Where = append(c.Where, where)
		}
	}
	return c
}

// GroupsURL is where the page loads the groups.
func (q *deadQueue) GroupsURL() string { return deadURL(q.Queue) + "/groups" }

// JobsURL is where the page loads the jobs of the queue, again and again.
func (q *deadQueue) JobsURL() string { return deadURL(q.Queue) + "/queue-jobs" }

// StartURL takes the form.
func (q *deadQueue) StartURL() string { return deadURL(q.Queue) + "/start" }

// Reason is that of the selection.
func (q *deadQueue) Reason() string { return strings.Join(q.Criteria.Reasons, " ") }

type deadGroups struct {
	Queue string
	admin.Dead
}

// SelectURL is the page with a selection that names the letters of a group.
func (d *deadGroups) SelectURL(g operate.Group) string {
	query := url.Values{"reason": {g.Reason}}
	if g.Source != "" {
		query.Set("source", g.Source)
	}
	if g.Pattern != "" {
		query.Set("error", patternOf(g.Pattern))
	}
	return deadURL(d.Queue) + "?" + query.Encode() + "#select"
}

// PerHour is how many letters of a group died per hour between the first and the last; nil: there are too few, or they
// died at about the same time.
func (d *deadGroups) PerHour(g operate.Group) *float64 {
	if g.Count < 3 || g.Last.Sub(g.First) < time.Minute {
		return nil
	}
	rate := float64(g.Count-1) / g.Last.Sub(g.First).Hours()
	return &rate
}

// trend is how many letters of a group died in each of the last hours, as bars in a picture of one unit for each.
type trend struct {
	Bars       []bar
	Most, Last int
}

type bar struct {
	Hour   int // from the left
	Height float64
	Top    float64
}

// trendHeight is the height of the picture of a trend.
const trendHeight = 10

// Trend is that of a group; nil: nothing died.
func (d *deadGroups) Trend(g operate.Group) *trend {
	if len(g.Hours) == 0 {
		return nil
	}
	t := &trend{Most: slices.Max(g.Hours), Last: g.Hours[len(g.Hours)-1]}
	for hour, n := range g.Hours {
		if n > 0 {
			height := math.Max(1, float64(n)/float64(t.Most)*trendHeight) // one letter is seen, too
			t.Bars = append(t.Bars, bar{hour, height, trendHeight - height})
		}
	}
	return t
}

// patternOf is a regular expression for the errors of a group, whose changing parts stand as <n>, <id>, <time>
// and <address>.
func patternOf(pattern string) string {
	var b strings.Builder
	for pattern != "" {
		open := strings.IndexByte(pattern, '<')
		end := -1
		if open >= 0 {
			end = strings.IndexByte(pattern[open:], '>')
		}
		if end < 0 {
			b.WriteString(quoteSpaces(pattern))
			break
		}
		b.WriteString(quoteSpaces(pattern[:open]))
		switch name := pattern[open : open+end+1]; name {
		case "<n>", "<id>", "<time>", "<address>":
			b.WriteString(".+?")
		default:
			b.WriteString(quoteSpaces(name))
		}
		pattern = pattern[open+end+1:]
	}
	return b.String()
}

// quoteSpaces quotes a text for a regular expression. A pattern has one space where the error may have several.
func quoteSpaces(text string) string {
	parts := strings.Split(text, " ")
	for i := range parts {
		parts[i] = strings.TrimPrefix(literal(parts[i]), "(?i)")
	}
	return strings.Join(parts, `\s+`)
}

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
		if job.Queue != p.Queue {
			continue
		}
		p.Jobs = append(p.Jobs, job)
		if p.Changed == "" && !job.DryRun && job.Action != admin.JobExport && !job.Ended.IsZero() && v.now.Sub(job.Ended) < justEnded {
			p.Changed = job.ID
		}
	}
	return p, err
}

// selectionText is a selection in words; empty: all messages.
func selectionText(c operate.Criteria) string {
	var parts []string
	for _, part := range []struct{ name, value string }{
		{"reason", strings.Join(c.Reasons, " or ")}, {"from", c.Source}, {"group", c.Group}, {"error matches", c.Error}, {"body matches", c.Body},
		{"where", strings.Join(c.Where, " and ")}, {"ids", strings.Join(c.IDs, " ")}, {"older than", c.OlderThan}, {"newer than", c.NewerThan},
	} {
		if part.value != "" {
			parts = append(parts, part.name+" "+part.value)
		}
	}
	return strings.Join(parts, ", ")
}

// startJob starts what the form asks for. What it does to all letters, and what deletes some, has to be counted
// first: the form says how many there are to be.
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
	job, err := v.api.StartJob(v.Context(), request)
	if err != nil {
		return "", err
	}
	if !request.DryRun {
		return job.ID + " has begun to " + job.Action + ": its progress is below and on the page Dead letters.", nil
	}
	return v.counted(job)
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
				left += "; " + plural.Of(n, "letter") + " would be left: letters that " + why
			}
			return plural.Of(j.Matched, "letter") + " of " + grouped(int64(j.Looked)) + " match; " + grouped(int64(j.Done)) + " would be " + participles[j.Action] + left + ".", nil
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
