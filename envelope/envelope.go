// Package envelope opens the envelopes that AWS services and brokers put around a message before it
// reaches a queue: SNS notifications, EventBridge events, S3 event notifications and CloudEvents.
// Use it by putting [Unwrap] around a handler:
//
//	unwrap := envelope.Unwrap(envelope.SNS, envelope.EventBridge)
//	consumer, err := reprise.New(client, queueURL, unwrap(reprise.JSON(ship)), reprise.Config{})
//
// The handler then sees the inner body, and [From] returns the envelope. A body without an envelope
// passes unchanged, such as those of SNS's raw delivery; an envelope that cannot be opened is
// dead-lettered with the reason.
//
// An envelope does not prove who has sent a message: anybody who may send to the queue can write
// one. The queue's policy decides who may send.
package envelope

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
)

// Envelope is the envelope that was around a message.
type Envelope struct {
	// Kind is the kind of the envelope: "sns", "eventbridge", "s3", "cloudevents".
	Kind string
	// ID names the event, together with Source. Empty if the envelope has none.
	ID string
	// Source is where the event comes from: an SNS topic's ARN, EventBridge's or
	// CloudEvents' source, an S3 bucket's name.
	Source string
	// Type is what has happened: EventBridge's detail-type, CloudEvents' type, S3's event name. For
	// SNS it is "Notification".
	Type string
	// Subject is SNS's or CloudEvents' subject, or the S3 object's key. Often empty.
	Subject string
	// Time is when the event happened, by the clock of its source; for SNS when it was published.
	// Zero if the envelope has no time.
	Time time.Time
	// Attributes are the message attributes that were inside: SNS's. They are added to
	// those of the message, and replace those of the same name.
	Attributes map[string]types.MessageAttributeValue
	// Body is the body inside.
	Body string
	// Raw is the whole envelope, for its other fields.
	Raw string
	// Nothing reports that there is no work: the message is deleted without a run of the handler.
	Nothing bool
	// Outer is the envelope around this one; nil if there was none.
	Outer *Envelope
}

// Key names the event, the same for all its duplicates: two deliveries, even by two topics, have
// the same key. It consists of the kind, the source and the id of the innermost envelope that has
// an id. Empty if none has.
func (e *Envelope) Key() string {
	for ; e != nil; e = e.Outer {
		if e.ID != "" {
			return e.Kind + ":" + strconv.Itoa(len(e.Source)) + ":" + e.Source + ":" + e.ID
		}
	}
	return ""
}

// Decoder opens one kind of envelope. For a body that is not such an envelope it returns nil and no
// error, for an envelope that cannot be opened an error. It sets Kind and Body, and other fields
// that it knows; the caller sets Raw and Outer. It may be called concurrently.
type Decoder func(body string) (*Envelope, error)

// Unwrap returns middleware that opens envelopes. If envelopes are nested, such as an S3 event that
// came through an SNS topic, each decoder opens one; the order of the decoders matters only if two
// recognise the same envelope.
//
// The handler sees a copy of the message with the inner body, and the attributes
// that were inside; everything else is unchanged, in particular the ids. Outer middleware and the
// dead-letter queue see the message as it was received.
func Unwrap(decoders ...Decoder) func(reprise.Handler) reprise.Handler {
	known(decoders)
	return func(next reprise.Handler) reprise.Handler {
		return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
			e, err := open(m.Body, decoders)
			switch {
			case err != nil:
				return reprise.Permanent(err)
			case e == nil:
				return next.Handle(ctx, m)
			case e.Nothing:
				return nil
			}
			inner := *m
			inner.Body = e.Body
			inner.Attributes = e.within(m.Attributes)
			return next.Handle(context.WithValue(ctx, contextKey{}, e), &inner)
		})
	}
}

type contextKey struct{}

// From returns the innermost envelope of the message whose handler runs with ctx, and reports
// whether there was one.
func From(ctx context.Context) (*Envelope, bool) {
	e, ok := ctx.Value(contextKey{}).(*Envelope)
	return e, ok
}

// Key returns a function for package idempotency's Config.Key; that middleware must go outside of
// [Unwrap]. The key is that of the event in the envelopes, see [Envelope.Key], and without an
// envelope that of the message's origin, as [reprise.Message.IdempotencyKey] returns it. Every
// producer of the queue can put any event's id into an envelope: such keys trust the producers.
//
// Every producer of the queue can write an envelope with the id of another's event, so that the
// other counts as a duplicate: let the queue's policy permit only services that assign ids
// themselves, as SNS and EventBridge do, or senders that trust each other.
//
//	once, err := idempotency.New(store, idempotency.Config{Key: envelope.Key(envelope.SNS)})
//	handler := middleware.Chain(once, envelope.Unwrap(envelope.SNS))(reprise.JSON(ship))
func Key(decoders ...Decoder) func(*reprise.Message) (string, error) {
	known(decoders)
	return func(m *reprise.Message) (string, error) {
		e, err := open(m.Body, decoders)
		if err != nil {
			return "", err
		}
		if key := e.Key(); key != "" {
			return key, nil
		}
		return m.IdempotencyKey(), nil
	}
}

// known panics, for a constructor, if a decoder is missing.
func known(decoders []Decoder) {
	for i, d := range decoders {
		if d == nil {
			panic(fmt.Sprintf("envelope: decoder %d is nil: pass one, such as envelope.SNS", i))
		}
	}
}

// open opens the envelopes around body, and returns the innermost, or nil if there is none. Each
// decoder opens one, so that nested envelopes of one kind are opened only once.
func open(body string, decoders []Decoder) (*Envelope, error) {
	var innermost *Envelope
	for i := 0; i < len(decoders); {
		e, err := decoders[i](body)
		switch {
		case err != nil:
			return nil, &openError{err}
		case e == nil:
			i++
			continue
		}
		e.Raw, e.Outer = body, innermost
		if e.Nothing {
			return e, nil
		}
		innermost, body = e, e.Body
		decoders, i = slices.Concat(decoders[:i], decoders[i+1:]), 0
	}
	return innermost, nil
}

// openError is why an envelope cannot be opened.
type openError struct{ cause error }

// maxCause is how many bytes of a decoder's error are kept: it may quote the message.
const maxCause = 500

func (e *openError) Error() string {
	text := e.cause.Error()
	if len(text) > maxCause {
		text = strings.ToValidUTF8(text[:maxCause], "") + "…"
	}
	return "opening an envelope: " + text
}

func (e *openError) Unwrap() error { return e.cause }

// within returns the message attributes that were in e and the envelopes around it,
// and outer, those of the message. The innermost wins.
func (e *Envelope) within(outer map[string]types.MessageAttributeValue) map[string]types.MessageAttributeValue {
	if e.Outer != nil {
		outer = e.Outer.within(outer)
	}
	switch {
	case len(e.Attributes) == 0:
		return outer
	case len(outer) == 0:
		return e.Attributes
	}
	all := maps.Clone(outer) // outer is shared
	maps.Copy(all, e.Attributes)
	return all
}
