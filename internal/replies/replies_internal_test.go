package replies

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"weak"

	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/schemas"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// full is a reply with everything in it that SQS has.
const full = `{"Messages":[{"MessageId":"5fea7756-0ea4-451a-a703-a558b933e274","ReceiptHandle":"AQEB+/=","MD5OfBody":"9e107d9d372bb6826bd81d3542a419d6",` +
	`"Body":"{\"name\":\"Zo\u00eb \ud83d\ude00\",\"path\":\"\\\\a\/b\"}\n","Attributes":{"SenderId":"AIDA","SentTimestamp":"1700000000000",` +
	`"ApproximateReceiveCount":"3","SequenceNumber":"18870","AWSTraceHeader":"Root=1","IsNew":"yes"},"MD5OfMessageAttributes":"0123",` +
	`"MessageAttributes":{"n":{"DataType":"Number","StringValue":"1"},"b":{"DataType":"Binary.png","BinaryValue":"AQID"},"e":{"DataType":"Binary","BinaryValue":""}}},` +
	`{"Body":"plain, Zoë","MessageId":"2"}]}`

var replies = []struct {
	name, reply string
	here        bool // not by the SDK
}{
	{"full", full, true},
	{"no message", `{}`, true},
	{"an empty list", `{"Messages":[]}`, true},
	{"white space", " {\n\t\"Messages\" : [ { \"Body\" : \"b\" } ] }\r\n", true},
	{"members that are new", `{"New":{"a":[1,true,null]},"Messages":[{"New":[{}],"Body":"b","MessageAttributes":{"a":{"New":1,"DataType":"String"}}}]}`, false},
	{"new, without nulls", `{"New":{"a":[1,true]},"Messages":[{"New":[{}],"Body":"b","MessageAttributes":{"a":{"New":1,"DataType":"String"}}}]}`, true},
	{"names in other letters", `{"messages":[{"Body":"b"}],"Messages":[{"body":"b"}]}`, true},
	{"eleven messages", `{"Messages":[` + strings.TrimSuffix(strings.Repeat(`{"Body":"b"},`, 11), ",") + `]}`, true},
	{"the last of equal members", `{"Messages":[{"Body":"a"}],"Messages":[{"Body":"b","Body":"c","Attributes":{"a":"1"},"Attributes":{"b":"2","b":"3"}}]}`, true},

	{"nothing", ``, false},
	{"cut off", full[:len(full)-20], false},
	{"something behind", `{"Messages":[{"Body":"b"}]} x`, false},
	{"not JSON", `<html>`, false},
	{"another type", `{"Messages":{}}`, false},
	{"a number for a text", `{"Messages":[{"Body":1}]}`, false},
	{"null for a message", `{"Messages":[null]}`, false},
	{"null for a body", `{"Messages":[{"Body":null}]}`, false},
	{"null for an attribute", `{"Messages":[{"Attributes":{"a":null},"MessageAttributes":{"a":null}}]}`, false},
	{"half of a surrogate pair in a name", `{"Messages":[{"MessageAttributes":{"a\ud83db":{"DataType":"String"}}}]}`, false},
	{"half of a surrogate pair in a system attribute's name", `{"Messages":[{"Attributes":{"a\ud83db":"c"}}]}`, false},
	{"half of a surrogate pair", `{"Messages":[{"Body":"a\ud83db"}]}`, false},
	{"not UTF-8", "{\"Messages\":[{\"Body\":\"a\xffb\"}]}", false},
	{"not base64", `{"Messages":[{"MessageAttributes":{"a":{"BinaryValue":"?"}}}]}`, false},
	{"lists of values", `{"Messages":[{"MessageAttributes":{"a":{"StringListValues":["v"],"BinaryListValues":["AQID"]}}}]}`, false},
	{"nested deep", `{"New":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, false},
}

// Whatever the reply is, the caller gets what the SDK would have read.
func TestReadAsTheSDK(t *testing.T) {
	for _, test := range replies {
		t.Run(test.name, func(t *testing.T) {
			if _, here := parse([]byte(test.reply)); here != test.here {
				t.Errorf("read here: %v, want %v", here, test.here)
			}
			compare(t, []byte(test.reply))
		})
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range replies {
		f.Add([]byte(seed.reply))
	}
	f.Fuzz(compare)
}

// compare reads a reply here and with the SDK.
func compare(t *testing.T, reply []byte) {
	sdk := protocol(t)
	var want, got sqs.ReceiveMessageOutput
	wantErr := receive(sdk, respond(200, bytes.NewReader(reply)), &want)
	gotErr := receive(reader{sdk}, respond(200, bytes.NewReader(reply)), &got)
	if diff := cmp.Diff(fmt.Sprint(wantErr), fmt.Sprint(gotErr)); diff != "" {
		t.Errorf("error (-SDK +here):\n%s", diff)
	}
	if diff := cmp.Diff(want.Messages, got.Messages, unexported); diff != "" {
		t.Errorf("messages (-SDK +here):\n%s", diff)
	}
}

// Errors, and replies to anything but a receive, are the SDK's to read; so is a
// reply that breaks off.
func TestLeftToTheSDK(t *testing.T) {
	sdk := protocol(t)
	refusal := `{"__type":"com.amazonaws.sqs#OverLimit","message":"too many"}`
	err := receive(reader{sdk}, respond(403, strings.NewReader(refusal)), new(sqs.ReceiveMessageOutput))
	if api, ok := errors.AsType[smithy.APIError](err); !ok || api.ErrorCode() != "OverLimit" || api.ErrorMessage() != "too many" {
		t.Errorf("a refusal was read as %v", err)
	}

	url := sqs.GetQueueUrlOutput{}
	if err := receive(reader{sdk}, respond(200, strings.NewReader(`{"QueueUrl":"u"}`)), &url); err != nil || *url.QueueUrl != "u" {
		t.Errorf("another reply was read as %+v, %v", url, err)
	}

	cut := errors.New("connection reset")
	for _, at := range []int{0, 1, len(full) / 2, len(full)} {
		resp := respond(200, io.MultiReader(strings.NewReader(full[:at]), iotest.ErrReader(cut)))
		body := resp.Body.(*closing)
		got := sqs.ReceiveMessageOutput{}
		err := receive(reader{sdk}, resp, &got)
		if !errors.Is(err, cut) || errors.As(err, new(*smithy.DeserializationError)) == false || got.Messages != nil {
			t.Errorf("cut after %d bytes: %d messages, %v", at, len(got.Messages), err)
		}
		if _ = resp.Body.Close(); !body.closed {
			t.Errorf("cut after %d bytes: the connection's body cannot be closed any more", at)
		}
	}
}

// A client of another protocol is left alone, and one whose user adds to the SDK's.
func TestOtherProtocols(t *testing.T) {
	for _, other := range []smithyhttp.ClientProtocol{nil, another{protocol(t)}, reader{protocol(t)}} {
		o := sqs.Options{Protocol: other}
		if Read(&o); o.Protocol != other {
			t.Errorf("%T was replaced by %T", other, o.Protocol)
		}
	}
}

// TestRepliesDoNotShare: replies do not change when the buffers are used again.
func TestRepliesDoNotShare(t *testing.T) {
	sdk := protocol(t)
	var first, second sqs.ReceiveMessageOutput
	if err := receive(reader{sdk}, respond(200, strings.NewReader(full)), &first); err != nil {
		t.Fatal(err)
	}
	before, err := json.Marshal(first.Messages)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if err := receive(reader{sdk}, respond(200, strings.NewReader(strings.ToUpper(full[:14])+strings.Repeat("X", len(full)))), &second); err == nil {
			t.Fatal("nonsense was read")
		}
	}
	after, _ := json.Marshal(first.Messages)
	if diff := cmp.Diff(string(before), string(after)); diff != "" {
		t.Errorf("the messages changed (-before +after):\n%s", diff)
	}
}

// A receipt handle outlives its message where a retry waits for hours: it keeps
// nothing else in memory.
func TestHandleKeepsNothingElse(t *testing.T) {
	messages, ok := parse(usualReply())
	if !ok {
		t.Fatal("an ordinary reply was not read")
	}
	handle, first, second := messages[0].ReceiptHandle, weak.Make(messages[0].Body), weak.Make(messages[1].Body)
	if first.Value() == nil {
		t.Fatal("there was no body to begin with")
	}
	runtime.KeepAlive(messages)
	runtime.GC()
	if first.Value() != nil || second.Value() != nil {
		t.Error("a receipt handle keeps bodies in memory")
	}
	runtime.KeepAlive(handle)
}

// A message costs its five texts, what one of them is in, the map of its system
// attributes and the texts in it; a reply its messages and what they point to.
func TestAllocations(t *testing.T) {
	reply := usualReply()
	allocations := testing.AllocsPerRun(100, func() {
		if messages, ok := parse(reply); !ok || len(messages) != 10 {
			t.Fatalf("%d messages, %v", len(messages), ok)
		}
	})
	if allocations > 2+10*10 {
		t.Errorf("%v allocations for ten messages, want at most 102", allocations)
	}
}

func BenchmarkRead(b *testing.B) {
	reply, sdk := usualReply(), protocol(b)
	for _, way := range []struct {
		name     string
		protocol smithyhttp.ClientProtocol
	}{{"here", reader{sdk}}, {"SDK", sdk}} {
		b.Run(way.name, func(b *testing.B) {
			b.SetBytes(int64(len(reply)))
			b.ReportAllocs()
			for b.Loop() {
				var out sqs.ReceiveMessageOutput
				if err := receive(way.protocol, respond(200, bytes.NewReader(reply)), &out); err != nil || len(out.Messages) != 10 {
					b.Fatalf("%d messages, %v", len(out.Messages), err)
				}
			}
		})
	}
}

// usualReply has ten messages of 1 KiB of JSON.
func usualReply() []byte {
	var messages []map[string]any
	for i := range 10 {
		body := fmt.Sprintf(`{"id":"evt_%032d","lines":[`, i)
		for len(body) < 960 {
			body += `{"sku":"SKU-00000001","title":"A thing with a name","price":1250},`
		}
		messages = append(messages, map[string]any{
			"MessageId": fmt.Sprintf("5fea7756-0ea4-451a-a703-%012d", i), "ReceiptHandle": strings.Repeat("AQEB", 70),
			"MD5OfBody": strings.Repeat("0", 32), "Body": body + "{}]}",
			"Attributes": map[string]string{"SentTimestamp": "1700000000000", "ApproximateFirstReceiveTimestamp": "1700000000000", "ApproximateReceiveCount": "1"},
		})
	}
	reply, err := json.Marshal(map[string]any{"Messages": messages})
	if err != nil {
		panic(err)
	}
	return reply
}

// protocol is the one that the SDK's client speaks.
func protocol(tb testing.TB) (p smithyhttp.ClientProtocol) {
	tb.Helper()
	sqs.New(sqs.Options{Region: "eu-west-1"}, func(o *sqs.Options) { p = o.Protocol })
	if _, ok := protocolOf(Read, p).(reader); !ok {
		tb.Fatalf("the SDK speaks %v, which is not read here", p.ID())
	}
	return p
}

func protocolOf(option func(*sqs.Options), p smithyhttp.ClientProtocol) smithyhttp.ClientProtocol {
	o := sqs.Options{Protocol: p}
	option(&o)
	return o.Protocol
}

func receive(p smithyhttp.ClientProtocol, resp *smithyhttp.Response, out smithy.Deserializable) error {
	operation := smithy.NewOperationSchema(schemas.ReceiveMessage, schemas.ReceiveMessageRequest, schemas.ReceiveMessageResult)
	return p.DeserializeResponse(context.Background(), operation, sqs.TypeRegistry, resp, out)
}

func respond(status int, body io.Reader) *smithyhttp.Response {
	return &smithyhttp.Response{Response: &http.Response{StatusCode: status, Header: http.Header{}, Body: &closing{Reader: body}, ContentLength: -1}}
}

type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

// another is a protocol of the user's.
type another struct{ smithyhttp.ClientProtocol }

// unexported leaves out the marker that the SDK puts into each type.
var unexported = cmpopts.IgnoreUnexported(types.Message{}, types.MessageAttributeValue{})
