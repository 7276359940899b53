package reprise_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/reprisetest"
)

// TestUndecodableJSONIsDeadLetteredWithItsReason: at once, unchanged, and the story
// says which type it should have been and what was wrong; the handler does not see
// it.
func TestUndecodableJSONIsDeadLetteredWithItsReason(t *testing.T) {
	type order struct {
		Items int `json:"items"`
	}
	for _, tt := range []struct{ body, want string }{
		{`{"items":"three"}`, "decoding the body as reprise_test.order: json: cannot unmarshal string into Go struct field order.items of type int"},
		{`{"items":3`, "decoding the body as reprise_test.order: unexpected end of JSON input"},
		{`{"items":3} {"items":4}`, "decoding the body as reprise_test.order: invalid character '{' after top-level value"},
	} {
		synctest.Test(t, func(t *testing.T) {
			q := reprisetest.NewQueue(t, nil)
			dead := q.NewDeadLetterQueue(5)
			q.ConsumeWith(q.Client(), reprise.JSON(func(context.Context, order) error {
				t.Error("the handler ran")
				return nil
			}), reprise.Config{})
			q.Send(tt.body)
			q.WaitEmpty(time.Minute)
			letters := dead.Messages()
			if len(letters) != 1 || letters[0].Body != tt.body {
				t.Fatalf("dead letters %+v", letters)
			}
			if s := storyOf(t, letters[0]); s.Reason != "permanent" || s.Attempts != 1 || !strings.HasSuffix(s.Error, tt.want) {
				t.Errorf("story %+v, want %s", s, tt.want)
			}
		})
	}
}
