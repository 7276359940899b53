package admin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/httpclient"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/terminal"
)

// Client calls the API of a process.
type Client struct {
	address string // as it was given
	base    string // of all URLs
	token   string
	http    *http.Client
}

// unixPrefix begins an address that is the path of a Unix socket.
const unixPrefix = "unix:"

// NewClient returns a client for an address: a URL, host:port, or unix:PATH. The token may be empty.
func NewClient(address, token string) (*Client, error) {
	c := &Client{address: address, base: address, token: token}
	transport := http.DefaultTransport.(*http.Transport).Clone() // it is one
	if socket, isSocket := strings.CutPrefix(address, unixPrefix); isSocket {
		if socket == "" {
			return nil, fmt.Errorf("%q has no path: pass one like unix:/run/reprise/admin.sock", address)
		}
		c.base = "http://localhost"
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}
	} else if !strings.Contains(address, "://") {
		c.base = "http://" + address
	}
	u, err := url.Parse(c.base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.User != nil {
		return nil, fmt.Errorf("%q is not the address of a process: pass one like http://127.0.0.1:9325 or unix:/run/reprise/admin.sock", address)
	}
	c.base = strings.TrimRight(c.base, "/")
	c.http = httpclient.New(transport) // which follows no redirects: another server must not get the token
	return c, nil
}

// Address returns the address as it was given.
func (c *Client) Address() string { return c.address }

// Process returns what the process is.
func (c *Client) Process(ctx context.Context) (p Process, err error) {
	err = c.call(ctx, http.MethodGet, "", nil, &p)
	return p, err
}

// Consumers returns the consumers of the process.
func (c *Client) Consumers(ctx context.Context) ([]Consumer, error) {
	var all Consumers
	err := c.call(ctx, http.MethodGet, "consumers", nil, &all)
	return all.Consumers, err
}

// Consumer returns the consumer of a queue, which is given by name or URL.
func (c *Client) Consumer(ctx context.Context, queue string) (found Consumer, err error) {
	err = c.call(ctx, http.MethodGet, "consumers/"+url.PathEscape(queue), nil, &found)
	return found, err
}

// Stats returns the queues and consumers of the process, with what has happened since its start.
func (c *Client) Stats(ctx context.Context) (s Stats, err error) {
	err = c.call(ctx, http.MethodGet, "stats", nil, &s)
	return s, err
}

// Act has something done to the consumer of a queue; how is [Keys], [Wake], [Concurrency] or [Rate].
func (c *Client) Act(ctx context.Context, queue, action string, how any) (done Done, err error) {
	err = c.call(ctx, http.MethodPost, "consumers/"+url.PathEscape(queue)+"/"+action, how, &done)
	return done, err
}

// StartJob starts a job, and returns it as it begins.
func (c *Client) StartJob(ctx context.Context, request JobRequest) (j Job, err error) {
	err = c.call(ctx, http.MethodPost, "jobs", request, &j)
	return j, err
}

// Jobs returns those that run, and the last that have ended, the newest first.
func (c *Client) Jobs(ctx context.Context) ([]Job, error) {
	var list JobList
	err := c.call(ctx, http.MethodGet, "jobs", nil, &list)
	return list.Jobs, err
}

// Job returns a job.
func (c *Client) Job(ctx context.Context, id string) (j Job, err error) {
	err = c.call(ctx, http.MethodGet, "jobs/"+url.PathEscape(id), nil, &j)
	return j, err
}

// CancelJob has a job end after what is under way.
func (c *Client) CancelJob(ctx context.Context, id string) (j Job, err error) {
	err = c.call(ctx, http.MethodDelete, "jobs/"+url.PathEscape(id), nil, &j)
	return j, err
}

// Exported calls each with the messages that a job has exported.
func (c *Client) Exported(ctx context.Context, id string, each func(*operate.Message) error) error {
	for after := ""; ; {
		var page Exported
		if err := c.call(ctx, http.MethodGet, "jobs/"+url.PathEscape(id)+"/messages?after="+after, nil, &page); err != nil {
			return err
		}
		for i := range page.Messages {
			if err := each(&page.Messages[i]); err != nil {
				return err
			}
		}
		if after = page.Next; after == "" {
			return nil
		}
	}
}

// Dead returns the dead letters of a queue of the process, which is given by name or URL.
func (c *Client) Dead(ctx context.Context, queue string) (dead Dead, err error) {
	err = c.call(ctx, http.MethodGet, "queues/"+url.PathEscape(queue)+"/dead", nil, &dead)
	return dead, err
}

