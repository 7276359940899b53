package reprise

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/reprise-sqs/reprise/internal/history"
)

// TestHistoryAttributeIsOne: the machine names the same attribute as the documentation.
func TestHistoryAttributeIsOne(t *testing.T) {
	if HistoryAttribute != history.Attribute {
		t.Errorf("HistoryAttribute is %q, and history.Attribute %q", HistoryAttribute, history.Attribute)
	}
}

// TestSizeWithoutHistory: the history that a message carries counts neither as one of its
// attributes nor in its size, since another takes its place in the next copy. A message with nine
// attributes of its own could be copied only once otherwise.
func TestSizeWithoutHistory(t *testing.T) {
	c, err := New(struct{ Client }{}, "https://sqs.eu-west-1.amazonaws.com/1/q",
		HandlerFunc(func(context.Context, *Message) error { return nil }), Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	now := time.UnixMilli(1_772_366_400_000)
	for _, queue := range []string{"q", "another"} { // of which the history is ignored
		h := history.History{Queue: queue, Origin: "first", Attempt: 1}
		h.Date(now, now, now, time.Time{})
		d := &c.unpack([]types.Message{{
			MessageId: aws.String("copy"), Body: aws.String("hello"),
			Attributes: map[string]string{"SentTimestamp": strconv.FormatInt(now.UnixMilli(), 10)},
			MessageAttributes: map[string]types.MessageAttributeValue{
				"color":          {DataType: aws.String("String"), StringValue: aws.String("blue")},
				HistoryAttribute: {DataType: aws.String("String"), StringValue: aws.String(h.String())},
			},
		}}, now)[0]
		if adopted := d.History != nil; adopted != (queue == "q") {
			t.Errorf("the history of queue %s is adopted: %v", queue, adopted)
		}
		if size := len("hello" + "color" + "String" + "blue"); d.Attributes != 1 || d.Size != size {
			t.Errorf("with a history of queue %s it has %d attributes and %d bytes, want 1 and %d", queue, d.Attributes, d.Size, size)
		}
	}
}

// TestIntact: content is compared with the digests that AWS returned.
func TestIntact(t *testing.T) {
	message := func(change func(*types.Message)) *types.Message {
		m := &types.Message{
			Body: aws.String("hello"), MD5OfBody: aws.String("5d41402abc4b2a76b9719d911017c592"),
			MD5OfMessageAttributes: aws.String("d838729972a4b70e2d2acd9d59ac847c"),
			MessageAttributes: map[string]types.MessageAttributeValue{
				"color": {DataType: aws.String("String"), StringValue: aws.String("blue")},
				"count": {DataType: aws.String("Number"), StringValue: aws.String("3")},
				"blob":  {DataType: aws.String("Binary"), BinaryValue: []byte{1, 2, 3}},
			},
		}
		change(m)
		return m
	}
	for _, tt := range []struct {
		name   string
		change func(*types.Message)
		want   bool
	}{
		{"as it was sent", func(*types.Message) {}, true},
		{"no attributes", func(m *types.Message) { m.MessageAttributes, m.MD5OfMessageAttributes = nil, nil }, true},
		{"another body", func(m *types.Message) { m.Body = aws.String("hallo") }, false},
		{"no digest of the body", func(m *types.Message) { m.MD5OfBody = nil }, false},
		{"no digest of the attributes", func(m *types.Message) { m.MD5OfMessageAttributes = nil }, false},
		{"an attribute less", func(m *types.Message) { delete(m.MessageAttributes, "count") }, false},
		{"no attributes, and their digest", func(m *types.Message) { m.MessageAttributes = nil }, false},
		{"another label", func(m *types.Message) {
			m.MessageAttributes["color"] = types.MessageAttributeValue{DataType: aws.String("String.x"), StringValue: aws.String("blue")}
		}, false},
	} {
		if got := intact(message(tt.change)); got != tt.want {
			t.Errorf("%s: intact = %v", tt.name, got)
		}
	}
}
