package dashboard

import (
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
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
		p, keys := &deadQueues{At: now.At, Jobs: jobs}, keysOf(admin.Rows(now, nil))
		for i := range now.Queues {
			if q := &now.Queues[i].Queue; len(q.DeadLettersOf) > 0 {
				p.Queues = append(p.Queues, deadLetters{*q, keys[q.URL]})
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
	Queues []deadLetters
	Jobs   []admin.Job
}

// deadLetters is a dead-letter queue, with what names it in links.
type deadLetters struct {
	operate.Queue
	Key string
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
	actions: map[string]func(*view) (string, error){"start": (*view).startJob, "carry-out": (*view).carryOut},
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
	for where := range strings.Lines(strings.Join(query["where"], "\n")) {
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
