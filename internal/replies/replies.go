// Package replies reads SQS's replies to receives in place of the SDK: a consumer with small
// handlers spends most of its time on that, and this package takes half of the time, and less
// memory. The SDK reads all other replies, errors, and replies that this package does not
// understand, so that the result is always that of the SDK.
package replies

import (
	"bytes"
	"context"
	"io"
	"sync"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/aws/smithy-go/transport/http/protocol/awsjson"
)

// Read is an option of a call of ReceiveMessage: this package reads its reply. It does nothing for
// a client whose protocol is not the SDK's own.
func Read(o *sqs.Options) {
	if sdk, ok := o.Protocol.(*awsjson.Protocol); ok {
		o.Protocol = reader{sdk}
	}
}

// reader is the SDK's protocol except for the replies of receives.
type reader struct{ smithyhttp.ClientProtocol }

// ReturnsCancelled reports whether the endpoint of a reply makes the messages of a cancelled
// receive visible again, as package sqsserver does and announces in a header. SQS leaves them in
// flight until their visibility timeout ends, and so may any endpoint without the header.
func ReturnsCancelled(reply middleware.Metadata) bool {
	r, ok := awsmiddleware.GetRawResponse(reply).(*smithyhttp.Response)
	return ok && r.Header.Get("Reprise-Cancelled-Receive") == "returned"
}

// maxKept limits the size of buffers that are kept for reuse: ten messages of 16 KiB.
const maxKept = 256 << 10

var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

func (r reader) DeserializeResponse(ctx context.Context, schema *smithy.OperationSchema, types *smithy.TypeRegistry, resp *smithyhttp.Response, out smithy.Deserializable) error {
	received, ok := out.(*sqs.ReceiveMessageOutput)
	if !ok || resp.StatusCode < 200 || resp.StatusCode > 299 {
		return r.ClientProtocol.DeserializeResponse(ctx, schema, types, resp, out)
	}
	buffer := buffers.Get().(*bytes.Buffer)
	defer func() {
		if buffer.Cap() <= maxKept {
			buffer.Reset()
			buffers.Put(buffer)
		}
	}()
	if n := resp.ContentLength; 0 < n && n < maxKept {
		buffer.Grow(int(n) + bytes.MinRead) // ReadFrom needs this much free space
	}
	_, err := buffer.ReadFrom(resp.Body)
	if err == nil {
		if messages, ok := parse(buffer.Bytes()); ok {
			received.Messages = messages
			return nil
		}
	}
	resp.Body = replayed{io.MultiReader(bytes.NewReader(buffer.Bytes()), failed{err}), resp.Body}
	return r.ClientProtocol.DeserializeResponse(ctx, schema, types, resp, out)
}

// replayed is the body of a reply, to be read a second time.
type replayed struct {
	io.Reader
	io.Closer // the connection's
}

// failed is the error at the end of a reply's body.
type failed struct{ err error }

func (f failed) Read([]byte) (int, error) {
	if f.err == nil {
		return 0, io.EOF
	}
	return 0, f.err
}