// RecentDead is [Client.Dead], but the answer may be one that was given before: at most a minute ago, and
// less if it did not take the process long.
func (c *Client) RecentDead(ctx context.Context, queue string) (dead Dead, err error) {
	err = c.call(ctx, http.MethodGet, "queues/"+url.PathEscape(queue)+"/dead?recent=true", nil, &dead)
	return dead, err
}

// NoReplyError is the error of a request that nobody has answered, or not to the end.
type NoReplyError struct {
	address string
	err     error
}

func (e *NoReplyError) Error() string {
	return fmt.Sprintf("no process answers at %s: %v: is one running? reprise run prints its admin address at the start, serve and up their endpoint: pass it with --admin", e.address, e.err)
}

func (e *NoReplyError) Unwrap() error { return e.err }

// maxReply is more than any reply has.
const maxReply = 64 << 20

func (c *Client) call(ctx context.Context, method, path string, body, into any) error {
	response, err := c.open(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxReply))
	if err != nil {
		return &NoReplyError{c.address, err}
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s is not the admin API: %w: pass the address of a reprise process with --admin", c.address, err)
	}
	return nil
}

// Watch calls each with the events of queues, of all if there are none, and of types, likewise, until
// ctx ends, each returns an error, or the process ends the stream.
func (c *Client) Watch(ctx context.Context, queues, types []string, each func(name string, data json.RawMessage) error) error {
	query := url.Values{"queue": queues, "type": types}
	response, err := c.open(ctx, http.MethodGet, "events?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, maxEvent)
	name := ""
	for lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			name = text
		}
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok && json.Valid([]byte(text)) {
			if err := each(name, json.RawMessage(text)); err != nil {
				return err
			}
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(fmt.Errorf("the process at %s has ended the stream", c.address), lines.Err())
}

// maxEvent is more than any event has.
const maxEvent = 1 << 20

// open makes a request, and returns a reply whose status is 200.
func (c *Client) open(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+Path+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	switch {
	case c.token == "":
	case r.URL.Scheme == "https": // the certificate has shown who listens, and the proxies before it may change the Host
		r.Header.Set("Authorization", "Bearer "+c.token)
	default:
		sign(r, c.token, text, time.Now())
	}
	response, err := c.http.Do(r)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the URL, which is that of a socket's stand-in
		}
		return nil, &NoReplyError{c.address, err}
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	text, err = io.ReadAll(io.LimitReader(response.Body, maxReply))
	failed := Error{status: response.StatusCode}
	if err != nil || json.Unmarshal(text, &failed) != nil || failed.Text == "" {
		return nil, fmt.Errorf("%s answers with status %s: %s: pass the address of a reprise process of this version with --admin", c.address, response.Status, terminal.Line(string(text), maxShown))
	}
	failed.Text, failed.Code = terminal.Line(failed.Text, maxProblem), terminal.Line(failed.Code, maxShown) // whoever listens there may have written it
	return nil, &failed
}

// maxProblem bounds how many bytes of a process's error are shown.
const maxProblem = 4 << 10

// maxShown bounds how many bytes of a text of others are shown.
const maxShown = 500

// MessagesPage is which messages of a queue are asked for.
type MessagesPage struct {
	State     string // empty: any
	Selection operate.Criteria
	After     string // Next of the page before
	Limit     int
	Body      int // bytes of each body
}

// Messages returns a page of a queue of the process, with why each message waits.
func (c *Client) Messages(ctx context.Context, queue string, p MessagesPage) (page Messages, err error) {
	query := url.Values{"state": {p.State}, "after": {p.After}, "limit": {strconv.Itoa(p.Limit)}, "body": {strconv.Itoa(p.Body)}, "standing": {"true"}}
	selection, err := json.Marshal(p.Selection)
	if err != nil {
		return page, err
	}
	query.Set("selection", string(selection))
	err = c.call(ctx, http.MethodGet, "queues/"+url.PathEscape(queue)+"/messages?"+query.Encode(), nil, &page)
	return page, err
}

// Message returns a message of a queue of the process, with why it waits.
func (c *Client) Message(ctx context.Context, queue, id string) (m Message, err error) {
	err = c.call(ctx, http.MethodGet, "queues/"+url.PathEscape(queue)+"/messages/"+url.PathEscape(id)+"?standing=true", nil, &m)
	return m, err
}

// Due returns what of a queue of the process comes due when.
func (c *Client) Due(ctx context.Context, queue string) (d Due, err error) {
	err = c.call(ctx, http.MethodGet, "queues/"+url.PathEscape(queue)+"/due", nil, &d)
	return d, err
}
