package delivery

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/adapters/dynamostore"
)

// TestOnce: a message that comes again is not delivered again, by the key that is set, even
// after the queue's settings have changed; without a store it is.
func TestOnce(t *testing.T) {
	attribute := func(value string) map[string]types.MessageAttributeValue {
		return map[string]types.MessageAttributeValue{"order": {DataType: aws.String("String"), StringValue: &value}}
	}
	first := &reprise.Message{ID: "a", OriginID: "a", Body: `{"order":1}`, GroupID: "g", DeduplicationID: "d", Attributes: attribute("1")}
	for _, test := range []struct {
		settings []string
		second   *reprise.Message
		runs     int
	}{
		{nil, first, 2},
		{[]string{"idempotency", "memory"}, first, 1},
		{[]string{"idempotency", "memory"}, &reprise.Message{ID: "b", OriginID: "b", Body: first.Body}, 2},
		{[]string{"idempotency", "memory", "idempotency-key", "body"}, &reprise.Message{ID: "b", OriginID: "b", Body: first.Body}, 1},
		{[]string{"idempotency", "memory", "idempotency-key", "attribute:order"}, &reprise.Message{ID: "b", OriginID: "b", Body: first.Body, Attributes: attribute("1")}, 1},
		{[]string{"idempotency", "memory", "idempotency-key", "attribute:order"}, &reprise.Message{ID: "b", OriginID: "b", Body: first.Body, Attributes: attribute("2")}, 2},
		{[]string{"idempotency", "memory", "idempotency-key", "json:/order"}, &reprise.Message{ID: "b", OriginID: "b", Body: `{"order":1,"more":2}`}, 1},
		{[]string{"idempotency", "memory", "idempotency-key", "deduplication-id"}, &reprise.Message{ID: "b", OriginID: "b", Body: "b", GroupID: "g", DeduplicationID: "d"}, 1},
		{[]string{"idempotency", "memory", "idempotency-key", "deduplication-id"}, &reprise.Message{ID: "b", OriginID: "b", Body: first.Body, GroupID: "g", DeduplicationID: "e"}, 2},
	} {
		runs, stores := 0, new(Stores)
		for _, m := range []*reprise.Message{first, test.second} {
			s := settingsOf(t, append([]string{"exec", "true"}, test.settings...)...)
			if err := s.Check("q"); err != nil {
				t.Fatal(err)
			}
			h, err := s.Once(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { runs++; return nil }), "q", stores, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Handle(t.Context(), m); err != nil {
				t.Error(err)
			}
		}
		if runs != test.runs {
			t.Errorf("%v: %d runs, want %d", test.settings, runs, test.runs)
		}
	}
}

// TestOnceForAsLongAsIsSet: work that is done is remembered for the time that is set: a message that comes again within
// it is not delivered, and one after it is.
func TestOnceForAsLongAsIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, runs := settingsOf(t, "exec", "true", "idempotency", "memory", "idempotency-retention", "72h"), 0
		h, err := s.Once(reprise.HandlerFunc(func(context.Context, *reprise.Message) error { runs++; return nil }), "q", new(Stores), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range []struct {
			later time.Duration
			runs  int
		}{{0, 1}, {71 * time.Hour, 1}, {2 * time.Hour, 2}} {
			time.Sleep(test.later)
			if err := h.Handle(t.Context(), &reprise.Message{ID: "a", OriginID: "a", Body: "b"}); err != nil || runs != test.runs {
				t.Errorf("%v later: %v, %d runs, want %d", test.later, err, runs, test.runs)
			}
		}
	})
}

// table is a DynamoDB that fails.
type table struct{ name string }

func (d *table) UpdateItem(_ context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	d.name = *in.TableName
	return nil, errors.New("no table")
}

// TestOnceInTable: the table that is named is asked before a message is delivered, and while
// it cannot be, none is.
func TestOnceInTable(t *testing.T) {
	d := new(table)
	stores := &Stores{DynamoDB: func() (dynamostore.Client, error) { return d, nil }}
	s := settingsOf(t, "exec", "true", "idempotency", "dynamodb:done")
	h, err := s.Once(reprise.HandlerFunc(func(context.Context, *reprise.Message) error {
		t.Error("a message was delivered although it may have been before")
		return nil
	}), "q", stores, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Handle(t.Context(), &reprise.Message{ID: "a", OriginID: "a"}); err == nil || d.name != "done" {
		t.Errorf("%v; the table asked is %q", err, d.name)
	}
}

func TestOnceMistakes(t *testing.T) {
	for _, test := range []struct{ setting, value, want string }{
		{"idempotency", "redis", "dynamodb:"},
		{"idempotency", "dynamodb:", "name of a table"},
		{"idempotency-key", "color", "attribute:NAME"},
		{"idempotency-key", "json:order", "json:/POINTER"},
		{"idempotency-retention", "1ms", "Retention"},
	} {
		pairs := []string{"exec", "true", "idempotency", "memory", test.setting, test.value}
		err := settingsOf(t, pairs...).Check("q")
		if bad, ok := errors.AsType[*Error](err); !ok || bad.Name != test.setting || !strings.Contains(err.Error(), test.want) {
			t.Errorf("--%s %s: %v, want %q", test.setting, test.value, err, test.want)
		}
	}
	if err := settingsOf(t, "exec", "true", "idempotency-key", "body").Check("q"); err == nil || !strings.Contains(err.Error(), "--idempotency") {
		t.Errorf("a key without a store: %v", err)
	}
}
