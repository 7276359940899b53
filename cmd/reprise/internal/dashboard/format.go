package dashboard

import (
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/plural"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// functions are those of templates.
var functions = template.FuncMap{
	"asset":  assetURL,
	"states": func() []string { return []string{"visible", "delayed", "in flight"} },
	"count": func(n any) string {
		switch n := n.(type) {
		case int:
			return grouped(int64(n))
		case int64:
			return grouped(n)
		case *int:
			if n != nil {
				return grouped(int64(*n))
			}
		}
		return "–"
	},
	"rate":    rateText,
	"ago":     func(at, now time.Time) string { return operate.Ago(now.Sub(at)) },
	"in":      func(at, now time.Time) string { return operate.Ago(at.Sub(now)) },
	"utc":     func(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05") + " UTC" },
	"clock":   func(at time.Time) string { return at.UTC().Format("15:04:05.000") },
	"stamp":   func(at time.Time) string { return at.UTC().Format(time.RFC3339) },
	"plural":  counted,
	"queue":   queueURL,
	"deadURL": deadURL,
	"try":     tryURL,
	"sum": func(counts ...int) (n int) {
		for _, c := range counts {
			n += c
		}
		return n
	},
	"entryLink":    entryLink,
	"leased":       leased,
	"selection":    operate.Criteria.Words,
	"edit":         operate.Rewrite.Words,
	"jobs":         func(all []admin.Job, readOnly bool, now time.Time) jobTable { return jobTable{all, readOnly, now} },
	"milliseconds": func(ms float64) string { return admin.ShortDuration(time.Duration(ms * float64(time.Millisecond))) },
	"act":          func(action, label, queue, key string) button { return button{action, label, queue, key} },
	"finding": func(of attention, named, readOnly bool, now time.Time) finding {
		return finding{of, named, readOnly, now}
	},
	"line":    func(text string, n int) string { return terminal.Line(text, n) },
	"escape":  terminal.Escape,
	"message": messageURL,
	"url":     func(parts ...string) string { return strings.Join(parts, "") },
}

// button is a form of one button that acts on a consumer, or on a key of it.
type button struct{ Action, Label, Queue, Key string }

// finding is what the template of that name shows: Named says that the queue is told, on a page of many.
type finding struct {
	Finding  attention
	Named    bool
	ReadOnly bool
	Now      time.Time
}

// grouped is a number with commas between thousands.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(text) - 3; i > start; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// counted is a count in words, with commas between thousands.
func counted(n int, noun string) string {
	_, word, _ := strings.Cut(plural.Of(n, noun), " ")
	return grouped(int64(n)) + " " + word
}

// rateText is a number a second; a dash if it is not known.
func rateText(r *float64) string {
	switch {
	case r == nil:
		return "–"
	case *r == 0:
		return "0"
	case *r >= 100:
		return grouped(int64(*r + 0.5))
	}
	return strconv.FormatFloat(*r, 'f', 1, 64)
}

// deadURL is the page of a dead-letter queue.
func deadURL(queue string) string { return deadPath + "/" + url.PathEscape(queue) }

// queueURL is the page of a queue.
func queueURL(name string) string { return Path + "queues/" + url.PathEscape(name) }

// messageURL is the page of a message.
func messageURL(queue, id string) string { return queueURL(queue) + "/messages/" + url.PathEscape(id) }

// pathOfURL is the path and query of a URL of this dashboard; Home if it is none.
func pathOfURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Path != Home && !Takes(&http.Request{URL: u}) {
		return Home
	}
	return u.RequestURI()
}

// explain is the status and the text of an error for people.
func explain(err error) (status int, problem string) {
	if failed, ok := errors.AsType[*admin.Error](err); ok {
		return failed.Status(), failed.Text
	}
	if _, ok := errors.AsType[*noQueueError](err); ok {
		return http.StatusNotFound, err.Error()
	}
	if _, ok := errors.AsType[*ambiguousError](err); ok {
		return http.StatusConflict, err.Error()
	}
	return http.StatusInternalServerError, err.Error()
}
