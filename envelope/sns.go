package envelope

import (
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// SNS is the [Decoder] of [SNS notifications], which a queue gets from a topic
// without raw message delivery. The ID is the MessageId, the Source the topic's ARN,
// and the message attributes become those of the message. Signatures are not
// checked.
//
// A topic's request to confirm a subscription is not work for the handler: it is dead-lettered with
// the reason.
//
// [SNS notifications]: https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html
func SNS(body string) (*Envelope, error) {
	o, ok := parse(body, "Type", "TopicArn")
	if !ok {
		return nil, nil
	}
	kind := o.text("Type")
	switch kind {
	case "Notification":
	case "SubscriptionConfirmation", "UnsubscribeConfirmation":
		return nil, fmt.Errorf("the message is a %s of topic %.200q: confirm the subscription with its Token, or by its SubscribeURL", kind, o.text("TopicArn"))
	default:
		return nil, nil
	}
	e := &Envelope{
		Kind:       "sns",
		ID:         o.required("MessageId"),
		Source:     o.required("TopicArn"),
		Type:       kind,
		Subject:    o.text("Subject"),
		Time:       o.time("Timestamp"),
		Attributes: snsAttributes(o),
		Body:       o.required("Message"),
	}
	if o.err != nil {
		return nil, fmt.Errorf("SNS notification: %w", o.err)
	}
	return e, nil
}

// snsAttributes returns the MessageAttributes in SQS's form.
func snsAttributes(o *object) map[string]types.MessageAttributeValue {
	raw, ok := o.raw("MessageAttributes")
	if !ok {
		return nil
	}
	if raw[0] != '{' {
		o.fail(`"MessageAttributes" is not an object`)
		return nil
	}
	attributes := make(map[string]types.MessageAttributeValue)
	for name, value := range members(raw) {
		a, err := snsAttribute(value)
		if err != nil {
			o.fail("message attribute %q: %w", name, err)
		}
		attributes[name] = a
	}
	return attributes
}

// snsAttribute reads {"Type": ..., "Value": ...}.
func snsAttribute(object string) (a types.MessageAttributeValue, err error) {
	var kind, value string
	complete := object[0] == '{'
	if complete {
		var hasKind, hasValue bool
		for name, raw := range members(object) {
			switch name {
			case "Type":
				kind, hasKind = unquote(raw)
			case "Value":
				value, hasValue = unquote(raw)
			}
		}
		complete = hasKind && hasValue
	}
	if !complete {
		return a, errors.New("its Type and Value must be strings")
	}
	a.DataType = &kind
	if kind != "Binary" {
		a.StringValue = &value
		return a, nil
	}
	if a.BinaryValue, err = base64.StdEncoding.DecodeString(value); err != nil {
		return a, fmt.Errorf("it is not base64: %w", err)
	}
	return a, nil
}
