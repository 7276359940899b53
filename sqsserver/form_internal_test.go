package sqsserver

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestForm(t *testing.T) {
	f := newForm("/1/q")
	f.parse([]byte("&A=1&B.2=two&B.10=ten&B.x=ignored&B.0=ignored&B.02=ignored&B.%2B2=ignored&C.1.D=d&C.1.E.F=f&A=2&%41+b=+%2B&noValue&deep.1.2.3.4.5.6.7.8=ignored"))
	if err := f.err(); err != nil {
		t.Fatal(err)
	}
	var nested []string
	for c := range f.elements("C") {
		nested = append(nested, c.text("D"), c.parts["E"].text("F"))
	}
	got := [][]string{{f.text("A"), f.text("A b"), f.text("noValue"), f.text("missing")}, f.texts("B"), nested, f.texts("missing")}
	if diff := cmp.Diff([][]string{{"2", " +", "", ""}, {"two", "ten"}, {"d", "f"}, nil}, got); diff != "" {
		t.Errorf("form (-want +got):\n%s", diff)
	}
	if got := f.queueURL(); got != "/1/q" {
		t.Errorf("queue %q, want that of the path", got)
	}
	if f.parts["deep"] != nil {
		t.Error("a name with more parts than any has been kept")
	}
	f.parse([]byte("QueueUrl=other"))
	if got := f.queueURL(); got != "other" {
		t.Errorf("queue %q, want that of the parameter", got)
	}
}

// FuzzForm compares the decoding of parameters with that of net/url, and checks that each
// action reads the same from the parameters in another order.
func FuzzForm(f *testing.F) {
	f.Add("Action=SendMessage&MessageBody=a%20b+c&MessageAttribute.1.Name=n&MessageAttribute.1.Value.DataType=String&MessageAttribute.1.Value.StringValue=v")
	f.Add("SendMessageBatchRequestEntry.1.Id=a&SendMessageBatchRequestEntry.1.MessageBody=x&SendMessageBatchRequestEntry.1.MessageAttribute.2.Value.BinaryValue=AQID")
	f.Add("Attribute.1.Name=a&Attribute.1.Value=b&Tag.3.Key=k&Tag.3.Value=v&TagKey.1=k&AWSAccountId.1=1&ActionName.2=2&AttributeName.1=All")
	f.Add("%&=&&.=&..=&a.=&%zz=%4&DelaySeconds=99999999999&MaxResults=-1&.1.=x")
	f.Fuzz(func(t *testing.T, text string) {
		parsed := newForm("")
		parsed.parse([]byte(text))
		if want, err := url.ParseQuery(text); err == nil && parsed.err() == nil && !strings.Contains(text, ";") {
			for name, values := range want {
				at := parsed
				for _, part := range strings.Split(name, ".") {
					if at = at.parts[part]; at == nil {
						break
					}
				}
				if deep := strings.Count(name, ".") >= maxNameParts; deep != (at == nil) {
					t.Fatalf("%q: kept %v", name, at != nil)
				}
				if at != nil && !slices.Contains(values, at.value) {
					t.Errorf("%q is %q, want one of %q", name, at.value, values)
				}
			}
		}
		for action := range actions {
			in := queryInputs[action]()
			again := queryInputs[action]()
			f, g := newForm(""), newForm("")
			f.parse([]byte(text))
			if f.err() != nil {
				continue
			}
			if decodeQuery(f, in) != nil {
				continue
			}
			// The result does not depend on the order of the parameters, if none is
			// given twice.
			parameters := strings.Split(text, "&")
			slices.Reverse(parameters)
			g.parse([]byte(strings.Join(parameters, "&")))
			if err := decodeQuery(g, again); err != nil {
				t.Fatal(err)
			}
			if f.request.parameters == distinct(f) {
				if diff := cmp.Diff(in, again, whole); diff != "" {
					t.Errorf("%s read backwards:\n%s", action, diff)
				}
			}
		}
	})
}

