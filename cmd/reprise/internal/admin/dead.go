package admin

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/redrive"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// Dead are the dead letters of a queue in groups.
type Dead struct {
	// At is when they were looked at.
	At     time.Time       `json:"at"`
	Groups []operate.Group `json:"groups"`
	// Messages is how many the queue has.
	Messages int `json:"messages"`
}

// Pages ask for the groups again and again, and each answer looks at every letter. So the last answer for
// a queue is kept: it holds for as long as no letter comes or goes, and for viewers, who say that a
// recent one will do, for recentFactor times the time that it took, so that however many look, and however
// many letters come, the process spends a small part of its time on them.
const (
	recentFactor = 20
	maxRecent    = time.Minute
	// exactFor is how long an answer holds at the longest: what it says of the last hours becomes old.
	exactFor = 10 * time.Minute
	// keptFor is how long an answer is kept that nobody asks for.
	keptFor = 10 * time.Minute
)

// deadAnswers has the last answers by the queue, as the requests name it.
type deadAnswers struct {
	mu sync.Mutex
	of map[string]*deadAnswer
}

type deadAnswer struct {
	turn chan struct{} // has a token while somebody uses what follows, or makes it
	has  bool
	dead Dead
	made time.Time
	took time.Duration
	// content is that of the queue before it was looked at, and alive that of operate.Groups.
	content uint64
	alive   bool

	asked time.Time // last; under deadAnswers.mu
}

// answer returns the answer for a queue, and forgets those that nobody asks for.
func (d *deadAnswers) answer(queue string) *deadAnswer {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for name, kept := range d.of {
		if now.Sub(kept.asked) > keptFor {
			delete(d.of, name)
		}
	}
	kept := d.of[queue]
	if kept == nil {
		if d.of == nil {
			d.of = make(map[string]*deadAnswer)
		}
		kept = &deadAnswer{turn: make(chan struct{}, 1)}
		d.of[queue] = kept
	}
	kept.asked = now
	return kept
}

// forget forgets the answer for a queue that cannot be looked at: anybody can name queues that do not exist.
func (d *deadAnswers) forget(queue string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.of, queue)
}

func (a *API) dead(r *http.Request) (dead Dead, err error) {
	server, err := a.server()
	if err != nil {
		return dead, err
	}
	queue := r.PathValue("queue")
	if _, err := server.Content(queue); err != nil {
		return dead, inspectError(err)
	}
	kept := a.answers.answer(queue)
	select {
	case kept.turn <- struct{}{}:
		defer func() { <-kept.turn }()
	case <-r.Context().Done():
		return dead, context.Cause(r.Context())
	}
	// Somebody may have looked while this request waited for its turn, so the content is asked for now.
	content, err := server.Content(queue)
	if err != nil {
		a.answers.forget(queue)
		return dead, inspectError(err)
	}
	alive := !isDeadLetterQueue(server, queue)
	if kept.holds(content, alive) || kept.has && r.URL.Query().Has("recent") && time.Since(kept.made) < min(recentFactor*kept.took, maxRecent) {
		return kept.dead, nil
	}
	began := time.Now()
	dead, err = groupsOf(r.Context(), server, queue, alive)
	if err == nil {
		kept.has, kept.dead, kept.made, kept.took, kept.content, kept.alive = true, dead, began, time.Since(began), content, alive
	}
	return dead, err
}

// holds reports whether the answer is that of a queue with such a content.
func (d *deadAnswer) holds(content uint64, alive bool) bool {
	return d.has && d.content == content && d.alive == alive && time.Since(d.made) < exactFor
}

// groupsOf looks at all letters of a queue.
func groupsOf(ctx context.Context, server *sqsserver.Server, queue string, alive bool) (dead Dead, err error) {
	dead.At = time.Now().UTC()
	groups := make([]operate.Groups, runtime.GOMAXPROCS(0))
	counts := make([]int, len(groups))
	letters := make([]operate.Letter, len(groups))
	infos := make([]*sqsserver.MessageInfo, len(groups))
	for i := range groups {
		groups[i].Alive, groups[i].Now = alive, server.Now()
		letters[i].Attribute = func(name string) string {
			for j := range infos[i].Attributes {
				if a := &infos[i].Attributes[j]; a.Name == name {
					return a.StringValue
				}
			}
			return ""
		}
	}
	limited, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	err = server.Walk(limited, queue, sqsserver.Page{WithoutBodies: true}, len(groups), func(worker int, part []sqsserver.MessageInfo) {
		l := &letters[worker]
		for i := range part {
			infos[worker] = &part[i]
			l.ID, l.Sent, l.Moved = part[i].ID, part[i].Sent, part[i].Source
			groups[worker].AddLetter(l)
		}
		counts[worker] += len(part)
	})
	switch {
	case err != nil && limited.Err() != nil && ctx.Err() == nil:
		return dead, tooMany(queue)
	case err != nil:
		return dead, inspectError(err)
	}
	for i := range groups {
		dead.Messages += counts[i]
		if i > 0 {
			groups[0].Merge(&groups[i])
		}
	}
	dead.Groups = groups[0].List()
	return dead, nil
}

// isDeadLetterQueue reports whether a queue of the server names one, given by name, URL or ARN, as its
// dead-letter queue.
func isDeadLetterQueue(server *sqsserver.Server, queue string) bool {
	_, name, isURL := strings.Cut(queue, "://")
	if isURL {
		name = redrive.PathOf(name)
	}
	for _, q := range server.Queues() {
		if dead := strings.Split(q.DeadLetter, ":"); len(dead) == 6 && (q.DeadLetter == queue || isURL && dead[4]+"/"+dead[5] == name || dead[5] == queue) {
			return true
		}
	}
	return false
}
