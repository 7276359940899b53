package sqsserver

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/reprise-sqs/reprise/internal/digest"
	"github.com/reprise-sqs/reprise/internal/sqslimit"
)

// Limits of a message and of a batch.
const (
	maxMessageAttributes = sqslimit.Attributes
	maxAttributeName     = 256
	maxDataType          = 256
	maxIdentifier        = 128
	maxDelaySeconds      = 900
	maxTraceHeader       = 500 // SQS documents none; that of a PutEvents entry, which EventBridge passes on to SQS
	maxBatchEntries      = sqslimit.Entries
	maxBatchEntryID      = 80
	maxMessageSize       = sqslimit.Bytes // the largest MaximumMessageSize
	maxBatchSize         = sqslimit.Bytes // of a SendMessageBatch, whatever the queue's MaximumMessageSize
)

// check returns why no queue would accept a message: an invalid body, invalid attributes, a delay
// out of range, or ids with characters that are not permitted. The caller checks the rules that
// depend on the queue, such as the size. Attributes out of order are put in order.
func (e *SendMessageEntry) check() error {
	if e.bodySize() == 0 {
		return errMissingParameter("MessageBody")
	}
	if e.body.size == 0 {
		e.body = examine(bytesOf(e.MessageBody))
		e.body.text = e.MessageBody
	}
	if !e.body.valid {
		return errBodyCharacters()
	}
	if d := e.DelaySeconds.Value; d < 0 || d > maxDelaySeconds {
		return errDelaySeconds(d)
	}
	if err := checkIdentifier("MessageGroupId", e.MessageGroupId, e.emptyGroupID); err != nil {
		return err
	}
	if err := checkIdentifier("MessageDeduplicationId", e.MessageDeduplicationId, e.emptyDeduplicationID); err != nil {
		return err
	}
	e.MessageAttributes = dropUncounted(sortAttributes(e.MessageAttributes))
	e.MessageSystemAttributes = sortAttributes(e.MessageSystemAttributes)
	if err := checkMessageAttributes(e.MessageAttributes); err != nil {
		return err
	}
	return checkSystemAttributes(e.MessageSystemAttributes)
}

// size returns the bytes that count towards the size of a message: body, and names, types and
// values of its message attributes. System attributes do not count.
func (e *SendMessageEntry) size() int {
	return e.bodySize() + attributesSize(e.MessageAttributes)
}

func attributesSize(attributes []MessageAttribute) (n int) {
	for i := range attributes {
		a := &attributes[i]
		n += len(a.Name) + len(a.DataType) + a.valueSize()
	}
	return n
}

func (e *SendMessageEntry) bodySize() int { return max(e.body.size, len(e.MessageBody)) }

// isBinary reports whether the value of an attribute is binary.
func (a *MessageAttribute) isBinary() bool { return digest.IsBinary(a.DataType) }

func (a *MessageAttribute) valueSize() int {
	if a.isBinary() {
		return len(a.BinaryValue)
	}
	return len(a.StringValue)
}

// baseType returns a data type without its label.
func baseType(dataType string) string {
	base, _, _ := strings.Cut(dataType, ".")
	return base
}

// dropUncounted removes from attributes the values that do not belong to their type: they would be
// stored although they do not count towards the size. It leaves the slice given as it is.
func dropUncounted(attributes []MessageAttribute) []MessageAttribute {
	uncounted := func(a MessageAttribute) bool {
		return a.isBinary() && a.StringValue != "" || !a.isBinary() && a.BinaryValue != nil
	}
	if !slices.ContainsFunc(attributes, uncounted) {
		return attributes
	}
	attributes = slices.Clone(attributes)
	for i := range attributes {
		if a := &attributes[i]; a.isBinary() {
			a.StringValue = ""
		} else {
			a.BinaryValue = nil
		}
	}
	return attributes
}

// checkMessageAttributes checks the attributes that a sender chose.
func checkMessageAttributes(attributes []MessageAttribute) error {
	if len(attributes) > maxMessageAttributes {
		return errTooManyAttributes(len(attributes))
	}
	for i := range attributes {
		if err := attributes[i].check(); err != nil {
			return err
		}
	}
	return nil
}

func (a *MessageAttribute) check() error {
	if !validAttributeName(a.Name) {
		return errAttributeName(a.Name)
	}
	base := baseType(a.DataType)
	if base != "String" && base != "Number" && base != "Binary" || len(a.DataType) > maxDataType || !validText(a.DataType) {
		return errAttributeType(a.Name)
	}
	if a.valueSize() == 0 {
		return errAttributeEmpty(a.Name, base)
	}
	if base == "Binary" {
		return nil
	}
	if !validText(a.StringValue) {
		return errAttributeCharacters()
	}
	if base == "Number" && !validNumber(a.StringValue) {
		return errAttributeNumber(a.Name)
	}
	return nil
}

// validAttributeName: letters beyond ASCII are not documented, and accepted by
// AWS; so are dots that follow one another.
func validAttributeName(name string) bool {
	if name == "" || len(name) > maxAttributeName || !utf8.ValidString(name) {
		return false
	}
	if strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") {
		return false
	}
	for _, reserved := range []string{"aws.", "amazon."} {
		if len(name) >= len(reserved) && strings.EqualFold(name[:len(reserved)], reserved) {
			return false
		}
	}
	for _, c := range name {
		if !strings.ContainsRune("_-.", c) && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return false
		}
	}
	return true
}

