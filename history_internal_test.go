package reprise

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise/internal/history"
)

// TestHistoryFits whatever the error and the message's attributes are like.
func TestHistoryFits(t *testing.T) {
	now := time.Now()
	queue := queueURL{name: strings.Repeat("q", 80)}
	c := &core{settings: &settings{queue: queue, copyTo: queue}}
	for _, text := range []string{"", strings.Repeat("x", 5000), strings.Repeat("\x00", 5000), strings.Repeat("\"", 5000), strings.Repeat("💥", 5000), strings.Repeat("\xff", 5000), "\uFFFE\uFFFF"} {
		d := &delivery{verdict: verdict{outcome: OutcomeRetry, due: now.Add(time.Hour), err: errors.New(text), alone: true, unavailable: true}}
		d.msg = &Message{ID: "id", OriginID: strings.Repeat(`"`, history.MaxOrigin), Attempt: history.MaxCount, Trail: strings.Repeat(`"`, history.MaxTrail), Sent: now.Add(-time.Hour), FirstReceived: now.Add(time.Hour)}
		written := c.historyFor(d, now)
		h, err := history.Read(*written.StringValue, c.queue.name, now)
		if err != nil {
			t.Fatalf("the history of a message that failed with %.20q does not read: %v", text, err)
		}
		if h.Attempt != history.MaxCount || h.Alone != 1 || len(h.Trail) != history.MaxTrail || !h.Unavailable || time.UnixMilli(h.NotBefore).Before(now.Add(time.Hour)) {
			t.Errorf("history %+v", h)
		}
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
