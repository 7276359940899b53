package forward

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/reprise-sqs/reprise"
)

// HTTP posts each message to a URL. The answer settles the message:
//
//   - 2xx deletes it;
//   - 401-407, 410, 411, 414, 415, 421, 426, 429, 5xx, a redirect, a connection that
//     fails (TLS included) and a timeout are [Unavailable]: the target is down or
//     misconfigured, and nothing is wrong with the message;
//   - 408 and 425 are [Retry];
//   - every other 4xx is [Permanent]: the same request would be refused again.
//
// HTTPConfig.Statuses changes that. 429 and 503 with a Retry-After header (seconds or
// a date) are retried not before that, at most 12 hours later.
//
// Redirects are not followed: a POST would become a GET on its way, and a message
// deleted because a login page answered 200 is lost.
type HTTP struct {
	leftOut leftOut
	cfg     HTTPConfig
	client  *http.Client
}

// HTTPConfig says where to post and what to say there.
type HTTPConfig struct {
	// URL is where messages are posted: http or https. A user and a password in it
	// become basic authentication.
	URL string
	// Queue is the name of the queue, for the header X-Aws-Sqsd-Queue.
	Queue string
	// ContentType is the Content-Type of every request. Default: application/json.
	ContentType string
	// UserAgent is the User-Agent of every request. Default: reprise.
	UserAgent string
	// Statuses are verdicts that differ from the defaults.
	Statuses Codes
	// Connections is how many idle connections are kept for the next messages: as
	// many as handlers run at once. Default: 10.
	Connections int
	// Logger is told of attributes that no header can carry. Default: nobody is.
	Logger *slog.Logger
}

const (
	dialTimeout     = 10 * time.Second
	maxIdleConnTime = 90 * time.Second

	// maxAttributeHeaders bounds the headers of a message's attributes together. Servers
	// limit a request's headers, Node.js all to 16 KiB, others to 64 KiB or each to
	// 8 KiB, and many cut the connection of one that has more, or hang: that would look
	// like an outage of the target, and whoever may send to the queue could make one.
	maxAttributeHeaders = 8 << 10

	// maxID bounds the ids that a header carries. SQS's have 128 characters at most.
	maxID = 1 << 10

	// maxDrained is how much of an answer is read so that its connection can carry
	// the next message. Beyond it a new connection is cheaper.
	maxDrained = 256 << 10
)

// NewHTTP returns a target that posts to cfg.URL.
func NewHTTP(cfg HTTPConfig) (*HTTP, error) {
	target, err := url.Parse(cfg.URL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("target URL %q: %w: pass one like http://localhost:8080/work", cfg.URL, err)
	case target.Scheme != "http" && target.Scheme != "https", target.Hostname() == "":
		return nil, fmt.Errorf("target URL %q has no http:// or https:// and host: pass one like http://localhost:8080/work", cfg.URL)
	case cfg.Queue == "":
		return nil, errNoQueue
	}
	cfg.ContentType = cmp.Or(cfg.ContentType, "application/json")
	// net/http refuses such a header at each request, which would look like an outage.
	if _, _, err := mime.ParseMediaType(cfg.ContentType); err != nil || strings.ContainsFunc(cfg.ContentType, unicode.IsControl) {
		return nil, fmt.Errorf("content type %q is not a media type: pass one like application/json", cfg.ContentType)
	}
	cfg.UserAgent = cmp.Or(cfg.UserAgent, "reprise")
	cfg.Connections = cmp.Or(cfg.Connections, 10)
	return &HTTP{cfg: cfg, leftOut: leftOut{log: cfg.Logger, carrier: "HTTP header"}, client: &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
			TLSHandshakeTimeout: dialTimeout,
			ForceAttemptHTTP2:   true,
			MaxIdleConnsPerHost: cfg.Connections,
			IdleConnTimeout:     maxIdleConnTime,
			DisableCompression:  true, // the answer's body is only ever an error's text
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Handle posts m and judges the answer. A failed attempt's error is a
// [*StatusError] where the target answered at all.
func (h *HTTP) Handle(ctx context.Context, m *reprise.Message) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.cfg.URL, strings.NewReader(m.Body))
	if err != nil {
		return fmt.Errorf("posting to the target: %w", err)
	}
	h.setHeaders(req.Header, m)
	resp, err := h.client.Do(req)
	if err != nil {
		return unreachable(ctx, fmt.Errorf("posting to the target: %w", err))
	}
	defer resp.Body.Close()
	head, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorText))
	if err == nil {
		_, err = io.CopyN(io.Discard, resp.Body, maxDrained)
	}
	if err != nil && !errors.Is(err, io.EOF) && resp.StatusCode < 300 {
		// The status promised success, but the answer broke off: whether the work
		// was done is unknown, and doing it again is the safe reading.
		return unreachable(ctx, fmt.Errorf("reading the target's answer: %w", err))
	}
	return h.judge(resp, head)
}