// checkSystemAttributes checks the system attributes of a message to send.
func checkSystemAttributes(attributes []MessageAttribute) error {
	for i := range attributes {
		a := &attributes[i]
		if a.Name != "AWSTraceHeader" || baseType(a.DataType) != "String" {
			return errSystemAttribute(a.Name)
		}
		if !validTraceHeader(a.StringValue) {
			return errTraceHeader()
		}
	}
	return nil
}

// validTraceHeader reports whether header is a trace header as AWS X-Ray defines
// it: fields of the form key=value, separated by semicolons, with a Root of the
// form 1-<8 hexadecimal digits>-<24 hexadecimal digits> among them. It is printable
// ASCII and of at most maxTraceHeader bytes, because it does not count towards the message's size:
// a longer one would cost every server and client that stores, copies or receives the message.
// https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html#xray-concepts-tracingheader
// https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEventsRequestEntry.html
func validTraceHeader(header string) bool {
	if len(header) > maxTraceHeader || strings.ContainsFunc(header, func(c rune) bool { return c < ' ' || c > '~' }) {
		return false
	}
	hasRoot := false
	for field := range strings.SplitSeq(strings.TrimSuffix(header, ";"), ";") {
		key, value, found := strings.Cut(strings.TrimSpace(field), "=")
		if !found || key == "" {
			return false
		}
		if key != "Root" {
			continue
		}
		parts := strings.Split(value, "-")
		if len(parts) != 3 || parts[0] != "1" || !isHex(parts[1], 8) || !isHex(parts[2], 24) {
			return false
		}
		hasRoot = true
	}
	return hasRoot
}

func isHex(s string, length int) bool {
	return len(s) == length && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// checkIdentifier checks the value of a parameter that is a group, deduplication or attempt id. An
// empty value means that the request has the parameter without a value.
func checkIdentifier(name, value string, empty bool) error {
	if empty || len(value) > maxIdentifier {
		return errIdentifier(name, value)
	}
	for _, c := range []byte(value) {
		if c <= ' ' || c >= 0x7F {
			return errIdentifier(name, value)
		}
	}
	return nil
}

// checkBatch checks the number of entries of a batch and their ids. Entry names
// the type of an entry.
func checkBatch(entry string, n int, id func(i int) string) error {
	if n == 0 {
		return errEmptyBatch(entry)
	}
	if n > maxBatchEntries {
		return errTooManyEntries(n)
	}
	var ids [maxBatchEntries]string
	for i := range n {
		ids[i] = id(i)
		if !validBatchEntryID(ids[i]) {
			return errBatchEntryID()
		}
	}
	for i := range n {
		if slices.Contains(ids[:i], ids[i]) {
			return errBatchEntryIDRepeated(ids[i])
		}
	}
	return nil
}

func validBatchEntryID(id string) bool {
	if id == "" || len(id) > maxBatchEntryID {
		return false
	}
	for _, c := range []byte(id) {
		if !isNameCharacter(c) {
			return false
		}
	}
	return true
}

// isNameCharacter reports whether queue names and batch entry ids may have the character.
func isNameCharacter(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}

// validText reports whether s consists of characters that SQS accepts: #x9,
// #xA, #xD, #x20 to #xD7FF, #xE000 to #xFFFD, #x10000 to #x10FFFF.
func validText(s string) bool { return validBytes(bytesOf(s)) }

func validBytes(s []byte) bool {
	ascii := true
	for text := s; len(text) > 0; {
		if len(text) >= 8 && isPrintable(binary.LittleEndian.Uint64(text)) {
			text = text[8:]
			continue
		}
		c := text[0]
		if c < ' ' && c != '\t' && c != '\n' && c != '\r' {
			return false
		}
		ascii = ascii && c < utf8.RuneSelf
		text = text[1:]
	}
	return ascii || utf8.Valid(s) && !bytes.Contains(s, []byte("\uFFFE")) && !bytes.Contains(s, []byte("\uFFFF"))
}

// isPrintable reports whether each of the eight bytes of word is an ASCII
// character and not one of the controls below the space.
func isPrintable(word uint64) bool {
	const ones, highBits = 0x0101010101010101, 0x8080808080808080
	return (word|(word-ones*' '))&highBits == 0
}

// validNumber reports whether s is a decimal number of at most 38 significant
// digits whose magnitude lies between 10^-128 and 10^+126, or zero.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html
func validNumber(s string) bool {
	if s != "" && (s[0] == '-' || s[0] == '+') {
		s = s[1:]
	}
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		n, err := strconv.Atoi(s[i+1:])
		if err != nil || n < -1000 || n > 1000 {
			return false
		}
		mantissa, exponent = s[:i], n
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return false
	}
	significant := strings.TrimLeft(digits, "0")
	if significant == "" {
		return true
	}
	// The number is 0.significant * 10^magnitude.
	magnitude := len(whole) - (len(digits) - len(significant)) + exponent
	significant = strings.TrimRight(significant, "0")
	if len(significant) > 38 || magnitude <= -128 {
		return false
	}
	return magnitude <= 126 || magnitude == 127 && significant == "1"
}
