package replies

import (
	"errors"
	"sync"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/internal/awsjson"
)

// parse reads the messages of a reply, nil if it has none. It refuses replies that the SDK may read
// in another way: texts that are not UTF-8, nulls, lists of values.
func parse(reply []byte) (messages []types.Message, ok bool) {
	r := readers.Get().(*awsjson.Reader)
	defer func() {
		r.Reset(nil)
		readers.Put(r)
	}()
	r.Reset(reply)
	for name := range r.Members() {
		switch string(name) {
		case "Messages":
			messages = parseMessages(r)
		default:
			r.Skip()
		}
	}
	r.End()
	return messages, r.Err() == nil && r.Nulls() == 0
}

var readers = sync.Pool{New: func() any { return new(awsjson.Reader) }}

var (
	errNotUTF8 = errors.New("a text is not UTF-8")
	errList    = errors.New("an attribute has a list of values")
)

// usual is how many messages a reply has at most.
const usual = 10

// texts is the memory to which most fields of a message point. The receipt handle is separate: a
// message that is hidden for hours needs only its handle, which should not keep ten bodies in
// memory.
type texts struct{ id, body, bodyMD5, attributesMD5 string }

func parseMessages(r *awsjson.Reader) []types.Message {
	messages := make([]types.Message, 0, usual)
	var all []texts
	for i := range r.Elements() {
		if i%usual == 0 {
			all = make([]texts, usual)
		}
		messages = append(messages, types.Message{})
		parseMessage(r, &messages[i], &all[i%usual])
	}
	return messages
}

func parseMessage(r *awsjson.Reader, m *types.Message, t *texts) {
	for name := range r.Members() {
		switch string(name) {
		case "MessageId":
			m.MessageId = keep(&t.id, r)
		case "ReceiptHandle":
			m.ReceiptHandle = keep(new(string), r)
		case "Body":
			m.Body = keep(&t.body, r)
		case "MD5OfBody":
			m.MD5OfBody = keep(&t.bodyMD5, r)
		case "MD5OfMessageAttributes":
			m.MD5OfMessageAttributes = keep(&t.attributesMD5, r)
		case "Attributes":
			m.Attributes = parseSystemAttributes(r)
		case "MessageAttributes":
			m.MessageAttributes = parseAttributes(r)
		default:
			r.Skip()
		}
	}
}

func keep(to *string, r *awsjson.Reader) *string {
	*to = text(r)
	return to
}

func text(r *awsjson.Reader) string {
	b, quoted := r.Bytes()
	if len(b) == len(quoted) { // it has no escapes, and is UTF-8
		return string(b)
	}
	return checked(r, b)
}

// checked returns a text of the reply if it is UTF-8. A text with half of a surrogate pair, which
// the SDK replaces, is not.
func checked(r *awsjson.Reader, b []byte) string {
	if !utf8.Valid(b) {
		r.Fail(errNotUTF8)
	}
	return string(b)
}

func parseSystemAttributes(r *awsjson.Reader) map[string]string {
	attributes := map[string]string{}
	for name := range r.Members() {
		key, ok := names[string(name)]
		if !ok {
			key = checked(r, name)
		}
		attributes[key] = text(r)
	}
	return attributes
}

// names saves an allocation for each attribute of each message.
var names = func() map[string]string {
	names := map[string]string{}
	for _, name := range types.MessageSystemAttributeName("").Values() {
		names[string(name)] = string(name)
	}
	return names
}()

func parseAttributes(r *awsjson.Reader) map[string]types.MessageAttributeValue {
	attributes := map[string]types.MessageAttributeValue{}
	for name := range r.Members() {
		key := checked(r, name)
		attributes[key] = parseAttribute(r)
	}
	return attributes
}

func parseAttribute(r *awsjson.Reader) (a types.MessageAttributeValue) {
	for name := range r.Members() {
		switch string(name) {
		case "DataType":
			a.DataType = keep(new(string), r)
		case "StringValue":
			a.StringValue = keep(new(string), r)
		case "BinaryValue":
			if a.BinaryValue = r.Blob(); a.BinaryValue == nil {
				a.BinaryValue = []byte{} // as the SDK returns it
			}
		case "BinaryListValues", "StringListValues":
			r.Fail(errList) // SQS has none yet
		default:
			r.Skip()
		}
	}
	return a
}
