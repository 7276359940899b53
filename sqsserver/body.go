package sqsserver

import "github.com/reprise-sqs/reprise/internal/awsjson"

// body is a message's body as the server keeps it. A body that came in JSON with escapes is
// kept with them: almost all receives return JSON again, and escaping a body that is JSON
// itself would cost more than the rest of the receive.
type body struct {
	text   string
	quoted bool // text is what stood between the quotes of a JSON string
}

// plain returns the body without JSON escapes.
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

// sentBody is a body with its size, its digest and whether it is valid, which a send needs.
type sentBody struct {
	body
	size  int // of the plain text, in bytes
	md5   MD5 // of the plain text
	valid bool
}

// examine returns the size, the digest and the validity of a body, without its text.
func examine(plain []byte) sentBody {
	return sentBody{size: len(plain), md5: digestBody(plain), valid: validBytes(plain)}
}
