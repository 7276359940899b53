// Package digest builds the text over which SQS defines the MD5 of message
// attributes. Server and consumer share it: the one sends digests, the other
// holds what it received against them before it sends it on.
//
// For each attribute, in ascending order of the names, the text has the name, the
// data type with its label, one byte that tells a string from bytes, and the
// value, each but the byte behind its length:
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

// IsBinary tells by an attribute's data type which of its two values it has. The
// type may carry a label: Binary.png.
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
