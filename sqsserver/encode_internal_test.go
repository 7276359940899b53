package sqsserver

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEncode(t *testing.T) {
	id := UUID{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef}
	hello := digestBody([]byte("hello"))
	tests := []struct {
		name string
		out  jsonOutput
		want string
	}{
		{"create queue", &CreateQueueOutput{QueueUrl: "u"}, `{"QueueUrl":"u"}`},
		{"queue url", &GetQueueUrlOutput{QueueUrl: "u"}, `{"QueueUrl":"u"}`},
		{"no queues", &ListQueuesOutput{}, `{}`},
		{"queues", &ListQueuesOutput{QueueUrls: []string{"u", "v"}, NextToken: "t"}, `{"QueueUrls":["u","v"],"NextToken":"t"}`},
		{"no attributes", &GetQueueAttributesOutput{}, `{}`},
		{"attributes", &GetQueueAttributesOutput{Attributes: map[string]string{"b": "2", "a": "{\"x\":1}", "c": ""}},
			`{"Attributes":{"a":"{\"x\":1}","b":"2","c":""}}`},
		{"sent", &SendMessageOutput{MessageId: id, MD5OfMessageBody: hello},
			`{"MessageId":"01234567-89ab-cdef-0123-456789abcdef","MD5OfMessageBody":"5d41402abc4b2a76b9719d911017c592"}`},
		{"sent to a FIFO queue", &SendMessageOutput{MessageId: id, MD5OfMessageBody: hello, MD5OfMessageAttributes: hello,
			MD5OfMessageSystemAttributes: hello, SequenceNumber: 18446744073709551615},
			`{"MessageId":"01234567-89ab-cdef-0123-456789abcdef","MD5OfMessageBody":"5d41402abc4b2a76b9719d911017c592",` +
				`"MD5OfMessageAttributes":"5d41402abc4b2a76b9719d911017c592","MD5OfMessageSystemAttributes":"5d41402abc4b2a76b9719d911017c592",` +
				`"SequenceNumber":"18446744073709551615"}`},
		{"batch sent", &SendMessageBatchOutput{
			Successful: []SendMessageBatchResultEntry{{Id: "a", SendMessageOutput: SendMessageOutput{MessageId: id, MD5OfMessageBody: hello}}},
			Failed:     []BatchResultErrorEntry{failedEntry("b", errBodyCharacters()), failedEntry("c", errInternalFailure("x"))}},
			`{"Successful":[{"Id":"a","MessageId":"01234567-89ab-cdef-0123-456789abcdef","MD5OfMessageBody":"5d41402abc4b2a76b9719d911017c592"}],` +
				`"Failed":[{"Id":"b","Code":"InvalidMessageContents","Message":"` + textCharacters + `","SenderFault":true},` +
				`{"Id":"c","Code":"InternalFailure","Message":"x","SenderFault":false}]}`},
		{"batch deleted", &DeleteMessageBatchOutput{Successful: []BatchResultEntry{{Id: "a"}, {Id: ""}}},
			`{"Successful":[{"Id":"a"},{"Id":""}]}`},
		{"batch hidden", &ChangeMessageVisibilityBatchOutput{Failed: []BatchResultErrorEntry{{Id: "a", Code: "C", Message: "M", SenderFault: true}}},
			`{"Failed":[{"Id":"a","Code":"C","Message":"M","SenderFault":true}]}`},
		{"empty receive", &received{}, `{}`},
		{"receive", receivedOf([]Message{
			{MessageId: id, ReceiptHandle: "h", MD5OfBody: hello, Body: "hello"},
			{MessageId: id, ReceiptHandle: "i", MD5OfBody: hello, Body: "a\"\\\n\r\t\b\x7fé😀", MD5OfMessageAttributes: hello,
				Attributes: SystemAttributes{SenderId: "s", SentTimestamp: 1700000000000, ApproximateReceiveCount: 2,
					ApproximateFirstReceiveTimestamp: 1700000000001, SequenceNumber: 3, MessageDeduplicationId: "d",
					MessageGroupId: `"g"`, AWSTraceHeader: "Root=1", DeadLetterQueueSourceArn: "arn"},
				MessageAttributes: []MessageAttribute{{Name: "b", DataType: "Binary.x", BinaryValue: []byte{1, 2, 3, 4}},
					{Name: "s", DataType: "String", StringValue: "v"}}}}),
			`{"Messages":[{"MessageId":"01234567-89ab-cdef-0123-456789abcdef","ReceiptHandle":"h","MD5OfBody":"5d41402abc4b2a76b9719d911017c592","Body":"hello"},` +
				`{"MessageId":"01234567-89ab-cdef-0123-456789abcdef","ReceiptHandle":"i","MD5OfBody":"5d41402abc4b2a76b9719d911017c592","Body":"a\"\\\n\r\t\u0008` + "\x7f" + `é😀",` +
				`"Attributes":{"SenderId":"s","SentTimestamp":"1700000000000","ApproximateReceiveCount":"2","ApproximateFirstReceiveTimestamp":"1700000000001",` +
				`"SequenceNumber":"3","MessageDeduplicationId":"d","MessageGroupId":"\"g\"","AWSTraceHeader":"Root=1","DeadLetterQueueSourceArn":"arn"},` +
				`"MD5OfMessageAttributes":"5d41402abc4b2a76b9719d911017c592",` +
				`"MessageAttributes":{"b":{"BinaryValue":"AQIDBA==","DataType":"Binary.x"},"s":{"StringValue":"v","DataType":"String"}}}]}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, string(test.out.appendJSON(nil))); diff != "" {
				t.Errorf("encoded (-want +got):\n%s", diff)
			}
		})
	}
}

// The attributes that All yields are those that are written.
func TestSystemAttributesAll(t *testing.T) {
	attributes := SystemAttributes{SenderId: "s", SentTimestamp: 1, ApproximateReceiveCount: 2, ApproximateFirstReceiveTimestamp: 3,
		SequenceNumber: 4, MessageDeduplicationId: "d", MessageGroupId: "g", AWSTraceHeader: "t", DeadLetterQueueSourceArn: "a"}
	for _, attributes := range []SystemAttributes{attributes, {}, {ApproximateReceiveCount: 1}} {
		var written struct{ Attributes map[string]string }
		out := message{Message: Message{Attributes: attributes}}
		if err := json.Unmarshal(out.appendJSON(nil), &written); err != nil {
			t.Fatal(err)
		}
		if got := maps.Collect(attributes.All()); len(got)+len(written.Attributes) > 0 && !maps.Equal(got, written.Attributes) {
			t.Errorf("All yields %v, written are %v", got, written.Attributes)
		}
	}
	for name := range attributes.All() {
		if name != "SenderId" {
			t.Errorf("%s yielded after the loop's end", name)
		}
		break
	}
}

// FuzzEncode checks by encoding/json that the encoded text can be read.
func FuzzEncode(f *testing.F) {
	f.Add("id", "body \"quoted\" \\ \n\x00é😀\u2028", "name", "String", "value", []byte{1}, uint64(7), false)
	f.Add("", "\xff\xed\xa0\x80", "", "", "", []byte(nil), uint64(0), true)
	f.Add("0123456", "01234567\"", "\x1f\x20\x7f\x80", "", "", []byte("ab"), uint64(1)<<63, true)
	f.Fuzz(func(t *testing.T, id, body, name, dataType, value string, blob []byte, number uint64, fault bool) {
		type attribute struct {
			StringValue, DataType string
			BinaryValue           []byte
		}
		type message struct {
			ReceiptHandle, Body string
			Attributes          map[string]string
			MessageAttributes   map[string]attribute
		}
		type reply struct {
			Messages   []message
			Successful []struct{ Id, SequenceNumber string }
			Failed     []BatchResultErrorEntry
		}
		read := func(out jsonOutput) (r reply) {
			if err := json.Unmarshal(out.appendJSON(nil), &r); err != nil {
				t.Fatalf("%v in %q", err, out.appendJSON(nil))
			}
			return r
		}
		text := func(s string) string { return string([]rune(s)) } // as encoding/json has it
		if len(blob) == 0 {
			blob = nil
		}
		attributes := SystemAttributes{SequenceNumber: number, MessageGroupId: value}
		got := read(receivedOf([]Message{{}, {ReceiptHandle: id, Body: body, Attributes: attributes,
			MessageAttributes: []MessageAttribute{{Name: name, DataType: dataType, StringValue: value, BinaryValue: blob}}}}))
		want := message{ReceiptHandle: text(id), Body: text(body),
			MessageAttributes: map[string]attribute{text(name): {text(value), text(dataType), blob}}}
		if attributes != (SystemAttributes{}) {
			want.Attributes = map[string]string{}
			for name, value := range attributes.All() {
				want.Attributes[name] = text(value)
			}
		}
		if diff := cmp.Diff(reply{Messages: []message{{}, want}}, got); diff != "" {
			t.Errorf("receive (-want +read):\n%s", diff)
		}

		got = read(&SendMessageBatchOutput{
			Successful: []SendMessageBatchResultEntry{{Id: id, SendMessageOutput: SendMessageOutput{SequenceNumber: number}}},
			Failed:     []BatchResultErrorEntry{{Id: id, Code: name, Message: value, SenderFault: fault}, {}},
		})
		wantBatch := reply{
			Successful: []struct{ Id, SequenceNumber string }{{text(id), formatNumber(number)}},
			Failed:     []BatchResultErrorEntry{{text(id), text(name), text(value), fault}, {}},
		}
		if diff := cmp.Diff(wantBatch, got); diff != "" {
			t.Errorf("batch (-want +read):\n%s", diff)
		}
	})
}

func TestEncodeAllocations(t *testing.T) {
	buffer := make([]byte, 0, 64<<10)
	for _, out := range []jsonOutput{receivedMessages(), new(received), &SendMessageOutput{SequenceNumber: 1},
		&DeleteMessageBatchOutput{Successful: []BatchResultEntry{{Id: "a"}}, Failed: []BatchResultErrorEntry{{Id: "b"}}}} {
		if n := testing.AllocsPerRun(100, func() { buffer = out.appendJSON(buffer[:0]) }); n != 0 {
			t.Errorf("%T: %v allocations, want none", out, n)
		}
	}
}

func TestWriteReply(t *testing.T) {
	requestID := UUID{15: 1}.String()
	for _, body := range []string{"", "{}"} {
		w := httptest.NewRecorder()
		c := call{requestID: requestID, reply: []byte(body)}
		if err := c.writeReply(w); err != nil {
			t.Fatal(err)
		}
		want := http.Header{}
		want.Set("Content-Type", "application/x-amz-json-1.0")
		want.Set("Content-Length", map[string]string{"": "0", "{}": "2"}[body])
		want.Set("x-amzn-RequestId", "00000000-0000-0000-0000-000000000001")
		if diff := cmp.Diff(want, w.Header()); diff != "" || w.Code != 200 || w.Body.String() != body {
			t.Errorf("status %d, body %q, header (-want +got):\n%s", w.Code, w.Body, diff)
		}
	}
}

func TestWriteError(t *testing.T) {
	tests := []struct {
		err    *Error
		status int
		header string
		body   string
	}{
		{errQueueDoesNotExist(), 400, "AWS.SimpleQueueService.NonExistentQueue;Sender",
			`{"__type":"com.amazonaws.sqs#QueueDoesNotExist","message":"The specified queue does not exist."}`},
		{errReceiptHandle("\x00"), 404, "ReceiptHandleIsInvalid;Sender",
			`{"__type":"com.amazonaws.sqs#ReceiptHandleIsInvalid","message":"The input receipt handle \"\u0000\" is not a valid receipt handle."}`},
		{errOverLimit(), 403, "OverLimit;Sender", `{"__type":"com.amazonaws.sqs#OverLimit","message":"` + errOverLimit().Message + `"}`},
		{errMissingParameter("MessageBody"), 400, "MissingParameter;Sender",
			`{"__type":"com.amazon.coral.service#MissingRequiredParameterException","message":"The request must contain the parameter MessageBody."}`},
		{errServiceUnavailable(), 503, "ServiceUnavailable;Receiver",
			`{"__type":"com.amazon.coral.service#ServiceUnavailableException","message":"Service is unavailable."}`},
		{&Error{Code: "Strange"}, 500, "Strange;Receiver", `{"__type":"com.amazon.coral.service#InternalFailure"}`},
	}
	for _, test := range tests {
		w := httptest.NewRecorder()
		if err := (&call{requestID: "an-id"}).writeError(w, test.err); err != nil {
			t.Fatal(err)
		}
		if w.Code != test.status || w.Header().Get("x-amzn-query-error") != test.header || w.Body.String() != test.body {
			t.Errorf("%v: %d %s %s, want %d %s %s", test.err, w.Code, w.Header().Get("x-amzn-query-error"), w.Body, test.status, test.header, test.body)
		}
		if w.Header().Get("x-amzn-RequestId") != "an-id" || w.Header().Get("Content-Type") != contentType {
			t.Errorf("%v: header %v", test.err, w.Header())
		}
	}
}

func BenchmarkEncodeReceiveMessage(b *testing.B) {
	out := receivedMessages()
	var buffer []byte
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			buffer = out.appendJSON(buffer[:0])
		}
		b.SetBytes(int64(len(buffer)))
	})
	b.Run("encoding/json", func(b *testing.B) {
		var reply struct {
			Messages []struct {
				MessageId, ReceiptHandle, MD5OfBody, Body string
				Attributes                                map[string]string
			}
		}
		if err := json.Unmarshal(out.appendJSON(nil), &reply); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := json.Marshal(reply); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// receivedMessages are ten messages of 1 KiB with all the system attributes that a
// standard queue returns.
func receivedMessages() *received {
	var messages []Message
	for i := range 10 {
		body := exampleBody(i)
		messages = append(messages, Message{
			MessageId:     UUID{byte(i)},
			ReceiptHandle: receiptHandle{queue: 1, number: uint64(i), generation: 1}.String(),
			MD5OfBody:     digestBody([]byte(body)),
			Body:          body,
			Attributes: SystemAttributes{SenderId: strings.Repeat("A", 21), SentTimestamp: 1700000000000,
				ApproximateReceiveCount: 1, ApproximateFirstReceiveTimestamp: 1700000000001},
		})
	}
	return receivedOf(messages)
}

// receivedOf is what the server holds of messages when it writes them.
func receivedOf(messages []Message) *received {
	out := new(received)
	for _, m := range messages {
		plain := m.Body
		m.Body = ""
		out.messages = append(out.messages, message{m, body{text: plain}})
	}
	return out
}
