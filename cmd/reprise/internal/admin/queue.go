package admin

import (
	"context"
	"net/http"
	"net/url"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// QueueAttributes is a queue with its attributes, as GetQueueAttributes returns them.
type QueueAttributes struct {
	Queue      operate.Queue     `json:"queue"`
	Attributes map[string]string `json:"attributes"`
	// DeadLetterAttributes are those of its dead-letter queue; nil: it has none, or they are not known.
	DeadLetterAttributes map[string]string `json:"dead_letter_attributes,omitempty"`
}

// queue finds one queue by its name or URL.
func (a *API) queue(r *http.Request) (found QueueAttributes, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), queuesTimeout)
	defer cancel()
	described, complete, err := a.cfg.Queues(ctx)
	if err != nil {
		return found, problem(http.StatusBadGateway, "sqs-failed", "the queues cannot be described: %v", err)
	}
	attributes := make(map[string]map[string]string, len(described)) // by URL
	for _, d := range described {
		attributes[d.URL] = d.Attributes
	}
	all := a.examine(described, complete)
	name, isFound := r.PathValue("queue"), false
	for _, q := range all {
		if q.Name == name || q.URL == name {
			found, isFound = QueueAttributes{Queue: q, Attributes: attributes[q.URL]}, true
			break
		}
	}
	if !isFound {
		return found, problem(http.StatusNotFound, "no-such-queue", "this process knows no queue %q: GET %squeues lists those that it knows", name, Path)
	}
	for _, q := range all {
		if found.Queue.DeadLetterQueue != "" && q.Name == found.Queue.DeadLetterQueue {
			found.DeadLetterAttributes = attributes[q.URL]
		}
	}
	if found.Attributes == nil { // they could not be read, which is one of the findings
		found.Attributes = map[string]string{}
	}
	return found, nil
}

// Queue returns a queue with its attributes.
func (c *Client) Queue(ctx context.Context, queue string) (found QueueAttributes, err error) {
	err = c.call(ctx, http.MethodGet, "queues/"+url.PathEscape(queue), nil, &found)
	return found, err
}
