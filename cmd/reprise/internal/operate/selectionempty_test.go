package operate_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/reprise-sqs/reprise/cmd/reprise/internal/operate"
)

// TestEveryCriterionSelects: each criterion alone makes a selection that is not empty. An empty selection means
// all letters: a criterion that Empty does not know would redrive or delete them all.
func TestEveryCriterionSelects(t *testing.T) {
	values := map[string]any{
		"IDs": []string{"id"}, "Reasons": []string{"age"}, "Source": "orders", "Group": "g", "Error": "e", "Body": "b",
		"Attributes": map[string]string{"a": "b"}, "Where": []string{"a=b"}, "OlderThan": "1h", "NewerThan": "1h",
	}
	for field := range reflect.TypeFor[operate.Criteria]().Fields() {
		value, known := values[field.Name]
		if !known {
			t.Errorf("the test has no value for the criterion %s: add one", field.Name)
			continue
		}
		var c operate.Criteria
		reflect.ValueOf(&c).Elem().FieldByIndex(field.Index).Set(reflect.ValueOf(value))
		s, err := c.Selection()
		if err != nil || s.Empty() {
			t.Errorf("%s alone: empty %t, %v; want a selection", field.Name, s.Empty(), err)
		}
	}
	if s, err := (&operate.Criteria{}).Selection(); err != nil || !s.Empty() {
		t.Errorf("no criteria: empty %t, %v", s.Empty(), err)
	}
}

// TestEveryCriterionMeansItsOwn: each criterion alone matches the message that has what it names, and not one that
// differs in that and in nothing else.
func TestEveryCriterionMeansItsOwn(t *testing.T) {
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	message := func() operate.Message {
		return operate.Message{
			ID: "id", Group: "group", Body: `{"body":1}`, Sent: now.Add(-2 * time.Hour), Attributes: map[string]operate.Attribute{"name": {Type: "String", Value: "value"}},
			Death: &operate.Death{Reason: "age", Source: "arn:aws:sqs:eu-west-1:1:source", Error: "error"},
		}
	}
	for name, test := range map[string]struct {
		criteria operate.Criteria
		differs  func(*operate.Message)
	}{
		"ids":        {operate.Criteria{IDs: []string{"id"}}, func(m *operate.Message) { m.ID = "x" }},
		"reasons":    {operate.Criteria{Reasons: []string{"age"}}, func(m *operate.Message) { m.Death.Reason = "x" }},
		"source":     {operate.Criteria{Source: "source"}, func(m *operate.Message) { m.Death.Source = "arn:aws:sqs:eu-west-1:1:x" }},
		"source ARN": {operate.Criteria{Source: "arn:aws:sqs:eu-west-1:1:source"}, func(m *operate.Message) { m.Death.Source = "arn:aws:sqs:eu-west-1:2:source" }},
		"group":      {operate.Criteria{Group: "group"}, func(m *operate.Message) { m.Group = "x" }},
		"error":      {operate.Criteria{Error: "error"}, func(m *operate.Message) { m.Death.Error = "x" }},
		"body":       {operate.Criteria{Body: "body"}, func(m *operate.Message) { m.Body = "x" }},
		"attributes": {operate.Criteria{Attributes: map[string]string{"name": "value"}}, func(m *operate.Message) { m.Attributes["name"] = operate.Attribute{Value: "x"} }},
		"where":      {operate.Criteria{Where: []string{"body=1"}}, func(m *operate.Message) { m.Body = `{"body":2}` }},
		"older_than": {operate.Criteria{OlderThan: "1h"}, func(m *operate.Message) { m.Sent = now.Add(-time.Minute) }},
		"newer_than": {operate.Criteria{NewerThan: "3h"}, func(m *operate.Message) { m.Sent = now.Add(-4 * time.Hour) }},
	} {
		s, err := test.criteria.Selection()
		if err != nil {
			t.Fatal(name, err)
		}
		same, other := message(), message()
		test.differs(&other)
		if !s.Matches(&same, now) || s.Matches(&other, now) {
			t.Errorf("%s: it matches %t, and what differs %t", name, s.Matches(&same, now), s.Matches(&other, now))
		}
	}
}

// TestAgesAreChecked: an age below zero would be no bound at all, and so select every message.
func TestAgesAreChecked(t *testing.T) {
	for _, age := range []string{"-2h", "0s", "2", "soon"} {
		for name, c := range map[string]operate.Criteria{"older-than": {OlderThan: age}, "newer-than": {NewerThan: age}} {
			if s, err := c.Selection(); err == nil || !strings.HasPrefix(err.Error(), name+" ") {
				t.Errorf("%s %s: %+v, %v; want an error", name, age, s, err)
			}
		}
	}
}
