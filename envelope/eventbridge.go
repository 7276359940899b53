package envelope

import (
	"fmt"
	"strings"
)

// EventBridge is the [Decoder] of [EventBridge events]. The body inside is the
// detail, a JSON object. An event that a rule's input transformer has changed is no
// longer one, and passes unchanged.
//
// [EventBridge events]: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-events-structure.html
func EventBridge(body string) (*Envelope, error) {
	o, ok := parse(body, "detail-type", "source")
	if !ok {
		return nil, nil
	}
	detail, _ := o.raw("detail")
	if !strings.HasPrefix(detail, "{") {
		o.fail(`"detail" is missing or not an object`)
	}
	e := &Envelope{
		Kind:   "eventbridge",
		ID:     o.required("id"),
		Source: o.required("source"),
		Type:   o.required("detail-type"),
		Time:   o.time("time"),
		Body:   detail,
	}
	if o.err != nil {
		return nil, fmt.Errorf("EventBridge event: %w", o.err)
	}
	return e, nil
}
