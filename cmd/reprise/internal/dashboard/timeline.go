package dashboard

import (
	"net/url"
	"strconv"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
)

const timelinePath = Path + "timeline"

// The page of what happened since the process began. The overview and the page of a queue have its newest entries.
var timelinePage = page{
	path: timelinePath, template: "timeline", nav: "Timeline", live: 2 * time.Second,
	data: func(v *view) (string, any, error) {
		query := v.URL.Query()
		limit := entriesOfPage
		if query.Has("all") {
			limit = allEntries
		}
		t, err := v.happened(query.Get("queue"), limit)
		return "What happened", t, err
	},
}

const (
	// fewEntries is how many entries other pages have, entriesOfPage how many this one has, and allEntries how many the
	// process remembers at most.
	fewEntries    = 10
	entriesOfPage = 200
	allEntries    = 1000
)

// happened is a part of the timeline.
type happened struct {
	admin.Timeline
	// Of is the only queue that is asked for. Default: all.
	Of string
}

// happened returns the newest entries of a queue; empty: of all.
func (v *view) happened(queue string, limit int) (happened, error) {
	t, err := v.api.Timeline(v.Context(), admin.TimelineQuery{Queue: queue, Limit: limit})
	return happened{t, queue}, err
}

// URL is the page with all entries of the queue.
func (h happened) URL() string { return timelineURL(h.Of, false) }

// AllURL is the same with as many entries as are remembered.
func (h happened) AllURL() string { return timelineURL(h.Of, true) }

func timelineURL(queue string, all bool) string {
	query := make(url.Values)
	if queue != "" {
		query.Set("queue", queue)
	}
	if all {
		query.Set("all", strconv.FormatBool(true))
	}
	if len(query) == 0 {
		return timelinePath
	}
	return timelinePath + "?" + query.Encode()
}

// entryLink leads from an entry to what it is about, besides its queue; empty: there is nothing more.
func entryLink(e admin.TimelineEntry) link {
	switch {
	case e.Message != "" && e.Queue != "":
		return link{messageURL(e.Queue, e.Message), "the message"}
	case e.Kind == admin.KindJob, e.Kind == admin.KindDeadLetters:
		return link{deadPath, map[string]string{admin.KindJob: "jobs", admin.KindDeadLetters: "dead letters"}[e.Kind]}
	}
	return link{}
}
