package sqsserver

import (
	"net/http"
	"strconv"
)

// contentType is that of requests and replies of AWS's JSON 1.0 protocol.
const contentType = "application/x-amz-json-1.0"

// writeReply writes a reply of status 200. The body of an action that answers
// nothing is empty.
func writeReply(w http.ResponseWriter, requestID UUID, body []byte) error {
	writeHeader(w, requestID, http.StatusOK, len(body))
	_, err := w.Write(body)
	return err
}

// writeError writes e as a reply.
func writeError(w http.ResponseWriter, requestID UUID, e *Error) error {
	fault := ";Sender"
	if !e.SenderFault() {
		fault = ";Receiver"
	}
	w.Header()["X-Amzn-Query-Error"] = []string{e.Code + fault}
	body := e.appendJSON(make([]byte, 0, 256))
	writeHeader(w, requestID, e.HTTPStatus(), len(body))
	_, err := w.Write(body)
	return err
}

func (e *Error) appendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	dst = appendTextMember(dst, `"__type":`, e.Type())
	dst = appendTextMember(dst, `"message":`, e.Message) // lower case, as all errors of JSON 1.0 have it
	return append(dst, '}')
}

func writeHeader(w http.ResponseWriter, requestID UUID, status, length int) {
	header := w.Header()
	header["Content-Type"] = []string{contentType}
	header["Content-Length"] = []string{strconv.Itoa(length)}
	header["X-Amzn-Requestid"] = []string{requestID.String()}
	w.WriteHeader(status)
}
