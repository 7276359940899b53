package dashboard

import (
	"slices"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/admin"
)

// history has the figures of each queue over time, for charts.
type history struct {
	queues map[string]*series // by URL
}

// series are figures of a queue. A figure that is not known is nil, which a chart leaves out.
type series struct {
	At       []float64  `json:"at"` // seconds
	Visible  []*float64 `json:"visible"`
	InFlight []*float64 `json:"inFlight"`
	Delayed  []*float64 `json:"delayed"`
	Backoff  []*float64 `json:"backoff"`
	Oldest   []*float64 `json:"oldest"` // the age of the oldest message in seconds
	In       []*float64 `json:"in"`     // per second, as those below
	Out      []*float64 `json:"out"`
	Failed   []*float64 `json:"failed"`
	Retried  []*float64 `json:"retried"`
	Dead     []*float64 `json:"dead"`
}

const (
	// maxPoints are half an hour of a process's own queues, and minPoints what there is of each of many;
	// allPoints bounds the memory that all take.
	maxPoints = 900
	minPoints = 60
	allPoints = 100_000
)

// add adds the figures of a sample.
func (h *history) add(now, before *admin.Stats) {
	if h.queues == nil {
		h.queues = make(map[string]*series)
	}
	seen := make(map[string]bool)
	rows := admin.Rows(now, before)
	keep := max(minPoints, min(maxPoints, allPoints/max(1, len(rows))))
	for i := range rows {
		row := &rows[i]
		seen[row.URL] = true
		s := h.queues[row.URL]
		if s == nil {
			s = new(series)
			h.queues[row.URL] = s
		}
		s.add(row, now, before)
		s.cut(keep)
	}
	for url := range h.queues {
		if !seen[url] {
			delete(h.queues, url)
		}
	}
}

func (s *series) add(row *admin.Row, now, before *admin.Stats) {
	s.At = append(s.At, float64(row.At.UnixMilli())/1000)
	s.Visible = append(s.Visible, number(row.Visible))
	s.InFlight = append(s.InFlight, number(row.InFlight))
	s.Delayed = append(s.Delayed, number(row.Delayed))
	s.Backoff = append(s.Backoff, number(row.Backoff))
	var oldest *float64
	if row.Visible != nil {
		age := 0.0
		if !row.Oldest.IsZero() {
			age = row.At.Sub(row.Oldest).Seconds()
		}
		oldest = &age
	}
	s.Oldest = append(s.Oldest, oldest)
	s.In, s.Out, s.Failed = append(s.In, row.In), append(s.Out, row.Out), append(s.Failed, row.Failed)
	var retried, dead *float64
	if c, old := consumerAt(now, row.Consumer), consumerAt(before, row.Consumer); c != nil && old != nil {
		seconds := now.At.Sub(before.At).Seconds()
		retried = perSecond(c.Counts.Retried-old.Counts.Retried, seconds)
		dead = perSecond(c.Counts.DeadLettered-old.Counts.DeadLettered, seconds)
	}
	s.Retried, s.Dead = append(s.Retried, retried), append(s.Dead, dead)
}

// cut forgets the oldest figures.
func (s *series) cut(keep int) {
	n := len(s.At) - keep
	if n <= 0 {
		return
	}
	s.At = append([]float64(nil), s.At[n:]...)
	for _, figures := range s.figures() {
		*figures = append([]*float64(nil), (*figures)[n:]...)
	}
}

func (s *series) figures() []*[]*float64 {
	return []*[]*float64{&s.Visible, &s.InFlight, &s.Delayed, &s.Backoff, &s.Oldest, &s.In, &s.Out, &s.Failed, &s.Retried, &s.Dead}
}

// after returns the figures that are newer, which do not change any more.
func (s *series) after(then float64) *series {
	from := len(s.At)
	for from > 0 && s.At[from-1] > then {
		from--
	}
	part := *s
	part.At = append([]float64{}, s.At[from:]...)
	for _, figures := range part.figures() {
		*figures = append([]*float64{}, (*figures)[from:]...)
	}
	return &part
}

// consumerAt returns the consumer that knows its queue by url, which is the Consumer of a row; nil: there is none.
func consumerAt(stats *admin.Stats, url string) *admin.Consumer {
	if stats == nil {
		return nil
	}
	for i := range stats.Consumers {
		if c := &stats.Consumers[i].Consumer; c.URL == url {
			return c
		}
	}
	return nil
}

// isLane reports whether a queue is the retry lane of a consumer.
func isLane(stats *admin.Stats, url string) bool {
	return slices.ContainsFunc(stats.Consumers, func(c admin.ConsumerStats) bool {
		return c.Consumer.RetryLane != nil && c.Consumer.RetryLane.URL == url
	})
}

func number(n *int) *float64 {
	if n == nil {
		return nil
	}
	f := float64(*n)
	return &f
}

// perSecond is nil if nothing can be said: no time has passed, or the count began anew.
func perSecond(n int64, seconds float64) *float64 {
	if seconds <= 0 || n < 0 {
		return nil
	}
	rate := float64(n) / seconds
	return &rate
}

// series returns the figures of the queue at url that are newer than a time, in seconds.
func (s *sampler) series(url string, after float64) *series {
	s.look()
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.history.queues[url]
	if found == nil {
		found = new(series)
	}
	return found.after(after)
}
