package s3payload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/reprise-sqs/reprise"
)

// Fetch is middleware: it gives next the payload as the message's body. The handler
// does not see the attribute that says where the body was; [From] tells it. A message
// that has its body itself passes unchanged, at no cost.
//
// What stands outside of Fetch sees the message as it came, the pointer, and so do
// the queue and its dead-letter queue: what is requeued or dead-lettered still has its
// payload.
//
// A message is dead-lettered with the reason if its pointer is malformed or leads to
// where Config does not permit, and if the object does not exist, is archived, is
// larger than Config.MaxSize or not as large as the message says. Any other failure
// counts as [reprise.Unavailable]: the message is retried, and when nearly all fail
// so, the consumer's breaker opens. That holds for denied access too, which somebody
// has to grant. S3 says of a missing object that access is denied unless the
// consumer has s3:ListBucket: grant it.
func (p *Payloads) Fetch(next reprise.Handler) reprise.Handler {
	return reprise.HandlerFunc(func(ctx context.Context, m *reprise.Message) error {
		size, ok := offloaded(m.Attributes)
		if !ok {
			return next.Handle(ctx, m)
		}
		pointer, err := decode(m.Body, size)
		if err == nil {
			err = p.cfg.permit(pointer)
		}
		if err != nil {
			return reprise.Permanent(fmt.Errorf("fetching the payload: %w", err))
		}
		body, err := p.get(ctx, pointer)
		if err != nil {
			return err
		}
		p.fetched.Add(1)
		whole := *m // the message is not ours to change: who stands outside sees it too
		whole.Body = body
		whole.Attributes = maps.Clone(m.Attributes)
		delete(whole.Attributes, SizeAttribute)
		delete(whole.Attributes, LegacySizeAttribute)
		if len(whole.Attributes) == 0 {
			whole.Attributes = nil
		}
		return next.Handle(context.WithValue(ctx, contextKey{}, pointer), &whole)
	})
}

// get reads an object. Its error says what is to become of the message.
func (p *Payloads) get(ctx context.Context, from Pointer) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	if from.Size > int64(p.cfg.MaxSize) {
		return "", reprise.Permanent(fmt.Errorf("fetching %q: its %d bytes are more than Config.MaxSize, %d", from, from.Size, p.cfg.MaxSize))
	}
	out, err := p.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &from.Bucket, Key: &from.Key})
	if err != nil {
		err = fmt.Errorf("fetching %q: %w", from, err)
		if lost(err) {
			return "", reprise.Permanent(err)
		}
		return "", reprise.Unavailable(err)
	}
	defer out.Body.Close()
	if out.ContentLength != nil && *out.ContentLength != from.Size {
		return "", reprise.Permanent(wrongSize(from, *out.ContentLength))
	}
	var body strings.Builder
	if out.ContentLength != nil {
		body.Grow(int(from.Size))
	}
	n, err := io.Copy(&body, io.LimitReader(out.Body, from.Size+1)) // one more than there should be
	switch {
	case err != nil:
		return "", reprise.Unavailable(fmt.Errorf("fetching %q: after %d of %d bytes: %w", from, n, from.Size, err))
	case n > from.Size:
		return "", reprise.Permanent(wrongSize(from, n))
	case n < from.Size:
		return "", reprise.Unavailable(fmt.Errorf("fetching %q: after %d of %d bytes: %w", from, n, from.Size, io.ErrUnexpectedEOF))
	}
	return body.String(), nil
}

func wrongSize(from Pointer, got int64) error {
	return fmt.Errorf("fetching %q: the message says that it has %d bytes, and it has %d or more: it is not what was sent", from, from.Size, got)
}

// lost says that S3 has answered, and has the object not, or not at hand: it was
// removed, or has been archived by somebody's lifecycle rule.
func lost(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && (api.ErrorCode() == "NoSuchKey" || api.ErrorCode() == "InvalidObjectState")
}
