package admin

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// held answers what a consumer of the process knows of a message.
func (a *API) held(r *http.Request) (operate.Held, error) {
	c, err := a.findFor(r.PathValue("queue"))
	if err != nil {
		return operate.Held{}, err
	}
	held := heldBy(c, r.PathValue("message"))
	if held == nil {
		return operate.Held{}, problem(http.StatusNotFound, "no-such-message",
			"the consumer of this process neither holds message %q nor has hidden it until its retry: it may be visible, with another process, or gone", r.PathValue("message"))
	}
	return *held, nil
}

// heldBy returns nil if c does not know the message.
func heldBy(c Running, message string) *operate.Held {
	s, known := c.Standing(message)
	if !known {
		return nil
	}
	h := operate.Held{
		ID: s.ID, Group: s.GroupID, Stage: s.Stage.String(), Attempt: s.Attempt, MaxAttempts: max(0, s.MaxAttempts), Receives: s.Receives,
		Since: s.Since.UTC(), Until: s.Until.UTC(), LeaseEnd: s.LeaseEnd.UTC(), Key: s.Key, Head: s.Head, Problem: s.Problem, Policy: c.Policy,
	}
	if s.OriginID != s.ID {
		h.Origin = s.OriginID
	}
	if s.Stage == reprise.StageSettling {
		h.Outcome = s.Outcome.String()
	}
	if s.Reason != 0 {
		h.Reason = s.Reason.String()
	}
	return &h
}

// asker asks the process's consumer of a queue, if there is one, about its messages.
type asker struct {
	of   *Running
	busy *operate.Busy
}

func (a *API) asker(queue string) asker {
	c, err := a.findFor(operate.NameOf(queue))
	if err != nil {
		return asker{}
	}
	of := consumerOf(c)
	return asker{&c, of.Busy()}
}

// standing is where a message stands; head is that of operate.Facts.
func (by asker) standing(m *Message, head string) operate.Standing {
	f := operate.Facts{Message: &m.Message, State: m.State, Due: m.Due, DelayedLater: m.DelayedLater, Head: head, Consumer: by.busy}
	if by.of != nil {
		f.Held = heldBy(*by.of, m.ID)
	}
	return f.Explain()
}

// Busy returns why the consumer may be slow to receive.
func (c *Consumer) Busy() *operate.Busy {
	b := &operate.Busy{Paused: c.Paused, Running: c.Running, Concurrency: c.Concurrency, Rate: c.Rate}
	for _, of := range c.Breakers {
		if of.Key == "" && (of.State == "open" || of.State == "half-open") {
			b.Outage, b.OutageSince, b.NextProbe = of.Problem, of.Since, of.NextProbe
		}
	}
	return b
}

// Held returns what the consumer of a queue, which is given by name or URL, knows of a message.
func (c *Client) Held(ctx context.Context, queue, message string) (h operate.Held, err error) {
	err = c.call(ctx, http.MethodGet, "consumers/"+url.PathEscape(queue)+"/messages/"+url.PathEscape(message), nil, &h)
	return h, err
}

// Story returns what the server of the process knows of a message, by any of its ids.
func (c *Client) Story(ctx context.Context, message string) (s Story, err error) {
	err = c.call(ctx, http.MethodGet, "stories/"+url.PathEscape(message), nil, &s)
	return s, err
}

// Hidden returns up to limit messages of a queue of the process that are in flight or delayed.
func (c *Client) Hidden(ctx context.Context, queue string, limit int) (all []Message, err error) {
	for _, state := range []string{"in flight", "delayed"} {
		for after := ""; len(all) < limit; {
			query := url.Values{"state": {state}, "after": {after}, "body": {strconv.Itoa(maxBodies)}}
			var page Messages
			if err := c.call(ctx, http.MethodGet, "queues/"+url.PathEscape(queue)+"/messages?"+query.Encode(), nil, &page); err != nil {
				return nil, err
			}
			all = append(all, page.Messages...)
			if after = page.Next; after == "" {
				break
			}
		}
	}
	return all[:min(limit, len(all))], nil
}
