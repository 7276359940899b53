package operate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// TestTrace: messages tell of those before them, each event once, in the order of the times.
func TestTrace(t *testing.T) {
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	ms := func(minutes int) string { return fmt.Sprint(at.Add(time.Duration(minutes) * time.Minute).UnixMilli()) }
	read := func(id string, sent int, attributes map[string]types.MessageAttributeValue, system map[string]string) operate.Message {
		all := map[string]string{"SentTimestamp": ms(sent), "ApproximateReceiveCount": "2"}
		for k, v := range system {
			all[k] = v
		}
		return operate.Read(urlOf+"q", types.Message{MessageId: aws.String(id), Attributes: all, MessageAttributes: attributes}, nil)
	}
	copied := read("copy", 10, map[string]types.MessageAttributeValue{
		reprise.HistoryAttribute: stringAttribute(fmt.Sprintf(`{"origin":"first","attempt":2,"sent":%s,"first":%s,"notBefore":%s,"error":"no"}`, ms(0), ms(1), ms(20))),
	}, nil)
	letter := read("letter", 29, map[string]types.MessageAttributeValue{
		reprise.StoryAttribute: stringAttribute(`{"reason":"attempts","attempts":3,"sent":"2026-01-02T12:00:00Z","first":"2026-01-02T12:01:00Z","last":"2026-01-02T12:29:00.000999Z","error":"no","source":"arn:aws:sqs:eu-west-1:1:orders","message":"copy","origin":"first"}`),
	}, nil)
	moved := read("moved", 0, nil, map[string]string{"DeadLetterQueueSourceArn": "arn:aws:sqs:eu-west-1:1:orders"})
	plain := read("plain", 0, nil, nil)
	retried := read("retried", 0, nil, map[string]string{"ApproximateFirstReceiveTimestamp": ms(3)})
	looked := read("looked", 29, map[string]types.MessageAttributeValue{
		reprise.StoryAttribute: stringAttribute(`{"reason":"permanent","attempts":1,"last":"2026-01-02T12:29:00Z","source":"arn:aws:sqs:eu-west-1:1:orders","message":"first"}`),
	}, map[string]string{"ApproximateFirstReceiveTimestamp": ms(30)})
	early := read("early", 41, nil, nil) // by a server whose clock is a minute ahead
	for _, test := range []struct {
		name  string
		found []operate.Found
		want  []string
	}{
		{"none", nil, nil},
		{"not received yet", []operate.Found{{Queue: "orders", Message: plain}}, []string{
			"0 orders sent plain ", "40 orders is here plain visible, received 2 times",
		}},
		{"retried in place", []operate.Found{{Queue: "orders", Message: retried}}, []string{
			"0 orders sent retried ", "3 orders received first retried ", "40 orders is here retried visible, received 2 times",
		}},
		{"a letter that somebody looked at", []operate.Found{{Queue: "dead", Message: looked}}, []string{
			"29 orders given up first permanent after 1 attempt", "29 dead dead-lettered looked ", "40 dead is here looked visible, received 2 times",
		}},
		{"sent in our future", []operate.Found{{Queue: "orders", Message: early}}, []string{
			"41 orders sent early ", "41 orders is here early visible, received 2 times",
		}},
		{"copy and letter", []operate.Found{{Queue: "dead", Message: letter}, {Queue: "orders", Message: copied}}, []string{
			"0 orders sent first ", "1 orders received first first ", "10 orders sent back as a copy copy after 2 attempts: due 2026-01-02T12:20:00Z: no",
			"29 orders given up copy attempts after 3 attempts: no", "29 dead dead-lettered letter ",
			"40 dead is here letter visible, received 2 times", "40 orders is here copy visible, received 2 times",
		}},
		{"moved by SQS", []operate.Found{{Queue: "dead", Message: moved}}, []string{
			"0 orders sent moved SQS moved it to dead later, at a time that it does not report", "40 dead is here moved visible, received 2 times",
		}},
	} {
		var got []string
		for _, e := range operate.Trace(test.found, at.Add(40*time.Minute)) {
			got = append(got, fmt.Sprintf("%d %s %s %s %s", e.At.Sub(at)/time.Minute, e.Queue, e.Event, e.ID, e.Detail))
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
	byOrigin := operate.Selection{IDs: []string{"first"}}
	if !byOrigin.Matches(&copied, at) || !byOrigin.Matches(&letter, at) || byOrigin.Matches(&plain, at) {
		t.Error("a copy is not found by the id of the first message")
	}
	if _, shown := copied.Attributes[reprise.HistoryAttribute]; shown {
		t.Error("the history is shown as an attribute of the sender")
	}
	for _, text := range []string{"", "{", "[]", `{"sent":-1,"notBefore":9223372036854775807}`} {
		broken := read("x", 0, map[string]types.MessageAttributeValue{reprise.HistoryAttribute: stringAttribute(text)}, nil)
		if broken.Copy != nil && (!broken.Copy.Sent.IsZero() || !broken.Copy.Due.IsZero()) {
			t.Errorf("%q is believed: %+v", text, broken.Copy)
		}
	}
}
