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
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/reprise-sqs/reprise"
)

// Fetch is middleware: it passes the payload to next as the message's body. The handler does not
// see the attribute that marks the pointer; [From] returns the location of the body. A message that
// contains its body passes unchanged, at no cost.
//
// Middleware outside of Fetch sees the message as received, with the pointer. Copies and dead letters
// also have the pointer, so their payload can still be fetched.
//
// A message is dead-lettered with the reason if its pointer is malformed or leads outside of the
// locations in Config, and if the object does not exist, is archived, is larger than Config.MaxSize
// or has another size than the message says.
//
// Any other 4xx of S3 about one object, such as AccessDenied or InvalidURI, is an ordinary error:
// the message is retried, and dead-lettered with S3's answer when its attempts are used up. A
// forged pointer can provoke such an answer, so it must not stop other messages. Therefore a lost
// permission shows as retries and dead letters. For a missing object S3 answers "access denied"
// unless the consumer has s3:ListBucket: grant it.
//
// A failure that would be the same for every object counts as [reprise.Unavailable], so that the
// consumer's breaker opens when nearly all requests fail this way: failed connections, timeouts,
// throttling, 5xx, credentials that are expired or invalid, and a bucket that does not exist.
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
		whole := *m // outer middleware sees the message too, so it must not be changed
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

// get reads an object. Its error decides what happens to the message.
func (p *Payloads) get(ctx context.Context, from Pointer) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	if from.Size > int64(p.cfg.MaxSize) {
		return "", reprise.Permanent(fmt.Errorf("fetching %q: its %d bytes are more than Config.MaxSize, %d", from, from.Size, p.cfg.MaxSize))
	}
	out, err := p.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &from.Bucket, Key: &from.Key})
	if err != nil {
		err = fmt.Errorf("fetching %q: %w", from, err)
		switch {
		case lost(err):
			return "", reprise.Permanent(err)
		case refused(err):
			return "", err
		}
		return "", reprise.Unavailable(err)
	}
	defer out.Body.Close()
	if out.ContentLength != nil && *out.ContentLength != from.Size {
		return "", reprise.Permanent(wrongSize(from, fmt.Sprint(*out.ContentLength)))
	}
	var body strings.Builder
	if out.ContentLength != nil {
		body.Grow(int(from.Size))
	}
	n, err := io.Copy(&body, io.LimitReader(out.Body, from.Size+1)) // one byte more than expected
	switch {
	case err != nil:
		return "", reprise.Unavailable(fmt.Errorf("fetching %q: after %d of %d bytes: %w", from, n, from.Size, err))
	case n > from.Size:
		return "", reprise.Permanent(wrongSize(from, "more"))
	case n < from.Size:
		return "", reprise.Unavailable(fmt.Errorf("fetching %q: after %d of %d bytes: %w", from, n, from.Size, io.ErrUnexpectedEOF))
	}
	return body.String(), nil
}

func wrongSize(from Pointer, got string) error {
	return fmt.Errorf("fetching %q: the message declares %d bytes, and the object has %s: it is not the object that was sent with the message", from, from.Size, got)
}

// lost reports whether S3 has answered that the object does not exist, because it was removed, or
// that it is archived, by a lifecycle rule.
func lost(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && (api.ErrorCode() == "NoSuchKey" || api.ErrorCode() == "InvalidObjectState")
}

// refused reports whether S3 has answered that it does not serve this one object. A forged pointer
// can provoke that, so unknown codes count too.
func refused(err error) bool {
	if reprise.IsUnavailable(err) || concernsAll(err) {
		return false
	}
	if reply, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		return reply.HTTPStatusCode()/100 == 4
	}
	api, ok := errors.AsType[smithy.APIError](err) // from a Client other than the SDK's
	return ok && api.ErrorFault() == smithy.FaultClient
}

// concernsAll reports whether a 4xx is about the bucket, the account, the credentials, the clock or
// a quota. A pointer cannot influence these.
func concernsAll(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return false
	}
	switch api.ErrorCode() {
	case "NoSuchBucket", "InvalidBucketName", "AuthorizationHeaderMalformed", // the last: another region's bucket
		"AllAccessDisabled", "AccountProblem", "NotSignedUp", "InvalidPayer",
		"ExpiredToken", "ExpiredTokenException", "InvalidToken", "TokenRefreshRequired",
		"InvalidAccessKeyId", "InvalidClientTokenId", "UnrecognizedClientException", "InvalidSecurity",
		"SignatureDoesNotMatch", "IncompleteSignature", "RequestTimeTooSkewed", "RequestExpired",
		"KMS.ThrottlingException":
		return true
	}
	return false
}
