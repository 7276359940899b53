package s3payload

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
)

// maxUserAttributes is how many of a message's ten attributes are left beside
// SizeAttribute.
const maxUserAttributes = 9

// Offload returns the message to send for m. If m is larger than Config.Threshold its body is
// written to S3 first, and the result is a pointer to it; otherwise it is m itself. A pointer is
// returned unchanged.
//
// Nothing points to the object yet: if the message is not sent then, the object stays
// until the bucket's lifecycle rule removes it. [Payloads.Send] does better.
//
// A message with more than nine attributes cannot be offloaded, because SQS accepts ten; with nine
// there is no room left for the history of a copy.
func (p *Payloads) Offload(ctx context.Context, m reprise.Outgoing) (reprise.Outgoing, error) {
	place, err := p.place(&m)
	if err != nil || place == nil {
		return m, err
	}
	return p.put(ctx, m, *place)
}

// place returns where to write the body of m, or nil if it stays in m.
func (p *Payloads) place(m *reprise.Outgoing) (*Pointer, error) {
	size, attributes := sizes(m)
	if size <= p.cfg.Threshold || m.Body == "" {
		return nil, nil // SQS refuses an empty body
	}
	limit := p.cfg.Threshold
	if limit < 0 {
		limit = maxMessage
	}
	said, marked := offloaded(m.Attributes)
	var problem error
	switch {
	case marked:
		if _, err := decode(m.Body, said); err == nil {
			return nil, nil
		}
		problem = fmt.Errorf("it has the attribute %s or %s, which marks the body as a pointer, but the body is not one: give the attribute another name", SizeAttribute, LegacySizeAttribute)
	case len(m.Attributes) > maxUserAttributes:
		problem = fmt.Errorf("it has %d attributes, and with %s that would be more than SQS's limit of 10: put the rest into the body", len(m.Attributes), SizeAttribute)
	case attributes > limit:
		problem = fmt.Errorf("its attributes alone are %d bytes long, more than %d: put them into the body", attributes, limit)
	case len(m.Body) > p.cfg.MaxSize:
		problem = fmt.Errorf("its body is %d bytes long, more than Config.MaxSize, %d: consumers with the same Config would not fetch it", len(m.Body), p.cfg.MaxSize)
	}
	if problem != nil {
		return nil, fmt.Errorf("keeping a message's body in S3: %w", problem)
	}
	return &Pointer{Bucket: p.cfg.Bucket, Key: p.cfg.Prefix + newUUID(), Size: int64(len(m.Body))}, nil
}

// sizes returns the size of m in SQS's count, and the attributes' part of that.
func sizes(m *reprise.Outgoing) (all, attributes int) {
	for name, a := range m.Attributes {
		attributes += len(name) + len(aws.ToString(a.DataType)) + len(aws.ToString(a.StringValue)) + len(a.BinaryValue)
	}
	return len(m.Body) + attributes, attributes
}

// newUUID returns a random UUID (RFC 9562, version 4); AWS's libraries name objects in the same
// way.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// put writes m's body and returns the pointer to it in its place.
func (p *Payloads) put(ctx context.Context, m reprise.Outgoing, to Pointer) (reprise.Outgoing, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	if _, err := p.client.PutObject(ctx, &s3.PutObjectInput{Bucket: &to.Bucket, Key: &to.Key, Body: strings.NewReader(m.Body)}); err != nil {
		return m, fmt.Errorf("keeping a message's body in S3: writing %q: %w", to, err)
	}
	p.offloaded.Add(1)
	m.Body = to.encode()
	attributes := make(map[string]types.MessageAttributeValue, len(m.Attributes)+1)
	maps.Copy(attributes, m.Attributes)
	attributes[SizeAttribute] = types.MessageAttributeValue{
		DataType:    aws.String("Number"),
		StringValue: aws.String(strconv.FormatInt(to.Size, 10)),
	}
	m.Attributes = attributes
	return m, nil
}

// maxUploads is how many bodies of one Send are written at once.
const maxUploads = 10

// Send is sender's Send, for messages that may be large: large ones go through [Payloads.Offload]
// first, ten at once. A message that cannot be offloaded is not sent, and its result has the
// reason; the others are sent nevertheless.
//
// The object of a message that SQS has not accepted is deleted again, unless SQS may have the
// message after all ([reprise.ErrUnconfirmed]). All of them together take Config.Timeout at most, also if
// ctx has ended; what is left then is counted in [Stats], and left to the bucket's lifecycle rule.
func (p *Payloads) Send(ctx context.Context, sender *reprise.Sender, messages ...reprise.Outgoing) ([]reprise.Sent, error) {
	results := make([]reprise.Sent, len(messages))
	ready, written := p.offloadAll(ctx, messages, results)
	var sendable []reprise.Outgoing
	for i := range ready {
		if results[i].Err == nil {
			sendable = append(sendable, ready[i])
		}
	}
	sent, _ := sender.Send(ctx, sendable...) // its error is the first of those in sent
	failed, first := 0, error(nil)
	for i := range results {
		if results[i].Err == nil {
			results[i], sent = sent[0], sent[1:]
		} else {
			written[i] = nil // its write has failed
		}
		if err := results[i].Err; err != nil {
			if failed++; first == nil {
				first = err
			}
		}
	}
	p.discard(ctx, written, results)
	if failed == 0 || len(messages) == 1 {
		return results, first
	}
	return results, fmt.Errorf("%d of %d messages were not sent, the first: %w", failed, len(messages), first)
}

// offloadAll returns the messages to send, and for each the pointer to its object: nil if its body
// stays in it. The errors of messages that cannot be sent go to results.
func (p *Payloads) offloadAll(ctx context.Context, messages []reprise.Outgoing, results []reprise.Sent) (ready []reprise.Outgoing, written []*Pointer) {
	ready, written = slices.Clone(messages), make([]*Pointer, len(messages))
	var uploads sync.WaitGroup
	room := make(chan struct{}, maxUploads)
	for i := range messages {
		written[i], results[i].Err = p.place(&messages[i])
		if written[i] == nil {
			continue
		}
		room <- struct{}{}
		uploads.Go(func() {
			defer func() { <-room }()
			defer func() {
				if v := recover(); v != nil { // a Client may be the user's own code
					results[i].Err = fmt.Errorf("keeping a message's body in S3: the client panicked: %v\n%s", v, debug.Stack())
				}
			}()
			ready[i], results[i].Err = p.put(ctx, messages[i], *written[i])
		})
	}
	uploads.Wait()
	return ready, written
}

// discard deletes the objects of messages that were not sent, even if ctx has ended.
func (p *Payloads) discard(ctx context.Context, written []*Pointer, results []reprise.Sent) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.cfg.Timeout)
	defer cancel()
	var deletes sync.WaitGroup
	room := make(chan struct{}, maxUploads)
	for i, at := range written {
		if at == nil || results[i].Err == nil || errors.Is(results[i].Err, reprise.ErrUnconfirmed) {
			continue
		}
		room <- struct{}{}
		deletes.Go(func() {
			err := errors.New("the client called runtime.Goexit")
			defer func() { <-room }()
			defer func() {
				if v := recover(); v != nil {
					err = fmt.Errorf("the client panicked: %v\n%s", v, debug.Stack())
				}
				if err != nil {
					p.complain(fmt.Errorf("of a message that was not sent: %w", err))
				}
			}()
			err = p.delete(ctx, *at)
		})
	}
	deletes.Wait()
}
