package dashboard_test

import (
	"bytes"
	"net/url"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// TestResendKeepsBytesOfAttributes: an attribute that nobody edits is sent as it was, with the ends of its lines and
// its type: a browser sends each line of a form with CRLF.
func TestResendKeepsBytesOfAttributes(t *testing.T) {
	s := serve(t, nil)
	at := s.URL + account + "orders-dead"
	text := func(of, value string) types.MessageAttributeValue {
		return types.MessageAttributeValue{DataType: &of, StringValue: &value}
	}
	_, err := s.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &at, MessageBody: aws.String("x"), MessageAttributes: map[string]types.MessageAttributeValue{
		"crlf": text("String", "a\r\nb"), "lf": text("String", "a\nb"), "n": text("Number.int", "7"), "raw": {DataType: aws.String("Binary"), BinaryValue: []byte("a\r\nb\n\x00")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	before := s.only("orders-dead")
	form := url.Values{"body": {"y"}, "to": {"orders-dead"}, "delete": {"yes"}, "name": {"crlf", "lf", "n"}, "value": {"a\r\nb", "a\r\nb", "7"}}
	if got := s.do("POST", "/ui/queues/orders-dead/messages/"+before.ID+"/resend", form, s.browser()...); got.StatusCode != 200 {
		t.Fatalf("resend: %d %s", got.StatusCode, got.text)
	}
	after := s.only("orders-dead")
	if after.Body != "y" || len(after.Attributes) != 4 {
		t.Errorf("afterwards the queue has %+v", after)
	}
	for _, b := range before.Attributes {
		found := false
		for _, a := range after.Attributes {
			found = found || a.Name == b.Name && a.DataType == b.DataType && a.StringValue == b.StringValue && bytes.Equal(a.BinaryValue, b.BinaryValue)
		}
		if !found {
			t.Errorf("the attribute %q is not as before, %+v: %+v", b.Name, b, after.Attributes)
		}
	}
}

// TestResendRemovesWhatWasChanged: an attribute that is to be removed is not sent, also if its text was changed before its
// box was ticked.
func TestResendRemovesWhatWasChanged(t *testing.T) {
	s := serve(t, nil)
	at := s.URL + account + "orders-dead"
	attributes := map[string]types.MessageAttributeValue{
		"tenant": {DataType: aws.String("String"), StringValue: aws.String("acme")}, "trace": {DataType: aws.String("String"), StringValue: aws.String("on")},
	}
	if _, err := s.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &at, MessageBody: aws.String("x"), MessageAttributes: attributes}); err != nil {
		t.Fatal(err)
	}
	form := url.Values{"body": {"x"}, "to": {"orders-dead"}, "delete": {"yes"}, "name": {"tenant", "trace"}, "value": {"acme", "off"}, "remove": {"trace"}}
	if got := s.do("POST", "/ui/queues/orders-dead/messages/"+s.only("orders-dead").ID+"/resend", form, s.browser()...); got.StatusCode != 200 {
		t.Fatalf("resend: %d %s", got.StatusCode, got.text)
	}
	if after := s.only("orders-dead"); len(after.Attributes) != 1 || after.Attributes[0].Name != "tenant" || after.Attributes[0].StringValue != "acme" {
		t.Errorf("afterwards the queue has %+v", after)
	}
}
