package repriselambda

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/internal/sqslimit"
	"github.com/reprise-sqs/reprise/retry"
)

// The message attributes of a dead letter of [RetryHandler], whose body is the
// payload as it was first sent. Beside them it has the [reprise.Story].
const (
	// FunctionAttribute is the ARN of the function, as it is invoked. A message of the retry queue
	// that has it starts anew: so a dead letter can be redriven.
	FunctionAttribute = "reprise-function"
	// ReasonAttribute is the name of a [retry.Reason], most often attempts or age, or a reason for
	// which no retry can help: not-json, wrong-shape, not-a-failure, bad-metadata, too-large,
	// function-not-found, not-allowed, refused.
	ReasonAttribute = "reprise-reason"
	// AttemptsAttribute is the known number of runs of the function: a Number.
	AttemptsAttribute = "reprise-attempts"
	// FirstAttribute and LastAttribute are when the first and the last run had failed,
	// in RFC 3339.
	FirstAttribute = "reprise-first"
	LastAttribute  = "reprise-last"
	// ErrorTypeAttribute and ErrorMessageAttribute are the last error, at most 1,000
	// bytes of each.
	ErrorTypeAttribute    = "reprise-error-type"
	ErrorMessageAttribute = "reprise-error-message"
)

var letterAttributes = [...]string{
	FunctionAttribute, ReasonAttribute, AttemptsAttribute, FirstAttribute, LastAttribute, ErrorTypeAttribute, ErrorMessageAttribute,
}

// batch is the state of the messages of one invocation.
type batch struct {
	mu      sync.Mutex
	running int
	direct  bool              // the mode
	idle    chan struct{}     // closed when nothing runs
	letters map[string]letter // the state of the messages, by id
	said    sync.Once
}

type batchKey struct{}

func withBatch(ctx context.Context, mode Mode) context.Context {
	return context.WithValue(ctx, batchKey{}, &batch{direct: mode == ModeDirect, letters: make(map[string]letter)})
}

// batchFrom returns the batch of the invocation to which ctx belongs.
func batchFrom(ctx context.Context) *batch { return ctx.Value(batchKey{}).(*batch) }

// begin notes that work on a message has begun.
func (b *batch) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running == 0 {
		b.idle = make(chan struct{})
	}
	b.running++
}

// end notes that the decision about a message has been made.
func (b *batch) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running--; b.running == 0 {
		close(b.idle)
	}
}

// gather delays giving a message back until the decisions about all messages in work have been
// made, so that they are given back together, ten to a call; but it returns in time for this
// message to come again when it is due.
func (b *batch) gather(ctx context.Context, o opinion) {
	if o.err == nil {
		return
	}
	b.mu.Lock()
	idle := b.idle
	b.mu.Unlock()
	patience := maxGathering
	if !o.again.IsZero() {
		patience = min(patience, time.Until(o.again)-2*time.Second)
	}
	if patience <= 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}

// complain logs a problem that concerns one message and probably others: once.
func (b *batch) complain(say func()) { b.said.Do(say) }

// maxGathering is how long a message that could be given back waits for the rest at most.
const maxGathering = time.Minute

// letter is the content of the dead letter of a message, in case it is given up.
type letter struct {
	failure
	body     string // of the message
	reason   string // empty: it has not been given up, unless the consumer has
	attempts int
	last     time.Time
	err      *FunctionError
}

// note keeps the state of m, in case the consumer gives it up.
func (b *batch) note(m *reprise.Message, l letter) {
	l.body = m.Body
	b.mu.Lock()
	defer b.mu.Unlock()
	b.letters[m.ID] = l
}

// giveUp notes the content of m's dead letter.
func (b *batch) giveUp(m *reprise.Message, l letter, reason string, err error) opinion {
	l.reason = reason
	if !l.err.said() {
		l.err = &FunctionError{Function: l.function, Type: reason, Message: err.Error()}
	}
	b.note(m, l)
	return opinion{err: err}
}

// noted returns the state of the message with that id or, if no story has the id, of a message with
// that body, and with that function if it was redriven.
func (b *batch) noted(id, body, function string) (letter, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l, ok := b.letters[id]; ok {
		return l, true
	}
	for _, l := range b.letters {
		if l.body == body && (function == "" || l.function == function) {
			return l, true
		}
	}
	return letter{}, false
}

// retryClient is the client of a retry handler's consumer.
type retryClient struct {
	reprise.Client
	keys []reprise.SigningKey // for the stories that it rewrites
}

// maxReceives is how often a message is received before a copy takes its place.
// The queue should permit more: the rest is for a handler that dies.
const maxReceives = 10

// GetQueueAttributes reports to the consumer a smaller maxReceiveCount than the queue's own, so
// that hours of throttling, with a receive each time, do not use up the queue's.
func (c retryClient) GetQueueAttributes(ctx context.Context, in *sqs.GetQueueAttributesInput, options ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	out, err := c.Client.GetQueueAttributes(ctx, in, options...)
	if err != nil {
		return nil, err
	}
	if lower := withFewerReceives(out.Attributes["RedrivePolicy"]); lower != "" {
		out.Attributes["RedrivePolicy"] = lower
	}
	return out, nil
}

// withFewerReceives is a RedrivePolicy with at most maxReceives; empty if it is none.
func withFewerReceives(text string) string {
	var redrive struct {
		Target   string      `json:"deadLetterTargetArn"`
		Receives json.Number `json:"maxReceiveCount"`
	}
	if json.Unmarshal([]byte(text), &redrive) != nil {
		return ""
	}
	own, err := redrive.Receives.Int64()
	if err != nil {
		return ""
	}
	return fmt.Sprintf(`{"deadLetterTargetArn":%q,"maxReceiveCount":%d}`, redrive.Target, min(own, maxReceives))
}

