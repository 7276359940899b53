package forward

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/reprise-sqs/reprise"
)

// Lines runs commands that stay: each gets one message at a time, as a line of JSON on its
// standard input, and answers with a line of JSON on its standard output. There are as many
// processes as messages at work, started when they are needed and used again. See [Request]
// and [Answer] for the lines.
//
// A process that ends, or answers with something else, fails its message. When the context of
// an attempt ends, the process and all that it started are asked to end, and killed a second
// later; the next message gets another process.
type Lines struct {
	cfg    LinesConfig
	stderr *outputs // nil: discarded

	mu     sync.Mutex
	idle   []*lineProcess
	closed bool
}

// LinesConfig says what to run.
type LinesConfig struct {
	// Command is a line for the shell: sh -c, or cmd /C on Windows.
	Command string
	// Queue is the name of the queue, for REPRISE_QUEUE.
	Queue string
	// Stderr gets what processes write to their standard error, as ExecConfig.Stderr does.
	// Default: discarded.
	Stderr io.Writer
	// Logger logs when a process that waits for messages ends. Default: nothing is logged.
	Logger *slog.Logger
}

// Request is the line that a process gets for a message.
type Request struct {
	ID            string    `json:"id"`
	OriginID      string    `json:"origin_id"`
	Queue         string    `json:"queue"`
	GroupID       string    `json:"group_id,omitempty"`
	Attempt       int       `json:"attempt"`
	Receives      int       `json:"receive_count"`
	Sent          time.Time `json:"sent_at,omitzero"`
	FirstReceived time.Time `json:"first_received_at,omitzero"`
	// Attributes are those of types String and Number, Binary the others, in base64.
	Attributes map[string]string `json:"attributes,omitempty"`
	Binary     map[string][]byte `json:"binary_attributes,omitempty"`
	// Body is the message's body. One that is not UTF-8 is in BodyBytes instead, in base64.
	Body      string `json:"body"`
	BodyBytes []byte `json:"body_base64,omitempty"`
}

// Answer is the line by which a process decides about the message.
type Answer struct {
	// ID is that of the request.
	ID string `json:"id"`
	// Result is delete, retry, permanent, release or unavailable. Default: delete, or retry
	// if there is an Error.
	Result string `json:"result"`
	// Error describes the problem.
	Error string `json:"error"`
	// After is the least time until the retry or the end of the release, in seconds.
	After float64 `json:"after"`
}

// maxAnswer is how long an answer may be.
const maxAnswer = 64 << 10

// NewLines returns a target that runs cfg.Command. It starts nothing. Like [NewExec] it fails
// if the command does not exist or cannot be executed, as far as that can be told.
func NewLines(cfg LinesConfig) (*Lines, error) {
	switch {
	case strings.TrimSpace(cfg.Command) == "":
		return nil, errors.New("the command is empty: pass one that reads messages from its standard input, like ./worker.py")
	case cfg.Queue == "":
		return nil, errNoQueue
	}
	if err := runnable(cfg.Command); err != nil {
		return nil, err
	}
	l := &Lines{cfg: cfg}
	if cfg.Stderr != nil {
		l.stderr = newOutputs(cfg.Stderr, "standard error")
	}
	return l, nil
}

// Handle gives m to a process and judges its answer. If a process that has answered before ends without having read m,
// m is given to another.
func (l *Lines) Handle(ctx context.Context, m *reprise.Message) error {
	line, err := json.Marshal(l.request(m))
	if err != nil {
		panic(err) // texts are always JSON
	}
	line = append(line, '\n')
	for {
		p, err := l.take()
		if err != nil {
			return notRun(fmt.Errorf("starting the worker: %w", err))
		}
		var answer Answer
		var unread bool
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			unread, err = p.exchange(line, &answer)
		}()
		select {
		case <-ctx.Done():
			p.stop()
			<-answered // it ends now that its pipes are closed
			return fmt.Errorf("the worker was stopped: %w", context.Cause(ctx))
		case <-answered:
		}
		if unread && p.used {
			l.dismiss(p, "a worker ended before it had read its next message, which another gets", p.failed(errEnded))
			continue
		}
		if err == nil && answer.ID != m.ID {
			err = fmt.Errorf("the worker answered for the message %q, and not for the one that it was given: each answer has the id of its message, and nothing else goes to the standard output", excerpt([]byte(answer.ID)))
		}
		if err != nil {
			p.stop()
			return p.failed(err)
		}
		l.give(p)
		return answer.judge()
	}
}

