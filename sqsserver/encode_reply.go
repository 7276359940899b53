package sqsserver

import (
	"net/http"
	"strconv"
)

// The content types of replies, and of requests in JSON.
const (
	contentType    = "application/x-amz-json-1.0"
	contentTypeXML = "text/xml"

	contentTypeQueryJSON = "application/json"
)

// writeReply writes a reply of status 200. In JSON the reply of an action without an output has no
// body.
func (c *call) writeReply(w http.ResponseWriter) error {
	return c.write(w, http.StatusOK, c.reply)
}

// writeError writes e as a reply.
func (c *call) writeError(w http.ResponseWriter, e *Error) error {
	body := make([]byte, 0, 512)
	switch {
	case c.query && c.queryJSON && e.Code != codeNoAction:
		body = appendQueryJSON(body, e.queryJSON(c.requestID))
	case c.query:
		body = e.appendXML(body, c.requestID)
		c.queryJSON = false
	default:
		fault := ";Sender"
		if !e.SenderFault() {
			fault = ";Receiver"
		}
		w.Header()["X-Amzn-Query-Error"] = []string{e.Code + fault}
		body = e.appendJSON(body)
	}
	if c.seen != nil {
		c.seen.Code = e.Code
	}
	return c.write(w, e.HTTPStatus(), body)
}

// headerCancelledReceive tells clients that they may cancel a ReceiveMessage at any time:
// its messages become visible again, where SQS leaves them in flight. So a consumer that stops need
// not wait for its long poll. The replies of the actions that a consumer calls before it stops have
// the header.
const headerCancelledReceive = "Reprise-Cancelled-Receive"

var messagesReturned = []string{"returned"}

func (c *call) write(w http.ResponseWriter, status int, body []byte) error {
	header := w.Header()
	switch {
	case c.queryJSON:
		header["Content-Type"] = []string{contentTypeQueryJSON}
	case c.query:
		header["Content-Type"] = []string{contentTypeXML}
	default:
		header["Content-Type"] = []string{contentType}
	}
	header["Content-Length"] = []string{strconv.Itoa(len(body))}
	header["X-Amzn-Requestid"] = []string{c.requestID}
	if (c.action == actionReceiveMessage || c.action == actionGetQueueAttributes) && !c.server.config.KeepUnwritten {
		header[headerCancelledReceive] = messagesReturned
	}
	if c.seen != nil {
		c.seen.Status, c.seen.BytesOut = status, len(body)
	}
	c.replied = true
	w.WriteHeader(status)
	_, err := w.Write(body)
	return err
}

func (e *Error) appendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	dst = appendTextMember(dst, `"__type":`, e.Type())
	dst = appendTextMember(dst, `"message":`, e.Message) // lower case, as all errors of JSON 1.0 have it
	return append(dst, '}')
}
