package mapping

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// record is a message of an event, with the members of Lambda's and in their order. See
// https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html#example-standard-queue-message-event.
type record struct {
	MessageID         string               `json:"messageId"`
	ReceiptHandle     string               `json:"receiptHandle"`
	Body              string               `json:"body"`
	Attributes        map[string]string    `json:"attributes"`
	MessageAttributes map[string]attribute `json:"messageAttributes"`
	// MD5OfMessageAttributes of a message without attributes is null if the mapping has a batch
	// window, which batches of more than ten need, and absent otherwise.
	MD5OfMessageAttributes json.RawMessage `json:"md5OfMessageAttributes,omitempty"`
	MD5OfBody              string          `json:"md5OfBody"`
	EventSource            string          `json:"eventSource"`
	EventSourceARN         string          `json:"eventSourceARN"`
	AWSRegion              string          `json:"awsRegion"`
}

// attribute is a message attribute. Its lists are always empty: SQS has reserved them.
type attribute struct {
	StringValue      *string  `json:"stringValue,omitempty"`
	BinaryValue      []byte   `json:"binaryValue,omitempty"`
	StringListValues []string `json:"stringListValues"`
	BinaryListValues [][]byte `json:"binaryListValues"`
	DataType         string   `json:"dataType"`
}

const (
	eventHead  = `{"Records":[`
	eventTail  = `]}`
	eventFrame = len(eventHead) + len(eventTail)
)

// event is the payload of an invoke.
func event(messages []message) []byte {
	size := eventFrame
	for i := range messages {
		size += len(messages[i].record) + len(",")
	}
	text := append(make([]byte, 0, size), eventHead...)
	for i := range messages {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, messages[i].record...)
	}
	return append(text, eventTail...)
}

// record returns the record of a message.
func (m *Mapping) record(received *sqsserver.Message) []byte {
	r := record{
		MessageID:         received.MessageId.String(),
		ReceiptHandle:     received.ReceiptHandle,
		Body:              received.Body,
		Attributes:        make(map[string]string),
		MD5OfBody:         received.MD5OfBody.String(),
		MessageAttributes: make(map[string]attribute, len(received.MessageAttributes)),
		EventSource:       "aws:sqs",
		EventSourceARN:    m.cfg.Queue,
		AWSRegion:         strings.Split(m.cfg.Queue, ":")[3],
	}
	for name, value := range received.Attributes.All() {
		r.Attributes[name] = value
	}
	for i := range received.MessageAttributes {
		a := &received.MessageAttributes[i]
		r.MessageAttributes[a.Name] = attributeOf(a)
	}
	switch {
	case len(received.MessageAttributes) > 0:
		r.MD5OfMessageAttributes = json.RawMessage(`"` + received.MD5OfMessageAttributes.String() + `"`)
	case m.cfg.Window > 0:
		r.MD5OfMessageAttributes = json.RawMessage("null")
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false) // escapes of six bytes would fill an event
	if err := encoder.Encode(&r); err != nil {
		panic(err) // strings, bytes and maps of them
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}

func attributeOf(a *sqsserver.MessageAttribute) attribute {
	value := attribute{StringListValues: []string{}, BinaryListValues: [][]byte{}, DataType: a.DataType}
	if kind, _, _ := strings.Cut(a.DataType, "."); kind == "Binary" {
		value.BinaryValue = a.BinaryValue
	} else {
		value.StringValue = &a.StringValue
	}
	return value
}
