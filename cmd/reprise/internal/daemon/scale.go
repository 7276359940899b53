package daemon

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
)

// scale is the answer of GET /scale?queue=NAME, from which an autoscaler decides how many
// processes are needed. SQS counts a message that waits for its retry as in flight; here it
// does not count as work to do.
type scale struct {
	// Queue is the one that the request names. Without a name the answer has none either: nobody signs the request.
	Queue string `json:"queue,omitempty"`
	// Visible messages can be received now, in the whole queue and its retry lane.
	Visible int `json:"visible"`
	// Processing are those that this process holds, and Backoff those that it has made wait for
	// a retry.
	Processing int `json:"processing"`
	Backoff    int `json:"backoff"`
}

const (
	// visibleFor is how long a count is used: SQS's own is a minute old, and each reading costs
	// a request.
	visibleFor     = 10 * time.Second
	visibleTimeout = 5 * time.Second
)

// counted remembers how many messages of queues were visible, by URL.
type counted struct {
	mu      sync.Mutex
	visible map[string]count
}

type count struct {
	at       time.Time
	messages int
}

// of returns how many messages of the queue at url are visible, as of visibleFor ago.
func (n *counted) of(ctx context.Context, client reprise.Client, url string) (int, error) {
	n.mu.Lock()
	known := n.visible[url]
	n.mu.Unlock()
	if time.Since(known.at) < visibleFor {
		return known.messages, nil
	}
	ctx, cancel := context.WithTimeout(ctx, visibleTimeout)
	defer cancel()
	const name = types.QueueAttributeNameApproximateNumberOfMessages
	out, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{name}})
	if err != nil {
		return 0, err
	}
	messages, err := strconv.Atoi(out.Attributes[string(name)])
	if err != nil {
		return 0, fmt.Errorf("%s of %s: %w", name, url, err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.visible == nil {
		n.visible = make(map[string]count)
	}
	n.visible[url] = count{time.Now(), messages}
	return messages, nil
}

// held adds what the consumer holds.
func (s *scale) held(c *consumer) {
	status := c.Status()
	s.Processing += status.Processing
	s.Backoff += status.InBackoff
}

// serveScale of a worker asks SQS.
func (w *Worker) serveScale(out http.ResponseWriter, r *http.Request) {
	all := w.all()
	var names []string
	for _, c := range all {
		names = append(names, path.Base(c.of.QueueURL))
	}
	name, ok := whichQueue(out, r, names)
	if !ok {
		return
	}
	s := scale{Queue: r.URL.Query().Get("queue")}
	for _, c := range all {
		if path.Base(c.of.QueueURL) != name {
			continue
		}
		s.held(c)
		for _, url := range []string{c.of.QueueURL, c.of.Config.RetryLane.URL} {
			if url == "" {
				continue
			}
			visible, err := w.counted.of(r.Context(), c.of.Client, url)
			if err != nil {
				w.cfg.Logger.Warn("the messages that wait cannot be counted for /scale", "queue", url, "error", err)
				scaleError(out, http.StatusServiceUnavailable, "the messages of "+path.Base(url)+" cannot be counted: the log says why")
				return
			}
			s.Visible += visible
		}
	}
	serveJSON(out, http.StatusOK, s)
}

// serveScale of a daemon asks its own server. A queue need not be consumed by this process.
func (d *Daemon) serveScale(out http.ResponseWriter, r *http.Request) {
	visible := make(map[string]int)
	var names []string
	for _, q := range d.sqs.Queues() {
		if q.ARN == d.QueueARN(q.Name) {
			visible[q.Name] = q.Visible
			names = append(names, q.Name)
		}
	}
	all := d.all()
	if len(all) > 0 && r.URL.Query().Get("queue") == "" { // a dead-letter queue does not count
		names = names[:0]
		for _, c := range all {
			names = append(names, path.Base(c.of.QueueURL))
		}
	}
	name, ok := whichQueue(out, r, names)
	if !ok {
		return
	}
	s := scale{Queue: r.URL.Query().Get("queue"), Visible: visible[name]}
	for _, c := range all {
		if path.Base(c.of.QueueURL) != name {
			continue
		}
		s.held(c)
		if lane := c.of.Config.RetryLane.URL; lane != "" {
			s.Visible += visible[path.Base(lane)]
		}
	}
	serveJSON(out, http.StatusOK, s)
}

// whichQueue returns the queue that is asked about: the only one, unless the request names it.
// Otherwise it answers with an error, which names no queue: nobody signs the request.
func whichQueue(out http.ResponseWriter, r *http.Request, names []string) (name string, ok bool) {
	name = r.URL.Query().Get("queue")
	switch {
	case name == "" && len(names) == 1:
		return names[0], true
	case slices.Contains(names, name):
		return name, true
	}
	scaleError(out, http.StatusNotFound, fmt.Sprintf("ask for one of this process's queues (%d), as in /scale?queue=NAME: reprise queues lists them", len(names)))
	return "", false
}

func scaleError(out http.ResponseWriter, code int, problem string) {
	serveJSON(out, code, struct {
		Error string `json:"error"`
	}{problem})
}
