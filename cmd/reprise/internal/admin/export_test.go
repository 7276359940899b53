package admin

import (
	"slices"
	"strconv"
	"strings"
)

// Routes are the operations as a description has them: method and path, sorted.
func Routes() (all []string) {
	for _, r := range new(API).routes() {
		all = append(all, r.method+" /"+strings.TrimSuffix(r.path, "{$}"))
	}
	slices.Sort(all)
	return all
}

// Watch has viewers watch, who read at once, until stop is called.
func Watch(e *Events, viewers int) (stop func()) {
	ended := make(chan struct{})
	for i := range viewers {
		v := &viewer{client: strconv.Itoa(i), events: make(chan event, maxUnread), stop: make(chan struct{})}
		e.add(v)
		go func() {
			for {
				select {
				case <-v.events:
				case <-ended:
					return
				}
			}
		}()
	}
	return func() { close(ended) }
}

// Remembered is the timeline of all queues.
func Remembered(e *Events) []TimelineEntry {
	return e.timeline.read(TimelineQuery{Limit: maxEntries}).Entries
}

// Sign signs a request as commands do.
var Sign = sign

// KeepExports bounds the memory of the exports that a keeps.
func KeepExports(a *API, bytes int) { a.jobs.room = bytes }