// distinct counts the parameters that a form has kept.
func distinct(f *form) (n int) {
	for _, part := range f.parts {
		n += max(distinct(part), 1)
	}
	return n
}

// queryInputs makes the inputs of all actions.
var queryInputs = map[string]func() queryInput{
	actionAddPermission:                func() queryInput { return new(AddPermissionInput) },
	actionCancelMessageMoveTask:        func() queryInput { return new(CancelMessageMoveTaskInput) },
	actionChangeMessageVisibility:      func() queryInput { return new(ChangeMessageVisibilityInput) },
	actionChangeMessageVisibilityBatch: func() queryInput { return new(ChangeMessageVisibilityBatchInput) },
	actionCreateQueue:                  func() queryInput { return new(CreateQueueInput) },
	actionDeleteMessage:                func() queryInput { return new(DeleteMessageInput) },
	actionDeleteMessageBatch:           func() queryInput { return new(DeleteMessageBatchInput) },
	actionDeleteQueue:                  func() queryInput { return new(DeleteQueueInput) },
	actionGetQueueAttributes:           func() queryInput { return new(GetQueueAttributesInput) },
	actionGetQueueUrl:                  func() queryInput { return new(GetQueueUrlInput) },
	actionListDeadLetterSourceQueues:   func() queryInput { return new(ListDeadLetterSourceQueuesInput) },
	actionListMessageMoveTasks:         func() queryInput { return new(ListMessageMoveTasksInput) },
	actionListQueueTags:                func() queryInput { return new(ListQueueTagsInput) },
	actionListQueues:                   func() queryInput { return new(ListQueuesInput) },
	actionPurgeQueue:                   func() queryInput { return new(PurgeQueueInput) },
	actionReceiveMessage:               func() queryInput { return new(ReceiveMessageInput) },
	actionRemovePermission:             func() queryInput { return new(RemovePermissionInput) },
	actionSendMessage:                  func() queryInput { return new(SendMessageInput) },
	actionSendMessageBatch:             func() queryInput { return new(SendMessageBatchInput) },
	actionSetQueueAttributes:           func() queryInput { return new(SetQueueAttributesInput) },
	actionStartMessageMoveTask:         func() queryInput { return new(StartMessageMoveTaskInput) },
	actionTagQueue:                     func() queryInput { return new(TagQueueInput) },
	actionUntagQueue:                   func() queryInput { return new(UntagQueueInput) },
}

func TestEveryActionReadsForms(t *testing.T) {
	if len(actions) != 23 || len(queryInputs) != len(actions) {
		t.Errorf("%d actions, %d inputs; SQS has 23", len(actions), len(queryInputs))
	}
	for action, newInput := range queryInputs {
		in := newInput()
		if actions[action] == nil {
			t.Errorf("%s is no action", action)
		}
		f := newForm("")
		f.parse([]byte("QueueUrl=x&QueueName=x&SourceArn=x&TaskHandle=x&QueueNamePrefix=x"))
		if err := decodeQuery(f, in); err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(in)
		if err != nil || !strings.Contains(string(text), `"x"`) {
			t.Errorf("%s reads nothing from a form: %s", action, text)
		}
	}
}

// A batch of ten messages of 1 KiB costs an allocation for each text that it has,
// and a few for the tree.
func BenchmarkDecodeForm(b *testing.B) {
	values := url.Values{"Action": {"SendMessageBatch"}, "QueueUrl": {"http://localhost/000000000000/q"}}
	for i := range 10 {
		entry := "SendMessageBatchRequestEntry." + string(rune('0'+i))
		values.Set(entry+".Id", "id")
		values.Set(entry+".MessageBody", exampleBody(i))
	}
	text := []byte(values.Encode())
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		f := newForm("")
		f.parse(text)
		if err := decodeQuery(f, new(SendMessageBatchInput)); err != nil {
			b.Fatal(err)
		}
	}
}
