package reprise

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/reprise-sqs/reprise/internal/history"
)

// TestHistoryAttributeIsOne: the machine speaks of the attribute that users know.
func TestHistoryAttributeIsOne(t *testing.T) {
	if HistoryAttribute != history.Attribute {
		t.Errorf("HistoryAttribute is %q, and history.Attribute %q", HistoryAttribute, history.Attribute)
	}
}

// TestIntact by the digests that AWS returned.
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
