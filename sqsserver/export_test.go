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
