package envelope

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// CloudEvents is the [Decoder] of CloudEvents 1.0 in their [JSON format], of which
// 1.0.2 is the latest text. The body inside is the data: unchanged if its content type is JSON, or
// not given; otherwise the text of the data, or the decoded bytes of data_base64. Without data it
// is empty. An object with a specversion counts as a CloudEvent; batches of events do not, and pass
// unchanged.
//
// [JSON format]: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md
func CloudEvents(body string) (*Envelope, error) {
	o, ok := parse(body, "specversion")
	if !ok {
		return nil, nil
	}
	if version := o.required("specversion"); version != "1.0" {
		o.fail(`"specversion" is %q, and only "1.0" can be opened`, version)
	}
	e := &Envelope{
		Kind:    "cloudevents",
		ID:      o.required("id"),
		Source:  o.required("source"),
		Type:    o.required("type"),
		Subject: o.text("subject"),
		Time:    o.time("time"),
		Body:    cloudData(o),
	}
	if o.err != nil {
		return nil, fmt.Errorf("CloudEvent: %w", o.err)
	}
	return e, nil
}

// cloudData returns the event's payload: section 3.1.2 of the format.
func cloudData(o *object) string {
	data, hasData := o.members["data"] // here null is a value
	_, hasBytes := o.raw("data_base64")
	switch {
	case hasData && hasBytes:
		o.fail(`it has both "data" and "data_base64"`)
	case hasBytes:
		encoded := o.text("data_base64")
		decoded, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			o.fail(`"data_base64" is not base64: %w`, err)
		}
		return string(decoded)
	case hasData && !isJSON(o.text("datacontenttype")):
		return o.text("data")
	}
	return data
}

// isJSON reports whether a content type declares JSON: an absent one does.
func isJSON(contentType string) bool {
	media, _, _ := strings.Cut(strings.ToLower(contentType), ";")
	media = strings.TrimSpace(media)
	return media == "" || strings.HasSuffix(media, "/json") || strings.HasSuffix(media, "+json")
}