// SendMessageBatch replaces the bodies of dead letters by the functions' payloads. Dead letters are
// the messages without a history.
func (c retryClient) SendMessageBatch(ctx context.Context, in *sqs.SendMessageBatchInput, options ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error) {
	own := *in
	own.Entries = slices.Clone(in.Entries)
	for i := range own.Entries {
		e := &own.Entries[i]
		if _, copied := e.MessageAttributes[reprise.HistoryAttribute]; !copied {
			batchFrom(ctx).rewrite(e)
			if sizeOfEntry(e)+signatureRoom > sqslimit.Bytes {
				continue // better unsigned than refused
			}
			if err := reprise.SignStory(aws.ToString(in.QueueUrl), e, c.keys); err != nil {
				return nil, err // the consumer has read this URL before
			}
		}
	}
	return c.Client.SendMessageBatch(ctx, &own, options...)
}

// rewrite turns a dead letter of the consumer, which is the message of the retry queue, into one
// with the function's payload.
func (b *batch) rewrite(e *types.SendMessageBatchRequestEntry) {
	var story reprise.Story
	told, hasStory := e.MessageAttributes[reprise.StoryAttribute]
	if hasStory {
		_ = json.Unmarshal([]byte(aws.ToString(told.StringValue)), &story) // the consumer wrote it
	}
	l, known := b.noted(story.Message, *e.MessageBody, aws.ToString(e.MessageAttributes[FunctionAttribute].StringValue))
	if !known { // the retrier never saw it
		f, _ := readFailure(&reprise.Message{Body: *e.MessageBody, Attributes: e.MessageAttributes, Sent: story.Sent})
		l = letter{failure: f, attempts: f.runs() + b.attempts(story), last: f.failed, err: f.err}
	}
	if l.reason == "" { // the consumer has given it up, because of the queue's limits
		l.reason = story.Reason
		if l.reason == retry.ReasonAttempts.String() {
			l.reason = retry.ReasonReceives.String() // its attempts were receives
		}
	}
	if !l.err.said() {
		l.err = &FunctionError{Function: l.function, Type: story.Reason, Message: story.Error}
	}
	if l.last.IsZero() {
		l.last = l.first
	}
	e.MessageBody = aws.String(string(l.payload))
	if e.MessageAttributes == nil {
		e.MessageAttributes = make(map[string]types.MessageAttributeValue)
	}
	for _, name := range letterAttributes { // from an earlier dead letter that was redriven
		delete(e.MessageAttributes, name)
	}
	room := sqslimit.Bytes - sizeOfEntry(e)
	put := func(name, kind, value string) {
		a := types.MessageAttributeValue{DataType: &kind, StringValue: &value}
		needs := sizeOf(name, a)
		old, there := e.MessageAttributes[name]
		if there {
			needs -= sizeOf(name, old)
		}
		if value == "" || needs > room || len(e.MessageAttributes) >= sqslimit.Attributes && !there {
			return
		}
		room -= needs
		e.MessageAttributes[name] = a
	}
	// First the attributes that a redrive needs: there may not be room for all.
	put(FunctionAttribute, "String", fitForSQS(l.function))
	put(ReasonAttribute, "String", l.reason)
	put(AttemptsAttribute, "Number", strconv.Itoa(l.attempts))
	put(FirstAttribute, "String", instant(l.first))
	put(LastAttribute, "String", instant(l.last))
	if hasStory {
		story.Reason, story.Attempts, story.Error = l.reason, l.attempts, shorten(joined(l.err.Type, l.err.Message), maxErrorText)
		if !l.first.IsZero() {
			story.Sent, story.First = l.first.UTC(), l.first.UTC()
		}
		if text, err := json.Marshal(story); err == nil {
			put(reprise.StoryAttribute, "String", fitForSQS(string(text)))
		}
	}
	if !hasStory { // it has been too large for its queue
		return
	}
	put(ErrorTypeAttribute, "String", shorten(fitForSQS(l.err.Type), maxErrorText))
	put(ErrorMessageAttribute, "String", shorten(fitForSQS(l.err.Message), maxErrorText))
}

// attempts is how many of the function's runs are known to the consumer if it gave a message up
// before the retrier saw it: in direct mode those of its history.
func (b *batch) attempts(story reprise.Story) int {
	if !b.direct {
		return 0
	}
	return max(0, story.Attempts)
}

// sizeOf is the size of an attribute in SQS's count.
func sizeOf(name string, a types.MessageAttributeValue) int {
	return len(name) + len(aws.ToString(a.DataType)) + len(aws.ToString(a.StringValue)) + len(a.BinaryValue)
}

// sizeOfEntry is the size of a message in SQS's count.
func sizeOfEntry(e *types.SendMessageBatchRequestEntry) int {
	size := len(aws.ToString(e.MessageBody))
	for name, a := range e.MessageAttributes {
		size += sizeOf(name, a)
	}
	return size
}

const (
	maxErrorText  = 1000
	signatureRoom = 128 // the most that SignStory needs
)

// instant is t in the form of an attribute; empty if it is zero.
func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// fitForSQS is s without the characters that SQS refuses.
func fitForSQS(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, ""))
}

// shorten cuts s to at most n bytes, between characters.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-len("…")], "") + "…"
}
