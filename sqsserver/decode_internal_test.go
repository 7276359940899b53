package sqsserver

import (
	"bytes"
	"crypto/md5"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/reprise-sqs/reprise/internal/awsjson"
)

func TestDecode(t *testing.T) {
	tests := []struct {
		name string
		body string
		want jsonInput
	}{
		{"create queue", `{"QueueName":"q","Attributes":{"DelaySeconds":"5"},"tags":{"a":"b"}}`,
			&CreateQueueInput{QueueName: "q", Attributes: map[string]string{"DelaySeconds": "5"}, Tags: map[string]string{"a": "b"}}},
		{"tags in capitals are another member", `{"QueueName":"q","Tags":{"a":"b"}}`, &CreateQueueInput{QueueName: "q"}},
		{"delete queue", `{"QueueUrl":"u"}`, &DeleteQueueInput{QueueUrl: "u"}},
		{"purge queue", `{"QueueUrl":"u"}`, &PurgeQueueInput{QueueUrl: "u"}},
		{"queue url", `{"QueueName":"q","QueueOwnerAWSAccountId":"1"}`,
			&GetQueueUrlInput{QueueName: "q", QueueOwnerAWSAccountId: "1"}},
		{"list queues", `{"QueueNamePrefix":"p","MaxResults":0,"NextToken":"t"}`,
			&ListQueuesInput{QueueNamePrefix: "p", MaxResults: Int(0), NextToken: "t"}},
		{"get attributes", `{"QueueUrl":"u","AttributeNames":["All","Policy"]}`,
			&GetQueueAttributesInput{QueueUrl: "u", AttributeNames: []string{"All", "Policy"}}},
		{"set attributes", `{"QueueUrl":"u","Attributes":{"Policy":"","DelaySeconds":"1"}}`,
			&SetQueueAttributesInput{QueueUrl: "u", Attributes: map[string]string{"Policy": "", "DelaySeconds": "1"}}},
		{"send", `{"QueueUrl":"u","MessageBody":"b","DelaySeconds":0,
			"MessageAttributes":{"n":{"DataType":"Number","StringValue":"1"},"b":{"DataType":"Binary","BinaryValue":"AQID"}},
			"MessageSystemAttributes":{"AWSTraceHeader":{"DataType":"String","StringValue":"Root=1"}},
			"MessageDeduplicationId":"d","MessageGroupId":"g"}`,
			&SendMessageInput{QueueUrl: "u", SendMessageEntry: SendMessageEntry{
				MessageBody: "b", DelaySeconds: Int(0),
				MessageAttributes: []MessageAttribute{
					{Name: "b", DataType: "Binary", BinaryValue: []byte{1, 2, 3}},
					{Name: "n", DataType: "Number", StringValue: "1"}},
				MessageSystemAttributes: []MessageAttribute{{Name: "AWSTraceHeader", DataType: "String", StringValue: "Root=1"}},
				MessageDeduplicationId:  "d", MessageGroupId: "g"}}},
		{"send batch", `{"QueueUrl":"u","Entries":[{"Id":"0","MessageBody":"b"},{"Id":"1","MessageBody":"c","DelaySeconds":9}]}`,
			&SendMessageBatchInput{QueueUrl: "u", Entries: []SendMessageBatchRequestEntry{
				{Id: "0", SendMessageEntry: SendMessageEntry{MessageBody: "b"}},
				{Id: "1", SendMessageEntry: SendMessageEntry{MessageBody: "c", DelaySeconds: Int(9)}}}}},
		{"receive", `{"QueueUrl":"u","MaxNumberOfMessages":10,"VisibilityTimeout":0,"WaitTimeSeconds":20,
			"AttributeNames":["SentTimestamp"],"MessageAttributeNames":["a.*"],"MessageSystemAttributeNames":["SenderId"],
			"ReceiveRequestAttemptId":"r"}`,
			&ReceiveMessageInput{QueueUrl: "u", MaxNumberOfMessages: Int(10), VisibilityTimeout: Int(0), WaitTimeSeconds: Int(20),
				MessageAttributeNames: []string{"a.*"}, MessageSystemAttributeNames: []string{"SenderId"}, AttributeNames: []string{"SentTimestamp"},
				ReceiveRequestAttemptId: "r"}},
		{"delete", `{"QueueUrl":"u","ReceiptHandle":"h"}`, &DeleteMessageInput{QueueUrl: "u", ReceiptHandle: "h"}},
		{"delete batch", `{"QueueUrl":"u","Entries":[{"Id":"0","ReceiptHandle":"h"}]}`,
			&DeleteMessageBatchInput{QueueUrl: "u", Entries: []DeleteMessageBatchRequestEntry{{Id: "0", ReceiptHandle: "h"}}}},
		{"visibility", `{"QueueUrl":"u","ReceiptHandle":"h","VisibilityTimeout":-1}`,
			&ChangeMessageVisibilityInput{QueueUrl: "u", ReceiptHandle: "h", VisibilityTimeout: Int(-1)}},
		{"visibility batch", `{"QueueUrl":"u","Entries":[{"Id":"0","ReceiptHandle":"h","VisibilityTimeout":0},{"Id":"1"}]}`,
			&ChangeMessageVisibilityBatchInput{QueueUrl: "u", Entries: []ChangeMessageVisibilityBatchRequestEntry{
				{Id: "0", ReceiptHandle: "h", VisibilityTimeout: Int(0)}, {Id: "1"}}}},

		{"white space", " {\r\n\t\"QueueUrl\" : \"u\" } \n", &DeleteQueueInput{QueueUrl: "u"}},
		{"empty object", `{}`, &ListQueuesInput{}},
		{"null is absent", `{"QueueUrl":null,"MaxNumberOfMessages":null,"MessageAttributeNames":null}`, &ReceiveMessageInput{}},
		{"null attribute is absent", `{"MessageBody":"b","MessageAttributes":{"a":null}}`,
			&SendMessageInput{SendMessageEntry: SendMessageEntry{MessageBody: "b"}}},
		{"unknown members are ignored", `{"A":{"B":[1,-2.5e+3,true,false,null,"c\u00e9",{}]},"QueueUrl":"u","queueurl":"v"}`,
			&DeleteQueueInput{QueueUrl: "u"}},
		{"last of equal members", `{"QueueUrl":"u","QueueUrl":"v"}`, &DeleteQueueInput{QueueUrl: "v"}},
		{"last of equal attributes", `{"MessageAttributes":{"a":{"StringValue":"1"},"a":{"DataType":"String"}}}`,
			&SendMessageInput{SendMessageEntry: SendMessageEntry{MessageAttributes: []MessageAttribute{{Name: "a", DataType: "String"}}}}},
		{"equal entries do not merge", `{"Entries":[{"Id":"0"}],"Entries":[{"ReceiptHandle":"h"}]}`,
			&DeleteMessageBatchInput{Entries: []DeleteMessageBatchRequestEntry{{ReceiptHandle: "h"}}}},
		{"escapes", `{"Queue\u0055rl":"\"\\\/\b\f\n\r\t\u0041\u00e9\ud83d\ude00\uFfFf"}`,
			&DeleteQueueInput{QueueUrl: "\"\\/\b\f\n\r\tAé😀\uFFFF"}},
		{"zero", `{"QueueUrl":"a\u0000b"}`, &DeleteQueueInput{QueueUrl: "a\x00b"}},
		{"half of a surrogate pair", `{"QueueUrl":"\ud83d|\ude00|\ud83d\ud83d\ude00|\ud83d\n"}`,
			&DeleteQueueInput{QueueUrl: "\xed\xa0\xbd|\xed\xb8\x80|\xed\xa0\xbd😀|\xed\xa0\xbd\n"}},
		{"empty lists of values", `{"MessageAttributes":{"a":{"StringListValues":[],"BinaryListValues":[],"DataType":"String"}}}`,
			&SendMessageInput{SendMessageEntry: SendMessageEntry{MessageAttributes: []MessageAttribute{{Name: "a", DataType: "String"}}}}},
		{"integers at their limits", `{"MaxResults":2147483647,"MaxResults":-2147483648}`, &ListQueuesInput{MaxResults: Int(-2147483648)}},
		{"nested as deep as can be", `{"A":` + strings.Repeat("[", awsjson.MaxDepth) + strings.Repeat("]", awsjson.MaxDepth) + `}`, &ListQueuesInput{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := reflect.New(reflect.TypeOf(test.want).Elem()).Interface().(jsonInput)
			if err := decodeWhole([]byte(test.body), got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got, whole, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("decoded (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecodeMalformed(t *testing.T) {
	tests := []struct {
		name, body, problem string
	}{
		{"nothing", ``, "at byte 0, an object is expected"},
		{"array", `[]`, "at byte 0, an object is expected"},
		{"null", `null`, "an object is expected"},
		{"string", `"x"`, "an object is expected"},
		{"no end", `{"QueueUrl":"u"`, "at byte 15, a comma or '}' is expected"},
		{"more after the end", `{"QueueUrl":"u"} {}`, "at byte 17, something follows the object"},
		{"zero byte after the end", "{}\x00", "something follows the object"},
		{"name without quotes", `{QueueUrl:"u"}`, "a member name is expected"},
		{"no colon", `{"QueueUrl" "u"}`, "a colon is missing"},
		{"comma before the end", `{"QueueUrl":"u",}`, "a member name is expected"},
		{"comma at the start", `{,"QueueUrl":"u"}`, "a member name is expected"},
		{"no comma", `{"QueueUrl":"u" "A":1}`, "a comma or '}' is expected"},
		{"number for a string", `{"QueueUrl":1}`, "a string is expected"},
		{"object for a string", `{"QueueUrl":{}}`, "a string is expected"},
		{"string for an integer", `{"WaitTimeSeconds":"1"}`, "an integer is expected"},
		{"true for an integer", `{"WaitTimeSeconds":true}`, "an integer is expected"},
		{"fraction", `{"WaitTimeSeconds":1.0}`, "is not an integer"},
		{"exponent", `{"WaitTimeSeconds":1e1}`, "is not an integer"},
		{"integer too big", `{"WaitTimeSeconds":2147483648}`, "out of range"},
		{"integer too small", `{"WaitTimeSeconds":-2147483649}`, "out of range"},
		{"huge integer", `{"WaitTimeSeconds":` + strings.Repeat("9", 4000) + `}`, "out of range"},
		{"leading zero", `{"WaitTimeSeconds":01}`, "a comma or '}' is expected"},
		{"sign alone", `{"WaitTimeSeconds":-}`, "an integer is expected"},
		{"string for a list", `{"MessageAttributeNames":"All"}`, "an array is expected"},
		{"null in a list", `{"MessageAttributeNames":[null]}`, "a string is expected"},
		{"comma in a list", `{"MessageAttributeNames":["a",]}`, "a string is expected"},
		{"list without end", `{"MessageAttributeNames":["a"}`, "a comma or ']' is expected"},
		{"string without end", `{"QueueUrl":"u`, "a string has no end"},
		{"backslash at the end", `{"QueueUrl":"u\`, "ends in a backslash"},
		{"control character", "{\"QueueUrl\":\"a\nb\"}", "control character"},
		{"control character after an escape", "{\"QueueUrl\":\"a\\n\x00\"}", "control character"},
		{"unknown escape", `{"QueueUrl":"\x41"}`, "an unknown escape"},
		{"short unicode escape", `{"QueueUrl":"\u12"}`, "four hexadecimal digits"},
		{"bad unicode escape", `{"QueueUrl":"\u12G4"}`, "four hexadecimal digits"},
		{"bad second unicode escape", `{"QueueUrl":"\ud83d\u12G4"}`, "four hexadecimal digits"},
		{"not UTF-8", "{\"QueueUrl\":\"\xff\"}", "not UTF-8"},
		{"surrogate in UTF-8", "{\"QueueUrl\":\"\xed\xa0\xbd\"}", "not UTF-8"},
		{"name that is not UTF-8", "{\"\xff\":1}", "not UTF-8"},
		{"not UTF-8 in what is ignored", "{\"A\":[\"\\n\xff\"]}", "not UTF-8"},
		{"bad literal", `{"A":nul}`, "a value is expected"},
		{"long literal", `{"A":truex}`, "a comma or '}' is expected"},
		{"bad fraction", `{"A":1.}`, "a value is expected"},
		{"bad exponent", `{"A":1e+}`, "a value is expected"},
		{"no value", `{"A":}`, "a value is expected"},
		{"nested too deep", `{"A":` + strings.Repeat("[", awsjson.MaxDepth+1) + strings.Repeat("]", awsjson.MaxDepth+1) + `}`, "nested more than 100 deep"},
		{"nested without end", `{"A":` + strings.Repeat(`{"A":`, 1<<20), "nested more than 100 deep"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := decodeJSON([]byte(test.body), new(ReceiveMessageInput))
			var e *Error
			if !errors.As(err, &e) || e.Type() != "com.amazon.coral.service#SerializationException" {
				t.Fatalf("error %v, want a SerializationException", err)
			}
			if !strings.Contains(e.Message, test.problem) {
				t.Errorf("message %q does not say %q", e.Message, test.problem)
			}
		})
	}
}

func TestDecodeRefused(t *testing.T) {
	entries := strings.TrimSuffix(strings.Repeat(`{"Id":"0"},`, 11), ",")
	tests := []struct {
		name string
		body string
		in   jsonInput
		want *Error
	}{
		{"list of values", `{"MessageAttributes":{"a":{"DataType":"String","StringListValues":["v"]}}}`, new(SendMessageInput), errAttributeLists()},
		{"list of binary values", `{"MessageSystemAttributes":{"a":{"BinaryListValues":["AQID"]}}}`, new(SendMessageInput), errAttributeLists()},
		{"base64", `{"MessageAttributes":{"a":{"BinaryValue":"?"}}}`, new(SendMessageInput), errSerialization(44, "the string before is not base64")},
		{"eleven entries", `{"Entries":[` + entries + `]}`, new(DeleteMessageBatchInput), errTooManyEntries(11)},
		{"eleven entries, one malformed", `{"Entries":[` + entries + `1}`, new(DeleteMessageBatchInput), errSerialization(132, "a comma or ']' is expected")},
		{"null entry", `{"Entries":[null]}`, new(SendMessageBatchInput), errSerialization(12, "an object is expected")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var want error = test.want
			if diff := cmp.Diff(want, decodeJSON([]byte(test.body), test.in)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// decodeWhole decodes an input and puts the bodies of messages where the members are
// that they came in, if what the decoder made of them is right.
func decodeWhole(request []byte, in jsonInput) error {
	if err := decodeJSON(request, in); err != nil {
		return err
	}
	var entries []*SendMessageEntry
	switch in := in.(type) {
	case *SendMessageInput:
		entries = append(entries, &in.SendMessageEntry)
	case *SendMessageBatchInput:
		for i := range in.Entries {
			entries = append(entries, &in.Entries[i].SendMessageEntry)
		}
	}
	for _, e := range entries {
		plain := e.body.plain()
		if want := (sentBody{e.body.body, len(plain), md5.Sum([]byte(plain)), validText(plain)}); plain != "" && e.body != want {
			return fmt.Errorf("a body was decoded to %+v, want %+v", e.body, want)
		}
		if again := string(e.body.appendJSON(nil)); plain != "" && !json.Valid([]byte(again)) {
			return fmt.Errorf("the body %q is written as %s", plain, again)
		}
		e.MessageBody, e.body = plain, sentBody{}
	}
	return nil
}

// whole compares inputs of decodeWhole.
var whole = cmpopts.IgnoreUnexported(SendMessageEntry{}, ReceiveMessageInput{})

// An input keeps nothing of the body, which the handler reuses.
func TestDecodeCopies(t *testing.T) {
	body := []byte(`{"QueueUrl":"u","MessageBody":"plain","MessageAttributes":{"a\u0062":{"DataType":"Binary","BinaryValue":"AQID"}}}`)
	var in SendMessageInput
	if err := decodeWhole(body, &in); err != nil {
		t.Fatal(err)
	}
	for i := range body {
		body[i] = 'X'
	}
	if err := decodeJSON([]byte(`{"MessageBody":"\n\n\n\n\n\n\n\n\n\n"}`), new(SendMessageInput)); err != nil {
		t.Fatal(err)
	}
	want := SendMessageInput{QueueUrl: "u", SendMessageEntry: SendMessageEntry{MessageBody: "plain",
		MessageAttributes: []MessageAttribute{{Name: "ab", DataType: "Binary", BinaryValue: []byte{1, 2, 3}}}}}
	if diff := cmp.Diff(want, in, whole); diff != "" {
		t.Errorf("input changed (-want +got):\n%s", diff)
	}
}

// A batch of ten costs its entries, and for each the id and the body.
func TestDecodeAllocations(t *testing.T) {
	body := sendMessageBatchBody()
	var r jsonReader
	allocations := testing.AllocsPerRun(100, func() {
		r.Reset(body)
		var in SendMessageBatchInput
		in.decodeJSON(&r)
		if r.Err() != nil {
			t.Fatal(r.Err())
		}
	})
	if allocations > 23 { // the input, its URL, the entries, 10 ids, 10 bodies
		t.Errorf("%v allocations, want at most 23", allocations)
	}
}

// FuzzDecode holds the reader against encoding/json: both accept the same bodies
// and read the same from them, except that ours takes no text that is not UTF-8
// and encoding/json puts U+FFFD in the place of half a surrogate pair.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"QueueUrl":"http://h/1/q","QueueName":"q","tags":{"k":"v"},"Attributes":{"A":"1"}}`,
		`{"QueueUrl":"u","MessageBody":"a\"\\\u00e9\ud83d\ude00\ud83d","DelaySeconds":-1,"MessageAttributes":{"b":{"DataType":"Binary","BinaryValue":"AQI="},"a":{"DataType":"String","StringValue":"x"}}}`,
		`{"Entries":[{"Id":"a","MessageBody":"b","ReceiptHandle":"h","VisibilityTimeout":30,"DelaySeconds":0},{}],"Entries":null}`,
		`{"Entries":[{},{},{},{},{},{},{},{},{},{},{}]}`,
		`{"MaxNumberOfMessages":10,"WaitTimeSeconds":20,"AttributeNames":["All"],"MessageAttributeNames":[".*"]}`,
		`{"X":[1,2.5e-3,true,false,null,{"Y":"z"}],"MaxResults":2147483648}`,
		"{\"QueueUrl\":\"\xff\"}", `{"QueueUrl":"u"} x`, `[[[[`, `{"a":01}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		tree, valid := parseReference(body)
		for _, in := range []jsonInput{
			new(CreateQueueInput), new(GetQueueUrlInput), new(DeleteQueueInput), new(PurgeQueueInput), new(ListQueuesInput),
			new(GetQueueAttributesInput), new(SetQueueAttributesInput), new(SendMessageInput), new(SendMessageBatchInput),
			new(ReceiveMessageInput), new(DeleteMessageInput), new(DeleteMessageBatchInput),
			new(ChangeMessageVisibilityInput), new(ChangeMessageVisibilityBatchInput),
		} {
			want := reflect.New(reflect.TypeOf(in).Elem())
			wantErr := errors.New("not an object in UTF-8")
			if valid && utf8.Valid(body) {
				wantErr = assignReference(want.Elem(), tree)
			}
			err := decodeWhole(body, in)
			if err != nil && strings.Contains(err.Error(), "nested more than") {
				if bytes.Count(body, []byte("["))+bytes.Count(body, []byte("{")) <= awsjson.MaxDepth {
					t.Fatalf("%T: %v", in, err)
				}
				continue
			}
			if (err == nil) != (wantErr == nil) {
				t.Fatalf("%T: error %v, want %v", in, err, wantErr)
			}
			if err != nil {
				var e *Error
				if !errors.As(err, &e) || e.Code != codeMalformedInput && e.Code != codeUnsupportedOperation && e.Code != codeTooManyEntriesInBatchRequest {
					t.Fatalf("%T: error %v", in, err)
				}
				continue
			}
			if !utf8.ValidString(fmt.Sprintf("%+v", in)) {
				continue // a half of a surrogate pair
			}
			if diff := cmp.Diff(want.Interface(), any(in), whole, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("%T (-encoding/json +decoded):\n%s", in, diff)
			}
		}
	})
}

func BenchmarkDecodeSendMessageBatch(b *testing.B) {
	body := sendMessageBatchBody()
	b.Run("reader", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			var in SendMessageBatchInput
			if err := decodeJSON(body, &in); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding/json", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			var in SendMessageBatchInput
			if err := json.Unmarshal(body, &in); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkDecodeReceiveMessage(b *testing.B) {
	body := []byte(`{"QueueUrl":"http://localhost:9324/000000000000/orders","MaxNumberOfMessages":10,"WaitTimeSeconds":20,` +
		`"MessageAttributeNames":["All"],"MessageSystemAttributeNames":["All"]}`)
	b.ReportAllocs()
	for b.Loop() {
		var in ReceiveMessageInput
		if err := decodeJSON(body, &in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeDeleteMessageBatch(b *testing.B) {
	var body bytes.Buffer
	body.WriteString(`{"QueueUrl":"http://localhost:9324/000000000000/orders","Entries":[`)
	for i := range 10 {
		if i > 0 {
			body.WriteByte(',')
		}
		fmt.Fprintf(&body, `{"Id":"%d","ReceiptHandle":"%s"}`, i, receiptHandle{queue: 1, number: uint64(i)})
	}
	body.WriteString(`]}`)
	b.ReportAllocs()
	for b.Loop() {
		var in DeleteMessageBatchInput
		if err := decodeJSON(body.Bytes(), &in); err != nil {
			b.Fatal(err)
		}
	}
}

// sendMessageBatchBody is a request that sends ten messages of 1 KiB.
func sendMessageBatchBody() []byte {
	body := []byte(`{"QueueUrl":"http://localhost:9324/000000000000/orders","Entries":[`)
	for i := range 10 {
		if i > 0 {
			body = append(body, ',')
		}
		body = fmt.Appendf(body, `{"Id":"%d","MessageBody":`, i)
		body = awsjson.AppendText(body, exampleBody(i))
		body = append(body, '}')
	}
	return append(body, `]}`...)
}

// exampleBody is a message body of 1 KiB of JSON, with the quotes that JSON in
// JSON has to escape.
func exampleBody(i int) string {
	var body strings.Builder
	fmt.Fprintf(&body, `{"id":"evt_%032d","type":"order.created","created":"2026-11-21T08:15:30.123Z","customer":`+
		`{"name":"Zoë Example","email":"zoe@example.com","address":"12 Long Street, 1234 Somewhere"},"lines":[`, i)
	for body.Len() < 900 {
		fmt.Fprintf(&body, `{"sku":"SKU-%08d","title":"A thing with a name of some length","quantity":%d,"price":1250},`, body.Len(), i)
	}
	return body.String() + `"` + strings.Repeat("x", 1020-body.Len()) + `"]}`
}
