package repriselambda

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Event is the payload with which an SQS event source mapping invokes a function. See
// https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html.
//
// JSON without Records, such as a test event of the Lambda console, is an error: no message would be
// handled, and the caller would take that for a success. An empty list of Records is an event with
// nothing to do.
type Event struct {
	Records []Record `json:"Records"`
}

// UnmarshalJSON reads an event. The error about other JSON names its members, which tell where it is
// from, and none of their values, which may be secret.
func (e *Event) UnmarshalJSON(text []byte) error {
	type event Event // without this method
	if len(text) > 0 && text[0] == '{' {
		if err := json.Unmarshal(text, (*event)(e)); err != nil {
			return fmt.Errorf("repriselambda: reading the event of an SQS event source mapping: %w", err)
		}
	}
	if e.Records == nil {
		return fmt.Errorf("%w; this one is %s", errNoRecords, describe(text))
	}
	return nil
}

var errNoRecords = errors.New(`repriselambda: the event has no Records: invoke the function by an SQS event source mapping, or test it with {"Records":[...]}, the console's template sqs`)

// describe returns the kind of a JSON value and, if it is an object, the names of its members.
func describe(text []byte) string {
	const (
		most    = 8  // names
		longest = 40 // bytes of a name
	)
	var first byte
	if len(text) > 0 {
		first = text[0]
	}
	switch first {
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 'n':
		return "null"
	case 't', 'f':
		return "true or false"
	case '{':
	default:
		return "a number"
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil || len(members) == 0 {
		return "an object without members"
	}
	names := slices.Sorted(maps.Keys(members))
	shown := names[:min(most, len(names))]
	for i, name := range shown {
		if len(name) > longest {
			name = strings.ToValidUTF8(name[:longest], "") + "..."
		}
		shown[i] = strconv.Quote(name)
	}
	list := strings.Join(shown, ", ")
	if more := len(names) - len(shown); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return "an object with " + list
}

// Record is one message of an [Event].
type Record struct {
	MessageID     string `json:"messageId"`
	ReceiptHandle string `json:"receiptHandle"`
	Body          string `json:"body"`
	// Attributes are the system attributes, by SQS's names.
	Attributes        map[string]string    `json:"attributes"`
	MessageAttributes map[string]Attribute `json:"messageAttributes"`
	MD5OfBody         string               `json:"md5OfBody"`
	// MD5OfMessageAttributes is empty if there are none, and null or absent if batches may have
	// more than ten messages.
	MD5OfMessageAttributes string `json:"md5OfMessageAttributes"`
	EventSourceARN         string `json:"eventSourceARN"`
}

// Attribute is a message attribute.
type Attribute struct {
	DataType    string  `json:"dataType"`
	StringValue *string `json:"stringValue,omitempty"`
	BinaryValue []byte  `json:"binaryValue,omitempty"`
}

// Response tells Lambda which messages of an event it must not delete.
type Response struct {
	// BatchItemFailures is never null. Empty: all succeeded.
	BatchItemFailures []BatchItemFailure `json:"batchItemFailures"`
}

// BatchItemFailure names a message that comes again.
type BatchItemFailure struct {
	ItemIdentifier string `json:"itemIdentifier"`
}

// response names the messages of e that have not succeeded: each once, in the order of the event.
func (e *Event) response(succeeded map[string]bool) Response {
	r := Response{BatchItemFailures: make([]BatchItemFailure, 0, len(e.Records)-len(succeeded))}
	named := make(map[string]bool)
	for i := range e.Records {
		id := e.Records[i].MessageID
		if succeeded[id] || named[id] {
			continue
		}
		named[id] = true
		r.BatchItemFailures = append(r.BatchItemFailures, BatchItemFailure{ItemIdentifier: id})
	}
	return r
}

// queueURL returns the URL of the queue that all records are from. Its error is
// about the first record that cannot be settled.
func (e *Event) queueURL() (string, error) {
	arn := e.Records[0].EventSourceARN
	for i := range e.Records {
		r := &e.Records[i]
		switch {
		case r.MessageID == "":
			return "", fmt.Errorf("record %d has no messageId: send what a mapping sends", i)
		case r.ReceiptHandle == "":
			return "", fmt.Errorf("record %d, message %s, has no receiptHandle: send what a mapping sends", i, r.MessageID)
		case r.EventSourceARN != arn:
			return "", fmt.Errorf("record %d is from %q and record 0 from %q: send the messages of one queue", i, r.EventSourceARN, arn)
		}
	}
	url, err := urlOf(arn)
	if err != nil {
		return "", fmt.Errorf("eventSourceARN %q: %w", arn, err)
	}
	return url, nil
}

// domains are the domains of partitions that do not use amazonaws.com. See
// https://docs.aws.amazon.com/general/latest/gr/sqs-service.html.
var domains = map[string]string{
	"aws-cn":    "amazonaws.com.cn",
	"aws-eusc":  "amazonaws.eu",
	"aws-iso":   "c2s.ic.gov",
	"aws-iso-b": "sc2s.sgov.gov",
}

// urlOf returns the URL of the queue with that ARN. For the SDK and SQS only its last two elements
// matter; the request goes to the client's endpoint.
func urlOf(arn string) (string, error) {
	part := strings.Split(arn, ":")
	if len(part) != 6 || part[0] != "arn" || part[2] != "sqs" || part[3] == "" || part[4] == "" || part[5] == "" || strings.ContainsAny(arn, "/?#% ") {
		return "", errors.New("it is not the ARN of a queue, arn:aws:sqs:region:account:name")
	}
	domain, ok := domains[part[1]]
	if !ok {
		domain = "amazonaws.com"
	}
	return "https://sqs." + part[3] + "." + domain + "/" + part[4] + "/" + part[5], nil
}

// message returns r as a received message, without the receipt handle.
func (r *Record) message() types.Message {
	m := types.Message{
		MessageId:              &r.MessageID,
		Body:                   &r.Body,
		Attributes:             r.Attributes,
		MD5OfBody:              &r.MD5OfBody,
		MD5OfMessageAttributes: &r.MD5OfMessageAttributes,
	}
	if len(r.MessageAttributes) > 0 {
		m.MessageAttributes = make(map[string]types.MessageAttributeValue, len(r.MessageAttributes))
	}
	for name, a := range r.MessageAttributes {
		m.MessageAttributes[name] = types.MessageAttributeValue{DataType: &a.DataType, StringValue: a.StringValue, BinaryValue: a.BinaryValue}
	}
	return m
}
