package admin

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"strings"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// Story is the story of one message, as the messages of the server tell it.
type Story struct {
	Events []operate.Event `json:"events"`
	// Places are where its messages are now.
	Places []Place `json:"places"`
}

// Place is a message of a story, and the queue that it is in.
type Place struct {
	Queue   string  `json:"queue"` // its name
	Message Message `json:"message"`
	// Head is the id of the first message of its FIFO group that is hidden, if that is another.
	Head string `json:"head,omitempty"`
}

func (a *API) story(r *http.Request) (s Story, err error) {
	server, err := a.server()
	if err != nil {
		return s, err
	}
	id := r.PathValue("message")
	var found []operate.Found
	for _, q := range server.Queues() {
		asks := a.asker(q.Name)
		places, err := placesOf(r.Context(), server, &q, id)
		if failed, ok := errors.AsType[*Error](err); err != nil && (!ok || failed.Code != "no-such-queue") { // deleted meanwhile
			return s, err
		}
		for i := range places {
			p := &places[i]
			standing := asks.standing(&p.Message, p.Head)
			found = append(found, operate.Found{Queue: p.Queue, Message: p.Message.Message, Standing: &standing})
		}
		s.Places = append(s.Places, places...)
	}
	if len(found) == 0 {
		return s, problem(http.StatusNotFound, "no-such-message", "no message of the server is, or was, %q: a consumer has handled and deleted it, somebody has deleted it, it has expired, or the id is not whole", id)
	}
	s.Events = operate.Trace(found, server.Now())
	return s, nil
}

// placesOf returns the messages of a queue that are, or were, id. To read what each message of a large
// queue says of its past would take too long, so only those are read that name the id somewhere.
func placesOf(ctx context.Context, server *sqsserver.Server, q *sqsserver.QueueInfo, id string) (places []Place, err error) {
	limited, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	scans := make([]storyScan, runtime.GOMAXPROCS(0))
	err = server.Walk(limited, q.ARN, sqsserver.Page{WithoutBodies: true}, len(scans), func(worker int, part []sqsserver.MessageInfo) {
		for i := range part {
			scans[worker].look(&part[i], id)
		}
	})
	switch {
	case err != nil && limited.Err() != nil && ctx.Err() == nil:
		return nil, tooMany(q.Name)
	case err != nil:
		return nil, inspectError(err)
	}
	all := &scans[0]
	for i := range scans[1:] {
		all.merge(&scans[i+1])
	}
	slices.Sort(all.numbers)
	selection := operate.Selection{IDs: []string{id}}
	for some := range slices.Chunk(all.numbers, pageSize) {
		infos, err := server.Messages(q.ARN, sqsserver.Page{Numbers: some})
		if err != nil {
			return nil, inspectError(err)
		}
		for i := range infos {
			m := messageOf(q.URL, &infos[i])
			if !selection.Matches(&m.Message, server.Now()) {
				continue
			}
			p := Place{Queue: q.Name, Message: m}
			if head, is := all.heads[infos[i].Group]; is && head.sequence < infos[i].Sequence {
				p.Head = head.id
			}
			places = append(places, p)
		}
	}
	return places, nil
}

// storyScan is what one worker has found of a story in a queue.
type storyScan struct {
	numbers []uint64             // of the messages that name the id
	heads   map[string]groupHead // by FIFO group
}

// groupHead is the first hidden message of a FIFO group.
type groupHead struct {
	sequence uint64
	id       string
}

func (s *storyScan) look(info *sqsserver.MessageInfo, id string) {
	if names(info, id) {
		s.numbers = append(s.numbers, info.Number)
	}
	if info.Sequence > 0 && info.State != sqsserver.Visible {
		s.hidden(info.Group, groupHead{info.Sequence, info.ID})
	}
}

// hidden takes in a hidden message of a FIFO group.
func (s *storyScan) hidden(group string, m groupHead) {
	if first, is := s.heads[group]; is && first.sequence < m.sequence {
		return
	}
	if s.heads == nil {
		s.heads = make(map[string]groupHead)
	}
	s.heads[strings.Clone(group)] = m
}

func (s *storyScan) merge(other *storyScan) {
	s.numbers = append(s.numbers, other.numbers...)
	for group, m := range other.heads {
		s.hidden(group, m)
	}
}

// names reports whether a message has the id, or may say that it had. Stories and histories are JSON, in which any
// character can be written as a number, and some have to be written differently.
func names(info *sqsserver.MessageInfo, id string) bool {
	if info.ID == id {
		return true
	}
	escape := `\u`
	if strings.ContainsAny(id, "\"\\/\b\f\n\r\t") {
		escape = `\`
	}
	return slices.ContainsFunc(info.Attributes, func(a sqsserver.MessageAttribute) bool {
		return strings.Contains(a.StringValue, id) || strings.Contains(a.StringValue, escape)
	})
}