// judge returns the handler's verdict.
func (a *Answer) judge() error {
	if a.Result == "" && a.Error == "" || a.Result == "delete" {
		return nil
	}
	text := a.Error
	if len(text) > maxErrorText {
		text = text[:maxErrorText]
	}
	if text = excerpt([]byte(text)); text == "" {
		text = "the worker gave no reason"
	}
	err := errors.New(text)
	after := time.Duration(min(max(a.After, 0), maxRetryAfter.Seconds()) * float64(time.Second))
	switch a.Result {
	case "", "retry":
	case "permanent":
		return reprise.Permanent(err)
	case "release":
		return reprise.Release(after, err)
	case "unavailable":
		err = reprise.Unavailable(err)
	default:
		return fmt.Errorf("the worker answered with the result %q: it has to be delete, retry, permanent, release or unavailable: %w", excerpt([]byte(a.Result)), err)
	}
	if after > 0 {
		return reprise.RetryAfter(after, err)
	}
	return err
}

// request describes m.
func (l *Lines) request(m *reprise.Message) *Request {
	r := &Request{
		ID: m.ID, OriginID: m.OriginID, Queue: l.cfg.Queue, GroupID: m.GroupID, Attempt: m.Attempt, Receives: m.Receives,
		Sent: m.Sent.UTC(), FirstReceived: m.FirstReceived.UTC(), Body: m.Body,
	}
	if !utf8.ValidString(m.Body) {
		r.Body, r.BodyBytes = "", []byte(m.Body)
	}
	for name, a := range m.Attributes {
		if a.StringValue != nil {
			if r.Attributes == nil {
				r.Attributes = make(map[string]string)
			}
			r.Attributes[name] = *a.StringValue
			continue
		}
		if r.Binary == nil {
			r.Binary = make(map[string][]byte)
		}
		r.Binary[name] = a.BinaryValue
	}
	return r
}

// take returns a process that waits for a message.
func (l *Lines) take() (*lineProcess, error) {
	for {
		l.mu.Lock()
		if len(l.idle) == 0 {
			l.mu.Unlock()
			return l.start()
		}
		p := l.idle[len(l.idle)-1]
		l.idle = l.idle[:len(l.idle)-1]
		l.mu.Unlock()
		select {
		case <-p.ended:
			l.dismiss(p, "a worker ended while it had no message; another is started", p.failed(errEnded))
		case said := <-p.said:
			l.dismiss(p, "a worker wrote a line while it had no message; another is started", said.unasked())
		default:
			return p, nil
		}
	}
}

// dismiss stops a process that gets no more messages, and logs why.
func (l *Lines) dismiss(p *lineProcess, text string, why error) {
	p.stop()
	if l.cfg.Logger != nil {
		l.cfg.Logger.Warn(text, "error", why)
	}
}

// give takes back a process that has answered.
func (l *Lines) give(p *lineProcess) {
	p.used = true
	l.mu.Lock()
	closed := l.closed
	if !closed {
		l.idle = append(l.idle, p)
	}
	l.mu.Unlock()
	if closed {
		p.close()
	}
}

// Close closes the standard input of the processes that have no message, and returns when they
// have ended; after a second they are stopped. Those that have one follow when they answer.
func (l *Lines) Close() {
	l.mu.Lock()
	idle := l.idle
	l.idle, l.closed = nil, true
	l.mu.Unlock()
	var closing sync.WaitGroup
	for _, p := range idle {
		closing.Go(p.close)
	}
	closing.Wait()
}

// lineWriter passes on lines as they come. Those of a process that stays are bounded together
// with those of others, and not by themselves.
type lineWriter struct {
	to   *outputs
	line []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	for piece := range bytes.Lines(p) {
		w.line = append(w.line, piece...)
		if len(w.line) > maxOutputLine {
			w.line = append(w.line[:maxOutputLine-1], '\n')
		}
		if w.line[len(w.line)-1] == '\n' {
			w.to.pass(w.line)
			w.line = w.line[:0]
		}
	}
	return len(p), nil
}
