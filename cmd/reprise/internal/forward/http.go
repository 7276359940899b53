package forward

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/httpclient"
)

// HTTP posts each message to a URL. The answer decides what happens to the message:
//
//   - 2xx deletes it;
//   - 101, 401-407, 410, 411, 414, 415, 421, 426, 429, 5xx, a redirect, a connection that
//     fails (TLS included), a head of more than 64 KiB and a timeout are [Unavailable]: the
//     target is down or misconfigured, and nothing is wrong with the message;
//   - 408 and 425 are [Retry];
//   - every other 4xx is [Permanent]: the same request would be refused again.
//
// HTTPConfig.Statuses changes that. 429 and 503 with a Retry-After header (seconds or a date) are
// retried not before that, at most 12 hours later.
//
// Redirects are not followed: a POST would become a GET on its way, and a message deleted because
// a login page answered 200 is lost.
type HTTP struct {
	leftOut leftOut
	cfg     HTTPConfig
	client  *http.Client
}

// HTTPConfig is where an [HTTP] posts, and with which headers.
type HTTPConfig struct {
	// URL is where messages are posted: http or https. A user and a password in the URL become
	// basic authentication.
	URL string
	// Queue is the name of the queue, for the header X-Aws-Sqsd-Queue.
	Queue string
	// ContentType is the Content-Type of every request. Default: application/json.
	ContentType string
	// UserAgent is the User-Agent of every request. Default: reprise.
	UserAgent string
	// Statuses are verdicts that differ from the defaults.
	Statuses Codes
	// Header has more headers of every request. They cannot be those that describe the
	// message or belong to HTTP itself. Default: none.
	Header http.Header
	// Authorization is that header of every request: see [Bearer] and [Basic]. Default: none.
	Authorization string
	// Secret signs every request: see [Signature]. Default: requests are not signed.
	Secret []byte
	// TLS has the certificates of https. Default: no client certificate, and the system's
	// authorities.
	TLS *tls.Config
	// Beanstalk makes the target behave as Elastic Beanstalk's worker daemon: status 200 deletes
	// the message, and after anything else the policy retries it. Statuses and Retry-After are
	// ignored, and the headers are the daemon's own alone.
	Beanstalk bool
	// Trace adds headers to a request that continue the trace of ctx. Default: nothing is added.
	Trace func(ctx context.Context, header http.Header)
	// Connections is how many idle connections are kept for the next messages: as
	// many as handlers run at once. Default: 10.
	Connections int
	// Logger gets the attributes that no header can carry. Default: nothing is logged.
	Logger *slog.Logger
}

const (
	dialTimeout     = 10 * time.Second
	maxIdleConnTime = 90 * time.Second

	// maxAttributeHeaders bounds the total size of the headers for a message's attributes.
	// Servers limit the headers of a request: Node.js to 16 KiB in total, others to 64 KiB, or to
	// 8 KiB each. Many cut the connection of a request with more, or hang. That would look like
	// an outage of the target, which any sender could then cause.
	maxAttributeHeaders = 8 << 10

	// maxID bounds the ids that a header carries. SQS's ids have at most 128 characters.
	maxID = 1 << 10

	// maxDrained is how much of an answer is read so that its connection can carry the next
	// message. For longer answers a new connection is cheaper.
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
	if err := checkHeader(cfg.Header); err != nil {
		return nil, err
	}
	if target.User != nil && cfg.Authorization != "" {
		return nil, errors.New("the target URL has a user, and there is another authorization: keep one")
	}
	cfg.UserAgent = cmp.Or(cfg.UserAgent, "reprise")
	if cfg.Beanstalk {
		cfg.UserAgent = beanstalkAgent
	}
	cfg.Connections = cmp.Or(cfg.Connections, 10)
	return &HTTP{cfg: cfg, leftOut: leftOut{log: cfg.Logger, carrier: "HTTP header"}, client: httpclient.New(&http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout: dialTimeout,
		TLSClientConfig:     cfg.TLS,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: cfg.Connections,
		IdleConnTimeout:     maxIdleConnTime,
		DisableCompression:  true, // the answer's body is only ever an error's text
	})}, nil
}

