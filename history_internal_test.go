package reprise

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// FuzzReadHistory: what is read is within bounds, and reads the same when it is
// written again; anything else is an error, not a panic.
func FuzzReadHistory(f *testing.F) {
	sent := time.UnixMilli(946684800000)
	good := history{Queue: "q", Origin: "id", Attempt: 3, Sent: sent.UnixMilli() - 5, First: sent.UnixMilli() - 4, SentAt: sent.UnixMilli(), NotBefore: sent.UnixMilli() + 1, Error: "<&>\x00é"}
	for _, text := range []string{good.String(), "", "{}", "null", "[1]", good.String() + "x", strings.Repeat("[", 3000), `{"queue":"q","queue":"r"}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		h, err := readHistory(text, "q", sent)
		if err != nil {
			return
		}
		if h.Queue != "q" || h.Origin == "" || len(h.Origin) > maxOrigin || len(h.Trail) > maxTrail || len(h.Error) > 3*maxHistoryError || h.Attempt < 0 || h.Attempt > maxCount ||
			time.UnixMilli(h.SentAt).Sub(sent).Abs() > sendingTolerance || h.Sent > h.First || h.First > h.SentAt ||
			time.UnixMilli(h.NotBefore).Sub(sent) > maxHistoryAge+sendingTolerance || sent.Sub(time.UnixMilli(h.Sent)) > maxHistoryAge+sendingTolerance {
			t.Errorf("%q was read as %+v", text, h)
		}
		if written := h.String(); len(written) <= maxHistory {
			again, err := readHistory(written, "q", sent)
			if err != nil {
				t.Fatalf("%q does not read again: %v", written, err)
			}
			if diff := cmp.Diff(h, again, cmpopts.IgnoreUnexported(history{})); diff != "" {
				t.Errorf("read again (-first +second):\n%s", diff)
			}
		}
	})
}

// TestHistoryFits whatever the error and the message's attributes are like.
func TestHistoryFits(t *testing.T) {
	now := time.Now()
	queue := queueURL{name: strings.Repeat("q", 80)}
	c := &Consumer{queue: queue, copyTo: queue}
	for _, text := range []string{"", strings.Repeat("x", 5000), strings.Repeat("\x00", 5000), strings.Repeat("\"", 5000), strings.Repeat("💥", 5000), strings.Repeat("\xff", 5000), "\uFFFE\uFFFF"} {
		d := &delivery{verdict: verdict{outcome: OutcomeRetry, due: now.Add(time.Hour), err: errors.New(text), alone: true, unavailable: true}}
		d.msg = &Message{ID: "id", OriginID: strings.Repeat(`"`, maxOrigin), Attempt: maxCount, Trail: strings.Repeat(`"`, maxTrail), Sent: now.Add(-time.Hour), FirstReceived: now.Add(time.Hour)}
		written := c.historyFor(d, now)
		h, err := readHistory(*written.StringValue, c.queue.name, now)
		if err != nil {
			t.Fatalf("the history of a message that failed with %.20q does not read: %v", text, err)
		}
		if h.Attempt != maxCount || h.Alone != 1 || len(h.Trail) != maxTrail || !h.Unavailable || time.UnixMilli(h.NotBefore).Before(now.Add(time.Hour)) {
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
