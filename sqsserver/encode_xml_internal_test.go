package sqsserver

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzEncodeXML checks by encoding/xml that the encoded text can be read.
func FuzzEncodeXML(f *testing.F) {
	f.Add("id", "body \"quoted\" <&> \r\n\t]]>é😀\u2028", "name", "String", "value", []byte{1}, uint64(7), false)
	f.Add("", "\xff\xed\xa0\x80\uffff", "", "", "", []byte(nil), uint64(0), true)
	f.Add("\r", "\x00\x1f\x7f\u0085", "&lt;", "'", "<!--", []byte("ab"), uint64(1)<<63, true)
	f.Fuzz(func(t *testing.T, id, body, name, dataType, value string, blob []byte, number uint64, fault bool) {
		type attribute struct{ Name, Value string }
		type message struct {
			ReceiptHandle, Body string
			Attribute           []attribute
			MessageAttribute    []struct {
				Name  string
				Value struct{ StringValue, BinaryValue, DataType string }
			}
		}
		type entry struct {
			Id, SequenceNumber, Code, Message string
			SenderFault                       bool
		}
		type reply struct {
			XMLName xml.Name
			Receive struct{ Message []message } `xml:"ReceiveMessageResult"`
			Batch   struct {
				Successful []entry `xml:"SendMessageBatchResultEntry"`
				Failed     []entry `xml:"BatchResultErrorEntry"`
			} `xml:"SendMessageBatchResult"`
			Attributes struct{ Attribute []attribute }             `xml:"GetQueueAttributesResult"`
			Tags       struct{ Tag []struct{ Key, Value string } } `xml:"ListQueueTagsResult"`
			Error      struct{ Type, Code, Message string }
			Metadata   struct{ RequestId string } `xml:"ResponseMetadata"`
		}
		requestID := UUID{15: 1}.String()
		read := func(action string, out xmlOutput) (r reply) {
			text := appendXMLReply(nil, action, requestID, out)
			if err := xml.Unmarshal(text, &r); err != nil {
				t.Fatalf("%v in %q", err, text)
			}
			if r.XMLName.Local != action+"Response" || r.Metadata.RequestId != requestID {
				t.Errorf("the reply is %v of %s", r.XMLName, r.Metadata.RequestId)
			}
			return r
		}
		equal := func(what, want, got string) {
			if want = asXML(want); got != want {
				t.Errorf("%s is %q, want %q", what, got, want)
			}
		}

		got := read("ReceiveMessage", receivedOf([]Message{{}, {ReceiptHandle: id, Body: body,
			Attributes:        SystemAttributes{SequenceNumber: number, MessageGroupId: value},
			MessageAttributes: []MessageAttribute{{Name: name, DataType: dataType, StringValue: value, BinaryValue: blob}}}}))
		if len(got.Receive.Message) != 2 || len(got.Receive.Message[1].MessageAttribute) != 1 {
			t.Fatalf("received %+v", got)
		}
		m := got.Receive.Message[1]
		equal("the handle", id, m.ReceiptHandle)
		equal("the body", body, m.Body)
		equal("the name", name, m.MessageAttribute[0].Name)
		equal("the type", dataType, m.MessageAttribute[0].Value.DataType)
		equal("the value", value, m.MessageAttribute[0].Value.StringValue)
		for _, a := range m.Attribute {
			want := map[string]string{"SequenceNumber": formatNumber(number), "MessageGroupId": value}[a.Name]
			equal(a.Name, want, a.Value)
		}

		got = read("SendMessageBatch", &SendMessageBatchOutput{
			Successful: []SendMessageBatchResultEntry{{Id: id, SendMessageOutput: SendMessageOutput{SequenceNumber: number}}},
			Failed:     []BatchResultErrorEntry{{Id: id, Code: name, Message: value, SenderFault: fault}, {}},
		})
		want := reply{XMLName: got.XMLName, Metadata: got.Metadata}
		want.Batch.Successful = []entry{{Id: asXML(id), SequenceNumber: formatNumber(number)}}
		want.Batch.Failed = []entry{{Id: asXML(id), Code: asXML(name), Message: asXML(value), SenderFault: fault}, {}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("batch (-want +read):\n%s", diff)
		}

		got = read("GetQueueAttributes", &GetQueueAttributesOutput{Attributes: map[string]string{name: value}})
		equal("the attribute", value, got.Attributes.Attribute[0].Value)
		got = read("ListQueueTags", &ListQueueTagsOutput{Tags: map[string]string{name: value}})
		equal("the tag", value, got.Tags.Tag[0].Value)

		var problem reply
		text := (&Error{Code: "x" + name, Message: value}).appendXML(nil, requestID)
		if err := xml.Unmarshal(text, &problem); err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		equal("the message", value, problem.Error.Message)
	})
}

// asXML is what readers make of a text that XML can express but for some
// characters.
func asXML(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '\t' || c == '\n' || c == '\r' || ' ' <= c && c != 0xFFFE && c != 0xFFFF {
			return c
		}
		return '\uFFFD'
	}, string([]rune(s)))
}

func TestEncodeXMLAllocations(t *testing.T) {
	buffer := make([]byte, 0, 64<<10)
	for action, out := range map[string]xmlOutput{"ReceiveMessage": receivedMessages(), "SendMessage": new(SendMessageOutput),
		"DeleteMessageBatch": &DeleteMessageBatchOutput{Successful: []BatchResultEntry{{Id: "a"}}, Failed: []BatchResultErrorEntry{{Id: "b"}}}} {
		limit := 0.0
		if action == "ReceiveMessage" {
			limit = 30 // two timestamps and a count of each of ten messages, as text
		}
		if n := testing.AllocsPerRun(100, func() { buffer = appendXMLReply(buffer[:0], action, "an-id", out) }); n > limit {
			t.Errorf("%s: %v allocations, want at most %v", action, n, limit)
		}
	}
}

func BenchmarkEncodeXML(b *testing.B) {
	out := receivedMessages()
	var buffer []byte
	b.ReportAllocs()
	for b.Loop() {
		buffer = appendXMLReply(buffer[:0], "ReceiveMessage", "an-id", out)
	}
	b.SetBytes(int64(len(buffer)))
}