// Handle posts m and judges the answer. The error is a [*StatusError] if the target answered.
func (h *HTTP) Handle(ctx context.Context, m *reprise.Message) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.cfg.URL, strings.NewReader(m.Body))
	if err != nil {
		return fmt.Errorf("posting to the target: %w", WithoutURL(err))
	}
	h.setHeaders(req.Header, m)
	if h.cfg.Trace != nil && !h.cfg.Beanstalk {
		h.cfg.Trace(ctx, req.Header)
	}
	if h.cfg.Secret != nil {
		req.Header.Set("X-Reprise-Signature", Signature(h.cfg.Secret, time.Now(), m.Body))
	}
	resp, err := h.client.Do(req)
	if err != nil {
		return h.unreachable(ctx, fmt.Errorf("posting to the target: %w", WithoutURL(err)))
	}
	defer resp.Body.Close()
	head, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorText))
	if err == nil {
		_, err = io.CopyN(io.Discard, resp.Body, maxDrained)
	}
	if err != nil && !errors.Is(err, io.EOF) && resp.StatusCode < 300 {
		// The status promised success, but the answer broke off: whether the work was done is
		// unknown, and repeating it is safe.
		return h.unreachable(ctx, fmt.Errorf("reading the target's answer: %w", err))
	}
	return h.judge(resp, head)
}

// WithoutURL returns an error of net/http without the request's URL: its path and query may have secrets, such as a webhook's,
// and errors go to logs, stories and health, which others read.
func WithoutURL(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}

// unreachable returns the error of an attempt without a complete answer: no connection, an
// untrusted certificate, or a cut connection. The message is not at fault, unless its context has
// ended.
func (h *HTTP) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil || h.cfg.Beanstalk {
		return err
	}
	return Unavailable.apply(err)
}

// Close closes idle connections.
func (h *HTTP) Close() { h.client.CloseIdleConnections() }

// setHeaders describes m the way Elastic Beanstalk's worker daemon (sqsd) does, so that services
// written for that daemon need no change, and adds what the daemon leaves out.
//
// There is no Idempotency-Key, although OriginID would be one: with that header net/http repeats
// a POST by itself, and would not count the attempt.
func (h *HTTP) setHeaders(header http.Header, m *reprise.Message) {
	maps.Copy(header, h.cfg.Header)
	if h.cfg.Authorization != "" {
		header.Set("Authorization", h.cfg.Authorization)
	}
	header.Set("Content-Type", h.cfg.ContentType)
	header.Set("User-Agent", h.cfg.UserAgent)
	// The transport refuses a request with an invalid header as a whole, at every attempt. SQS
	// issues no such ids; other servers may.
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
		name := "X-Aws-Sqsd-Attr-" + a.name // the case of the name stays
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
	if h.cfg.Beanstalk {
		return
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

// judge returns the handler's result for an answer whose body begins with head.
func (h *HTTP) judge(resp *http.Response, head []byte) error {
	status := resp.StatusCode
	switch {
	case h.cfg.Beanstalk && status == http.StatusOK, !h.cfg.Beanstalk && status >= 200 && status < 300:
		return nil
	case h.cfg.Beanstalk:
		return &StatusError{Status: status, Text: excerpt(head)}
	}
	verdict := h.cfg.Statuses.onStatus(status)
	err := verdict.apply(&StatusError{Status: status, Text: excerpt(head)})
	if (verdict == Retry || verdict == Unavailable) && (status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) {
		if wait := retryAfter(resp.Header); wait > 0 {
			return reprise.RetryAfter(wait, err)
		}
	}
	return err
}

// maxRetryAfter limits the wait that a target may ask for to the longest lease. Otherwise a wrong
// header would exceed the policy's age limit at once, and send good messages to the dead-letter
// queue.
const maxRetryAfter = 12 * time.Hour

// retryAfter returns the wait that a Retry-After header asks for, in seconds or as a date; 0 if
// there is none, if it has passed, or if it cannot be read (RFC 9110, §10.2.3).
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
	// Both dates are those of the target's clock.
	now, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return max(0, min(maxRetryAfter, at.Sub(now)))
}
