package kit

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise"
	"github.com/reprise-sqs/reprise/reprisetest"
	"github.com/reprise-sqs/reprise/sqsserver"
)

// History is the content of a copy's attribute as it is sent.
type History struct {
	Queue, Origin, Error, Trail    string
	Generation, Attempt, Releases  int
	Sent, First, NotBefore, SentAt int64
	Alone                          int
}

// Text returns h as it is sent, with the names of its members.
func (h History) Text(t *testing.T) string {
	t.Helper()
	b, err := json.Marshal(map[string]any{
		"queue": h.Queue, "origin": h.Origin, "error": h.Error, "generation": h.Generation, "attempt": h.Attempt, "releases": h.Releases,
		"sent": h.Sent, "first": h.First, "notBefore": h.NotBefore, "sentAt": h.SentAt, "alone": h.Alone, "trail": h.Trail,
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Plausible is a history that counts if it is sent now.
func Plausible(q *reprisetest.Queue) History {
	now := time.Now().UnixMilli()
	return History{Queue: q.Name(), Origin: "5fea7756-0ea4-451a-a703-a558b933e274", Attempt: 4, Sent: now - 90_000, First: now - 60_000, SentAt: now}
}

// Forged sends a message with a history that its sender has written.
func Forged(q *reprisetest.Queue, body, text string) string {
	return q.SendMessage(sqsserver.SendMessageEntry{
		MessageBody:       body,
		MessageAttributes: []sqsserver.MessageAttribute{{Name: reprise.HistoryAttribute, DataType: "String", StringValue: text}},
	})
}

// HistoryOf reads the history that a message in the queue carries; zero if none.
func HistoryOf(t *testing.T, m sqsserver.MessageInfo) (h History) {
	t.Helper()
	for _, a := range m.Attributes {
		if a.Name != reprise.HistoryAttribute {
			continue
		}
		if err := json.Unmarshal([]byte(a.StringValue), &h); err != nil {
			t.Fatalf("the history %q is not JSON: %v", a.StringValue, err)
		}
	}
	return h
}

// StoryOf reads the story that a dead letter carries.
func StoryOf(t *testing.T, m sqsserver.MessageInfo) reprise.Story {
	t.Helper()
	for _, a := range m.Attributes {
		if a.Name != reprise.StoryAttribute {
			continue
		}
		var s reprise.Story
		if err := json.Unmarshal([]byte(a.StringValue), &s); err != nil {
			t.Fatalf("the story %q is not JSON: %v", a.StringValue, err)
		}
		return s
	}
	t.Fatalf("dead letter %s has no story", m.ID)
	return reprise.Story{}
}

// SigningKey returns a key with that id and a secret that depends on it.
func SigningKey(t testing.TB, id string) reprise.SigningKey {
	t.Helper()
	key, err := reprise.NewSigningKey(id, []byte(strings.Repeat(id, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return key
}