// unreachable is an attempt that had no whole answer: no connection, no trust in the
// target's certificate, a connection cut. That is no fault of the message, unless the
// end of its context is the reason.
func unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return Unavailable.apply(err)
}

// Close closes idle connections.
func (h *HTTP) Close() { h.client.CloseIdleConnections() }

// setHeaders describes m the way Elastic Beanstalk's worker daemon (sqsd) does, so
// that services written for it need no change, and adds what it does not tell.
//
// No Idempotency-Key is sent, although OriginID is one: net/http takes the header as
// leave to repeat a POST by itself, and such an attempt would not be counted.
func (h *HTTP) setHeaders(header http.Header, m *reprise.Message) {
	header.Set("Content-Type", h.cfg.ContentType)
	header.Set("User-Agent", h.cfg.UserAgent)
	// One header that cannot be sent would have the transport refuse the whole request,
	// at every attempt. SQS gives out no such ids; other servers may.
	set := func(name, value string) {
		if value != "" && len(value) <= maxID && !strings.ContainsFunc(value, isControl) {
			header.Set(name, value)
		}
	}
	set("X-Aws-Sqsd-Msgid", m.ID)
	header.Set("X-Aws-Sqsd-Queue", h.cfg.Queue)
	if !m.FirstReceived.IsZero() {
		header.Set("X-Aws-Sqsd-First-Received-At", m.FirstReceived.UTC().Format(time.RFC3339))
	}
	header.Set("X-Aws-Sqsd-Receive-Count", strconv.Itoa(m.Receives))
	carried, room := 0, maxAttributeHeaders
	for _, a := range textAttributes(m) {
		name := "X-Aws-Sqsd-Attr-" + a.name // the name's own case
		size := len(name) + len(a.value)
		switch {
		case !token(a.name):
			h.leftOut.say(m, a.name, badName)
		case strings.ContainsFunc(a.value, isControl):
			h.leftOut.say(m, a.name, badValue)
		case size > room:
			h.leftOut.say(m, a.name, manyHeaders)
		default:
			header[name] = []string{a.value}
			carried++
			room -= size
		}
	}
	if n := len(m.Attributes) - carried; n > 0 {
		header.Set("X-Reprise-Left-Out", strconv.Itoa(n))
	}
	header.Set("X-Reprise-Attempt", strconv.Itoa(m.Attempt))
	set("X-Reprise-Origin-Id", m.OriginID)
	set("X-Reprise-Group-Id", m.GroupID)
}

// StatusError is an answer that did not accept the message.
type StatusError struct {
	// Status is the answer's status code.
	Status int
	// Text is the beginning of the answer's body, on one line.
	Text string
}

// Error names the status and quotes the answer.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("the target answered %d", e.Status)
	if name := http.StatusText(e.Status); name != "" {
		text += " " + name
	}
	if e.Status >= 300 && e.Status < 400 {
		text += ", and redirects are not followed"
	}
	if e.Text != "" {
		text += ": " + e.Text
	}
	return text
}

// judge turns an answer whose body begins with head into the handler's verdict.
func (h *HTTP) judge(resp *http.Response, head []byte) error {
	status := resp.StatusCode
	if status >= 200 && status < 300 {
		return nil
	}
	verdict := h.cfg.Statuses.onStatus(status)
	err := verdict.apply(&StatusError{Status: status, Text: excerpt(head)})
	if verdict != Permanent && (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) {
		if wait := retryAfter(resp.Header); wait > 0 {
			return reprise.RetryAfter(wait, err)
		}
	}
	return err
}

// maxRetryAfter caps what a target may ask for at one lease's length: a
// mistaken header would otherwise pass the policy's age limit at once and
// dead-letter messages that nothing is wrong with.
const maxRetryAfter = 12 * time.Hour

// retryAfter returns the wait that a Retry-After header asks for, in seconds or as
// a date; 0 if there is none, it is no wait, or it cannot be read (RFC 9110,
// §10.2.3).
func retryAfter(header http.Header) time.Duration {
	value := strings.TrimSpace(header.Get("Retry-After"))
	if value == "" {
		return 0
	}
	if value[0] >= '0' && value[0] <= '9' {
		seconds, err := strconv.ParseUint(value, 10, 32)
		if errors.Is(err, strconv.ErrRange) || seconds > uint64(maxRetryAfter/time.Second) {
			return maxRetryAfter
		}
		if err != nil {
			return 0
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	// The date is one of the target's clock, and so is the Date header.
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return max(0, min(maxRetryAfter, at.Sub(now)))
}
