package operate_test

import (
	"reflect"
	"testing"

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
