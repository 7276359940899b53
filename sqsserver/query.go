package sqsserver

import (
	"net/http"
	"strings"
)

// isQuery reports whether a request is of the Query protocol: parameters in the URL or in a
// form, a reply in XML. A request with an X-Amz-Target or with JSON is not one.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-making-api-requests-xml.html
func isQuery(r *http.Request) bool {
	return r.Header.Get("X-Amz-Target") == "" && !strings.Contains(r.Header.Get("Content-Type"), "json")
}

// acceptsJSON reports whether a request of the Query protocol asks for a reply in
// JSON, as API Gateway does.
func acceptsJSON(r *http.Request) bool {
	for _, accept := range r.Header["Accept"] {
		for media := range strings.SplitSeq(accept, ",") {
			media, _, _ = strings.Cut(media, ";")
			if strings.EqualFold(strings.TrimSpace(media), contentTypeQueryJSON) {
				return true
			}
		}
	}
	return false
}

// findQuery reads the parameters of a request, those of the body after those of the URL, and
// returns the handler of the action that they name. The path, if it is not the root, is that of a
// queue, which the action is then about unless a parameter names another.
func (c *call) findQuery(r *http.Request) (func(*call) error, error) {
	path := strings.TrimRight(r.URL.Path, "/")
	c.form = newForm(path)
	c.form.parse(bytesOf(r.URL.RawQuery))
	c.form.parse(c.request)
	if err := c.form.err(); err != nil {
		return nil, err
	}
	c.action = c.form.text("Action")
	do := actions[c.action]
	switch {
	case c.action == "":
		return nil, errNoAction()
	case do == nil, path != "" && (c.action == actionCreateQueue || c.action == actionListQueues):
		return nil, errUnknownAction(c.action)
	}
	if !onlyReads[c.action] {
		if err := checkLink(r); err != nil {
			return nil, errPageRefused(err)
		}
	}
	return do, nil
}
