package s3payload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// The names of AWS's libraries. Either attribute marks a message as a pointer, with either class:
// the Java library by default writes the current class with the older attribute.
const (
	// SizeAttribute is the message attribute that marks a message as a pointer to its payload; its
	// value is the payload's size in bytes.
	SizeAttribute = "ExtendedPayloadSize"
	// LegacySizeAttribute is its older name, which is read but not written.
	LegacySizeAttribute = "SQSLargePayloadSize"

	pointerClass       = "software.amazon.payloadoffloading.PayloadS3Pointer"
	legacyPointerClass = "com.amazon.sqs.javamessaging.MessageS3Pointer"
)

// Pointer is the location and the size of a payload.
type Pointer struct {
	Bucket, Key string
	// Size is the payload's size in bytes, as the message says.
	Size int64
}

// String names the object as URLs of the form s3://bucket/key do.
func (p Pointer) String() string { return "s3://" + p.Bucket + "/" + p.Key }

type contextKey struct{}

// From returns the pointer to the payload that [Payloads.Fetch] has fetched for the handler that
// runs with ctx; ok is false if the message contained its body.
func From(ctx context.Context) (p Pointer, ok bool) {
	p, ok = ctx.Value(contextKey{}).(Pointer)
	return p, ok
}

// offloaded returns the attribute that marks the body of a message as a pointer.
func offloaded(attributes map[string]types.MessageAttributeValue) (size types.MessageAttributeValue, ok bool) {
	if size, ok = attributes[SizeAttribute]; !ok {
		size, ok = attributes[LegacySizeAttribute]
	}
	return size, ok
}

// object is the second half of a pointer's JSON.
type object struct {
	Bucket string `json:"s3BucketName"`
	Key    string `json:"s3Key"`
}

// encode returns the pointer as a body. It has no spaces, as the Java library writes it.
func (p Pointer) encode() string {
	text, _ := json.Marshal([]any{pointerClass, object{p.Bucket, p.Key}}) // strings cannot fail
	return string(text)
}

// decode reads the pointer of a marked message.
func decode(body string, size types.MessageAttributeValue) (Pointer, error) {
	var class string
	var o object
	switch err := unmarshal(body, &class, &o); {
	case err != nil:
		return Pointer{}, fmt.Errorf("the body is not a pointer to an object, %s: %w", `["class",{"s3BucketName":"…","s3Key":"…"}]`, err)
	case class != pointerClass && class != legacyPointerClass:
		return Pointer{}, fmt.Errorf("the body is a pointer of the unknown class %.100q", class)
	case o.Bucket == "" || o.Key == "":
		return Pointer{}, errors.New("the body is a pointer without s3BucketName or s3Key")
	}
	n, err := strconv.ParseInt(aws.ToString(size.StringValue), 10, 64)
	if err != nil || n < 0 {
		return Pointer{}, fmt.Errorf("the attribute that holds the payload's size is %.100q: want a number of bytes", aws.ToString(size.StringValue))
	}
	return Pointer{Bucket: o.Bucket, Key: o.Key, Size: n}, nil
}

// unmarshal reads a JSON array of exactly these values.
func unmarshal(text string, values ...any) error {
	var parts []json.RawMessage
	if err := json.Unmarshal([]byte(text), &parts); err != nil {
		return err
	}
	if len(parts) != len(values) {
		return fmt.Errorf("an array of %d", len(parts))
	}
	for i, part := range parts {
		if err := json.Unmarshal(part, values[i]); err != nil {
			return err
		}
	}
	return nil
}

// permit returns why p must not be followed, or nil: anybody who may send to the queue can have
// written it.
func (c *Config) permit(p Pointer) error {
	switch {
	case !slices.ContainsFunc(c.Allow, func(l Location) bool { return l.has(p) }):
		return fmt.Errorf("the pointer names %.200q, which Config does not permit: if payloads are kept there, add the place to Config.Allow", p)
	case len(p.Key) > maxKey:
		return fmt.Errorf("the pointer's key has %d bytes, more than S3's limit of %d", len(p.Key), maxKey)
	case climbs(p.Key):
		return fmt.Errorf("the pointer's key %.200q contains . or .. between slashes, which some servers resolve to a place outside the permitted prefix", p.Key)
	}
	return nil
}

// has reports whether an object is at l. A prefix without a slash at its end is no beginning of another folder's name: below
// orders is orders/x, not orders-payroll/x. Libraries write payloads right behind the prefix, under a UUID alone.
func (l Location) has(p Pointer) bool {
	rest, below := strings.CutPrefix(p.Key, l.Prefix)
	switch {
	case p.Bucket != l.Bucket || !below:
		return false
	case l.Prefix == "" || strings.HasSuffix(l.Prefix, "/") || strings.HasPrefix(rest, "/"):
		return true
	}
	return len(rest) == uuidLength && endsInUUID(rest)
}

// climbs reports whether key, as a path, has a part "." or "..".
func climbs(key string) bool {
	for part := range strings.SplitSeq(key, "/") {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}

// The Java and the Python library give their users receipt handles with the pointer
// in front.
const (
	bucketMarker = "-..s3BucketName..-"
	keyMarker    = "-..s3Key..-"
)

// SplitHandle splits a receipt handle that AWS's library for Java or Python has issued for a
// message whose payload is in S3 into the receipt handle of SQS and the pointer, whose Size is 0.
// Any other handle is returned unchanged, and ok is false. Handles that reprise uses are SQS's own.
func SplitHandle(handle string) (original string, p Pointer, ok bool) {
	rest, marked := strings.CutPrefix(handle, bucketMarker)
	bucket, rest, closed := strings.Cut(rest, bucketMarker)
	rest, keyMarked := strings.CutPrefix(rest, keyMarker)
	key, original, keyClosed := strings.Cut(rest, keyMarker)
	if !marked || !closed || !keyMarked || !keyClosed {
		return handle, Pointer{}, false
	}
	return original, Pointer{Bucket: bucket, Key: key}, true
}
