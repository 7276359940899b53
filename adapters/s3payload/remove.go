package s3payload

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/reprise-sqs/reprise"
)

// Remove deletes the payload of m from S3. It is made for Config.AfterDelete of
// package reprise, which is called when SQS has confirmed that the message is gone and
// its work is done: not for messages that are retried, requeued or dead-lettered.
// Without it payloads stay until the bucket's lifecycle rule removes them, which is
// the default because nothing else is safe everywhere: an object may have other
// pointers to it, those in the queues of other subscribers of a topic above all.
//
// Messages without a payload in S3 cost nothing. A pointer to where Config does not
// permit is not followed.
//
// A delete that fails is counted in [Stats], logged and not repeated, beyond what the
// client does by itself: the message is done in any case, and so is the bucket's
// lifecycle rule needed in any case. If the process dies between the two deletes the
// object stays as well.
func (p *Payloads) Remove(ctx context.Context, m *reprise.Message) {
	size, ok := offloaded(m.Attributes)
	if !ok {
		return
	}
	pointer, err := decode(m.Body, size)
	if err == nil {
		err = p.cfg.permit(pointer)
	}
	if err == nil {
		err = p.delete(ctx, pointer)
	}
	if err != nil {
		p.complain(fmt.Errorf("message %s: %w", m.ID, err))
	}
}

// delete deletes an object; one that does not exist is no error.
func (p *Payloads) delete(ctx context.Context, at Pointer) error {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	if _, err := p.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &at.Bucket, Key: &at.Key}); err != nil {
		return fmt.Errorf("deleting %q: %w", at, err)
	}
	p.removed.Add(1)
	return nil
}

// complainEvery bounds what is logged while S3 is unavailable.
const complainEvery = 30 * time.Second

// complain counts a payload that was not removed, and says so if nothing has been said
// lately.
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
