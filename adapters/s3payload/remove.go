package s3payload

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/reprise-sqs/reprise"
)

// Remove deletes the payload of m from S3. It is made for Config.AfterDelete of
// package reprise, which is called when SQS has confirmed that the message is gone and
// its work is done: not for messages that are retried, requeued or dead-lettered.
// Without it payloads stay until the bucket's lifecycle rule removes them, which is
// the default because only that is safe everywhere: an object may have other pointers, for example
// in the queues of other subscribers of a topic.
//
// Messages without a payload in S3 cost nothing. A pointer outside of the locations in Config is
// not followed. If payloads have no prefix of their own, every object of the bucket is permitted;
// then only objects whose keys end in a UUID are removed, as this package and AWS's libraries name
// payloads: a sender can forge any pointer, and must not have objects deleted whose names can be
// guessed.
//
// A delete that fails is counted in [Stats] and logged, but not repeated, except by the client
// itself: the message is done in any case, and the bucket's lifecycle rule is needed in any case.
// If the process dies between the two deletes the object stays as well.
func (p *Payloads) Remove(ctx context.Context, m *reprise.Message) {
	size, ok := offloaded(m.Attributes)
	if !ok {
		return
	}
	pointer, err := decode(m.Body, size)
	if err == nil {
		err = p.cfg.permit(pointer)
	}
	if err == nil && !p.cfg.removable(pointer) {
		err = fmt.Errorf("%.200q is not deleted: its key does not end in a UUID, so it may not be a payload, and payloads have no prefix that would show it; set a Prefix for payloads", pointer)
	}
	if err == nil {
		err = p.delete(ctx, pointer)
	}
	if err != nil {
		p.complain(fmt.Errorf("message %s: %w", m.ID, err))
	}
}

// removable reports whether only its sender can have named the permitted object at: it is under a
// prefix, or its name cannot be guessed.
func (c *Config) removable(at Pointer) bool {
	return endsInUUID(at.Key) || slices.ContainsFunc(c.Allow, func(l Location) bool { return l.Prefix != "" && l.has(at) })
}

// endsInUUID reports whether the last 36 characters of key are a UUID as RFC 9562 writes
// it.
func endsInUUID(key string) bool {
	if len(key) < uuidLength {
		return false
	}
	for i, c := range []byte(key[len(key)-uuidLength:]) {
		hyphen := i == 8 || i == 13 || i == 18 || i == 23
		hexadecimal := c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
		if hyphen != (c == '-') || !hyphen && !hexadecimal {
			return false
		}
	}
	return true
}

// delete deletes an object; a missing object is not an error.
func (p *Payloads) delete(ctx context.Context, at Pointer) error {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	if _, err := p.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &at.Bucket, Key: &at.Key}); err != nil {
		return fmt.Errorf("deleting %q: %w", at, err)
	}
	p.removed.Add(1)
	return nil
}

// complainEvery limits the logging while S3 is unavailable.
const complainEvery = 30 * time.Second

// complain counts a payload that was not removed, and logs it unless it has logged recently.
func (p *Payloads) complain(err error) {
	p.notRemoved.Add(1)
	p.mu.Lock()
	p.unsaid++
	n := p.unsaid
	now := time.Now()
	say := p.saidAt.IsZero() || now.Sub(p.saidAt) >= complainEvery
	if say {
		p.saidAt, p.unsaid = now, 0
	}
	p.mu.Unlock()
	if say {
		p.cfg.Logger.Error("payloads could not be removed; they are left to the bucket's lifecycle rule", "payloads", n, "error", err)
	}
}
