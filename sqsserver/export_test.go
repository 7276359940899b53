package sqsserver

// DecodeJSON and AppendJSON let the conformance suite, which is written in the
// JSON of the wire, call the typed methods.

func DecodeJSON(body []byte, in any) error { return decodeJSON(body, in.(jsonInput)) }

func AppendJSON(dst []byte, out any) []byte {
	if out, ok := out.(*ReceiveMessageOutput); ok {
		return receivedOf(out.Messages).appendJSON(dst)
	}
	return out.(jsonOutput).appendJSON(dst)
}

// OlderRecord is the value of a key of a journal as the version before would have written it.
func OlderRecord(key, value string) string {
	switch kind := key[0]; kind {
	case versionKey:
		return string([]byte{previousVersion})
	case bodyKey:
		c, err := decodeContent([]byte(value))
		if err != nil {
			panic(err)
		}
		text := c.body.plain()
		c.body = body{}
		older := appendContent(nil, c)
		older = appendText(older[:len(older)-2], text) // instead of the flag and the empty text
		older[0] = previousVersion
		return string(older)
	default:
		return string([]byte{previousVersion}) + value[1:]
	}
}
