package dashboard_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/sqsserver"
)

// only returns the one message of a queue.
func (s *served) only(queue string) sqsserver.MessageInfo {
	s.t.Helper()
	all, err := s.sqs.Messages(queue, sqsserver.Page{})
	if err != nil || len(all) != 1 {
		s.t.Fatalf("queue %s has %d messages, %v; want one", queue, len(all), err)
	}
	return all[0]
}

// TestResend: the copy of a dead letter is what the form says, goes where the letter came from, and the original stays
// until it is to be deleted.
func TestResend(t *testing.T) {
	s := serve(t, nil)
	at := s.URL + account + "orders-dead"
	out, err := s.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &at, MessageBody: aws.String("one\ntwo"), MessageAttributes: map[string]types.MessageAttributeValue{
		"tenant": {DataType: aws.String("String"), StringValue: aws.String("acme")},
		"old":    {DataType: aws.String("Number"), StringValue: aws.String("1")},
		"bytes":  {DataType: aws.String("Binary"), BinaryValue: []byte{0, 255}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	path := "/ui/queues/orders-dead/messages/" + *out.MessageId
	page := s.do("GET", path+"/edit", nil).text
	for _, want := range []string{`action="` + path + `/resend"`, ">\none\ntwo</textarea>", ">\nacme</textarea>", "It is kept as it is: it is binary.", "<option>orders</option><option>orders-dead</option>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	if !strings.Contains(page, `name="delete" value="yes" checked>`) {
		t.Error("a dead letter would stay beside its copy by default")
	}
	if page := s.do("GET", "/ui/queues/orders/messages/"+s.send("orders", "alive")+"/edit", nil).text; !strings.Contains(page, `name="delete" value="yes">`) {
		t.Errorf("a message that is alive would be deleted by default:\n%s", page)
	}
	if err := s.sqs.Delete("orders", s.only("orders").ID); err != nil {
		t.Fatal(err)
	}
	form := url.Values{
		"body": {"one\r\n2"}, "name": {"tenant", "old"}, "value": {"bolt", "1"}, "remove": {"old"}, "new-name": {"mended"}, "new-value": {"yes"}, "to": {"orders"},
	}
	sent := s.do("POST", path+"/resend", form, s.browser()...)
	s.only("orders-dead")
	m := s.only("orders")
	if want := `Sent to orders as <a href="/ui/queues/orders/messages/` + m.ID + `">` + m.ID + `</a>. The original is still here.`; !strings.Contains(sent.text, want) {
		t.Fatalf("resend: %d %s, want %s", sent.StatusCode, sent.text, want)
	}
	if m.Body != "one\n2" {
		t.Errorf("the body is %q", m.Body)
	}
	got := make(map[string]string)
	for _, a := range m.Attributes {
		got[a.Name] = a.DataType + ":" + a.StringValue + string(a.BinaryValue)
	}
	if len(got) != 3 || got["tenant"] != "String:bolt" || got["mended"] != "String:yes" || got["bytes"] != "Binary:\x00\xff" {
		t.Errorf("the attributes are %q", got)
	}
	for field, want := range map[string]string{"body": "the new body is empty", "new-name": "has an attribute"} {
		wrong := url.Values{"body": {"x"}, "to": {"orders"}, "delete": {"yes"}}
		wrong.Set(field, map[string]string{"body": "", "new-name": "tenant"}[field])
		if got := s.do("POST", path+"/resend", wrong, s.browser()...); !strings.Contains(got.text, want) {
			t.Errorf("%s: %d %s", field, got.StatusCode, got.text)
		}
		s.only("orders-dead")
		s.only("orders")
	}
	for field, want := range map[string]string{"to": "choose the queue", "delete": "load the page again"} { // half a form sends and deletes nothing
		wrong := url.Values{"body": {"x"}, "to": {"orders"}, "delete": {"yes"}}
		wrong.Set(field, map[string]string{"to": "", "delete": "on"}[field])
		if got := s.do("POST", path+"/resend", wrong, s.browser()...); !strings.Contains(got.text, "Nothing was sent") || !strings.Contains(got.text, want) {
			t.Errorf("%s: %d %s", field, got.StatusCode, got.text)
		}
		s.only("orders-dead")
		s.only("orders")
	}
	// A queue that does not take it keeps the original.
	if got := s.do("POST", path+"/resend", url.Values{"body": {"x"}, "to": {"absent"}, "delete": {"yes"}}, s.browser()...); got.StatusCode == 200 {
		t.Errorf("to a queue that does not exist: %s", got.text)
	}
	s.only("orders-dead")
	if got := s.do("POST", path+"/resend", url.Values{"body": {"x"}, "to": {"orders"}, "delete": {"yes"}}, s.browser()...); !strings.Contains(got.text, "The original is deleted.") {
		t.Errorf("with the original deleted: %d %s", got.StatusCode, got.text)
	}
	if s.inQueue("orders-dead") != 0 || s.inQueue("orders") != 2 {
		t.Errorf("the queues have %d and %d messages, want 0 and 2", s.inQueue("orders-dead"), s.inQueue("orders"))
	}
}

// TestResendFIFO: the copy stays in its group and is no duplicate of its original.
func TestResendFIFO(t *testing.T) {
	s := serve(t, nil)
	s.create("ordered.fifo", map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"})
	at := s.URL + account + "ordered.fifo"
	if _, err := s.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &at, MessageBody: aws.String("x"), MessageGroupId: aws.String("g")}); err != nil {
		t.Fatal(err)
	}
	before := s.only("ordered.fifo")
	form := url.Values{"body": {"x"}, "to": {"ordered.fifo"}, "delete": {"yes"}}
	if got := s.do("POST", "/ui/queues/ordered.fifo/messages/"+before.ID+"/resend", form, s.browser()...); got.StatusCode != 200 {
		t.Fatalf("resend: %d %s", got.StatusCode, got.text)
	}
	if after := s.only("ordered.fifo"); after.ID == before.ID || after.Group != "g" || after.Body != "x" {
		t.Errorf("afterwards the queue has %+v", after)
	}
}

// TestResendKeepsBytes: a body that a form would change is not offered to be edited, and lines keep their ends.
func TestResendKeepsBytes(t *testing.T) {
	s := serve(t, nil)
	for body, why := range map[string]string{
		"a\u202eb":                  "direction of text",
		"a\rb":                      "control characters",
		"a\r\nb\nc":                 "different ways",
		strings.Repeat("x", 65<<10): "more than 64 KiB",
	} {
		path := "/ui/queues/orders/messages/" + s.send("orders", body)
		if page := s.do("GET", path, nil).text; strings.Contains(page, "/edit") || !strings.Contains(page, why) {
			t.Errorf("%.10q: the page does not say %q", body, why)
		}
		if got := s.do("POST", path+"/resend", url.Values{"body": {"x"}, "to": {"orders"}}, s.browser()...); !strings.Contains(got.text, "cannot be edited here") {
			t.Errorf("%.10q: %d %s", body, got.StatusCode, got.text)
		}
	}
	path := "/ui/queues/orders-dead/messages/" + s.send("orders-dead", "a\r\nb")
	if got := s.do("POST", path+"/resend", url.Values{"body": {"a\r\nb"}, "to": {"orders-dead"}, "delete": {"yes"}}, s.browser()...); got.StatusCode != 200 {
		t.Fatalf("resend: %d %s", got.StatusCode, got.text)
	}
	if m := s.only("orders-dead"); m.Body != "a\r\nb" {
		t.Errorf("the body is %q", m.Body)
	}
}
