package sqsserver

import "github.com/reprise-sqs/reprise/internal/awsjson"

// body is a message's body as the server keeps it. One that came in JSON with
// escapes stays as it came: almost everybody who receives it wants it in JSON
// again, and to escape a body that is JSON itself would cost more than the rest of
// the receive.
type body struct {
	text   string
	quoted bool // text is what stood between the quotes of a JSON string
}

// plain returns the body as its sender means it.
func (b body) plain() string {
	if !b.quoted {
		return b.text
	}
	return awsjson.Unescape(b.text)
}

// appendJSON appends the body as a JSON string.
func (b body) appendJSON(dst []byte) []byte {
	if !b.quoted {
		return awsjson.AppendText(dst, b.text)
	}
	dst = append(dst, '"')
	dst = append(dst, b.text...)
	return append(dst, '"')
}

// sentBody is a body with what a send must know of it.
type sentBody struct {
	body
	size  int // of the plain text, in bytes
	md5   MD5 // of the plain text
	valid bool
}

// examine finds out what there is to know of a body beside its text.
func examine(plain []byte) sentBody {
	return sentBody{size: len(plain), md5: digestBody(plain), valid: validBytes(plain)}
}
