// Package digest builds the text over which SQS defines the MD5 of message
// attributes. Server and consumer share it: the server sends digests, the consumer compares
// received messages with them before it sends copies.
//
// For each attribute, in ascending order of the names, the text has the name, the data type with its label, one byte
// that distinguishes a string from bytes, and the value, each except the byte after its length:
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html#sqs-attributes-md5-message-digest-calculation
package digest

import (
	"encoding/binary"
	"strings"
)

const (
	stringValue byte = 1
	binaryValue byte = 2
)

// IsBinary reports whether an attribute of the data type has a binary value. The type may have a
// label: Binary.png.
func IsBinary(dataType string) bool {
	base, _, _ := strings.Cut(dataType, ".")
	return base == "Binary"
}

// AppendString appends the text of a String or Number attribute to dst.
func AppendString(dst []byte, name, dataType, value string) []byte {
	dst = append(appendHead(dst, name, dataType), stringValue)
	return appendSized(dst, value)
}

// AppendBinary appends the text of a Binary attribute to dst.
func AppendBinary(dst []byte, name, dataType string, value []byte) []byte {
	dst = append(appendHead(dst, name, dataType), binaryValue)
	return appendSized(dst, value)
}

func appendHead(dst []byte, name, dataType string) []byte {
	return appendSized(appendSized(dst, name), dataType)
}

func appendSized[T string | []byte](dst []byte, value T) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(value)))
	return append(dst, value...)
}
